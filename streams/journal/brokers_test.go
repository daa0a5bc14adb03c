package journal

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// TestLostBrokers follows connections to two brokers, a and b, through what the brokers list of each other.
func TestLostBrokers(t *testing.T) {
	both, onlyB := map[int32]string{1: "a:1", 2: "b:1"}, map[int32]string{2: "b:1"}
	for name, c := range map[string]struct {
		lists []map[int32]string
		open  bool // the connection to a is
		again bool // and another can be made
	}{
		"both are listed":          {[]map[int32]string{both}, true, true},
		"one is lost":              {[]map[int32]string{both, onlyB}, false, false},
		"it is back":               {[]map[int32]string{both, onlyB, both}, false, true},
		"nobody answers":           {[]map[int32]string{both, nil}, true, true},
		"nobody answers any more":  {[]map[int32]string{both, onlyB, nil}, false, true},
		"it was never listed":      {[]map[int32]string{onlyB}, true, true},
		"it is back under another": {[]map[int32]string{both, onlyB, {1: "c:1", 2: "b:1"}}, false, true},
		"its address has moved":    {[]map[int32]string{both, {3: "a:1", 2: "b:1"}}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := brokersOver(func(context.Context, string, string) (net.Conn, error) {
				near, far := net.Pipe()
				t.Cleanup(func() { far.Close() })
				return near, nil
			})
			first, err := b.connect(t.Context(), "tcp", "a:1")
			if err != nil {
				t.Fatal(err)
			}
			defer first.Close()
			for _, list := range c.lists {
				b.update(list)
			}
			if err := first.SetDeadline(time.Time{}); (err == nil) != c.open {
				t.Errorf("the connection: %v", err)
			}
			second, err := b.connect(t.Context(), "tcp", "a:1")
			if (err == nil) != c.again {
				t.Fatalf("another connection: %v", err)
			}
			if err == nil {
				second.Close()
				return
			}
			if dial, ok := errors.AsType[*net.OpError](err); !ok || dial.Op != "dial" || !errors.Is(err, errLost) {
				t.Errorf("a refused connection has the error %v", err)
			}
		})
	}
}

// TestAnAttemptEndsWithItsBroker: a connection attempt hangs, and ends when the broker is lost.
func TestAnAttemptEndsWithItsBroker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := brokersOver(func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		ended := make(chan error, 1)
		go func() {
			_, err := b.connect(t.Context(), "tcp", "a:1")
			ended <- err
		}()
		synctest.Wait()
		b.update(map[int32]string{1: "a:1", 2: "b:1"})
		b.update(map[int32]string{2: "b:1"})
		if err := <-ended; !errors.Is(err, errLost) {
			t.Error(err)
		}
		if len(b.links) != 0 {
			t.Errorf("%d addresses have links", len(b.links))
		}
	})
}

// TestASilentDialIsGivenUpInTime dials a host that drops the packets, and one that accepts the connection and says nothing to the
// greeting of TLS. The timeouts of franz-go would wait ten seconds.
func TestASilentDialIsGivenUpInTime(t *testing.T) {
	mute, err := net.Listen("tcp", "127.0.0.1:0") // and nobody accepts: the kernel does
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	for name, c := range map[string]struct {
		address string
		tls     *tls.Config
	}{
		"dropped packets": {deaf(t), nil},
		"a silent server": {mute.Addr().String(), &tls.Config{InsecureSkipVerify: true}},
	} {
		b := newBrokers(Config{Clock: SystemClock(), TLS: c.tls, Logger: slog.New(slog.DiscardHandler)})
		b.close()
		start := time.Now()
		conn, err := b.connect(t.Context(), "tcp", c.address)
		took := time.Since(start)
		if err == nil {
			conn.Close()
			t.Errorf("%s: there is a connection", name)
			continue
		}
		var timeout net.Error
		if deadline := errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout(); !deadline ||
			took < dialTimeout-100*time.Millisecond || took > dialTimeout+3*time.Second {
			t.Errorf("%s: given up after %v: %v", name, took, err)
		}
	}
}

// deaf returns an address that answers no attempt to connect: its queue of connections that nobody accepts is full.
func deaf(t *testing.T) string {
	t.Helper()
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(socket) })
	if err := unix.Bind(socket, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(socket, 0); err != nil {
		t.Fatal(err)
	}
	bound, err := unix.Getsockname(socket)
	if err != nil {
		t.Fatal(err)
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(bound.(*unix.SockaddrInet4).Port))
	for range 16 {
		c, err := net.DialTimeout("tcp", address, 200*time.Millisecond)
		if err != nil {
			return address
		}
		t.Cleanup(func() { c.Close() })
	}
	t.Skip("the queue of a listener does not fill here")
	return ""
}

// brokersOver returns a dialer that asks nobody.
func brokersOver(dial func(context.Context, string, string) (net.Conn, error)) *brokers {
	b := newBrokers(Config{Dial: dial, Clock: SystemClock(), Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	b.close()
	return b
}
