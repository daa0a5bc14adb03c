package clamd_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/streams/clamd"
)

// limits are not reached, however busy the machine is.
var limits = clamd.Limits{Dial: time.Minute, Write: time.Minute, Verdict: time.Minute}

// daemon answers each connection in its own way, and returns its URL.
func daemon(t *testing.T, answer func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				answer(c)
			}()
		}
	}()
	return "tcp://" + l.Addr().String()
}

// stream reads what a client sends as clamd does.
func stream(c io.Reader) ([]byte, error) {
	command := make([]byte, len("zINSTREAM\x00"))
	if _, err := io.ReadFull(c, command); err != nil || string(command) != "zINSTREAM\x00" {
		return nil, errors.Join(err, errors.New("another command"))
	}
	var all []byte
	for {
		var size [4]byte
		if _, err := io.ReadFull(c, size[:]); err != nil {
			return all, err
		}
		n := binary.BigEndian.Uint32(size[:])
		if n == 0 {
			return all, nil
		}
		piece := make([]byte, n)
		if _, err := io.ReadFull(c, piece); err != nil {
			return all, err
		}
		all = append(all, piece...)
	}
}

func scan(t *testing.T, ctx context.Context, url string, limits clamd.Limits, content string) (string, error) {
	t.Helper()
	s, err := clamd.New(url, limits)
	if err != nil {
		t.Fatal(err)
	}
	running, err := s.Begin(ctx)
	if err != nil {
		return "", err
	}
	defer running.Close()
	for piece := range strings.SplitAfterSeq(content, "\n") {
		_, _ = running.Write([]byte(piece)) // the verdict tells
	}
	return running.Verdict()
}

func TestVerdicts(t *testing.T) {
	content := "first\nsecond\n" + strings.Repeat("x", 600<<10)
	for answer, want := range map[string]string{
		"stream: OK\x00": "",
		"stream: Perpetua.Test.UNOFFICIAL FOUND\x00": "Perpetua.Test.UNOFFICIAL",
		"stream: OK":                              "away",
		"stream: OK FOUND\x00":                    "OK",
		"stream:  FOUND\x00":                      "away",
		"other: OK\x00":                           "away",
		"INSTREAM size limit exceeded. ERROR\x00": "away",
		"UNKNOWN COMMAND\x00":                     "away",
		"":                                        "away",
		"\x00":                                    "away",
		strings.Repeat("garbage", 4000):           "away",
		"stream: Can't allocate memory ERROR\x00":     "away",
		"stream: Heuristics.Broken.Media FOUND\x00\n": "Heuristics.Broken.Media",
	} {
		url := daemon(t, func(c net.Conn) {
			if got, err := stream(c); err != nil || string(got) != content {
				t.Errorf("the daemon read %d bytes: %v", len(got), err)
			}
			_, _ = io.WriteString(c, answer)
		})
		got, err := scan(t, t.Context(), url, limits, content)
		if errors.Is(err, clamd.ErrAway) {
			got, err = "away", nil
		}
		if got != want || err != nil {
			t.Errorf("%.60q is read as %q, %v; want %q", answer, got, err, want)
		}
	}
}

// TestADaemonThatHearsNoMore has the daemon refuse in the middle of the stream, as clamd does with one that is too large.
func TestADaemonThatHearsNoMore(t *testing.T) {
	for answer, want := range map[string]string{"stream: OK\x00": "", "stream: Early FOUND\x00": "Early"} {
		url := daemon(t, func(c net.Conn) {
			_, _ = io.ReadFull(c, make([]byte, 1024))
			_, _ = io.WriteString(c, answer)
			_ = c.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, io.LimitReader(c, 1<<20)) // then it closes, with the rest unread
		})
		got, err := scan(t, t.Context(), url, limits, strings.Repeat(strings.Repeat("x", 1<<20)+"\n", 64))
		// The stream was not sent whole, so nothing but a finding counts; and where the connection was reset, not even that.
		if !errors.Is(err, clamd.ErrAway) && (err != nil || got != want || want == "") {
			t.Errorf("%q is read as %q, %v", answer, got, err)
		}
	}
}

func TestADaemonThatIsAway(t *testing.T) {
	// Nobody listens at port 1. A port that was free a moment ago may have been given to another process.
	if _, err := scan(t, t.Context(), "tcp://127.0.0.1:1", limits, "x"); !errors.Is(err, clamd.ErrAway) {
		t.Errorf("nobody listens: %v", err)
	}
	if _, err := scan(t, t.Context(), "unix://"+t.TempDir()+"/no.ctl", limits, "x"); !errors.Is(err, clamd.ErrAway) {
		t.Errorf("there is no socket: %v", err)
	}
	silent := daemon(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	short := limits
	short.Verdict = time.Millisecond
	if _, err := scan(t, t.Context(), silent, short, "x"); !errors.Is(err, clamd.ErrAway) {
		t.Errorf("it says nothing: %v", err)
	}
	deaf := daemon(t, func(c net.Conn) { <-t.Context().Done() })
	short = limits
	short.Write = time.Millisecond
	if _, err := scan(t, t.Context(), deaf, short, strings.Repeat(strings.Repeat("x", 1<<20)+"\n", 64)); !errors.Is(err, clamd.ErrAway) {
		t.Errorf("it takes nothing: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	waits := daemon(t, func(c net.Conn) {
		if _, err := stream(c); err == nil {
			cancel() // while the verdict is waited for
		}
		_, _ = io.Copy(io.Discard, c)
	})
	if _, err := scan(t, ctx, waits, limits, "x"); !errors.Is(err, clamd.ErrAway) || !errors.Is(err, context.Canceled) {
		t.Errorf("who asks has gone: %v", err)
	}
}

func TestURLs(t *testing.T) {
	for _, url := range []string{"tcp://127.0.0.1:3310", "tcp://[::1]:3310", "unix:///run/clamav/clamd.ctl"} {
		if _, err := clamd.New(url, limits); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
	for _, url := range []string{"", "127.0.0.1:3310", "tcp://127.0.0.1", "tcp://:3310", "tcp://a:1/x", "unix://run/clamd.ctl", "unix:", "http://a:1",
		"tcp://a:1?x=y", "tcp://u:p@a:1", "tcp://%zz"} {
		if _, err := clamd.New(url, limits); err == nil {
			t.Errorf("%q was taken", url)
		}
	}
}
