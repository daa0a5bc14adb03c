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

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"golang.org/x/sys/unix"
)

// TestLostBrokers follows connections to two brokers, a and b, through what the brokers list of each other.
func TestLostBrokers(t *testing.T) {
	both, onlyB := map[int32]string{1: "a:1", 2: "b:1"}, map[int32]string{2: "b:1"}
	for name, c := range map[string]struct {
		lists []map[int32]string
		known bool // a client connects to a by its number before the first list
		open  bool // the connection to a is
		again bool // and another can be made
	}{
		"both are listed":             {[]map[int32]string{both}, false, true, true},
		"one is lost":                 {[]map[int32]string{both, onlyB}, false, false, false},
		"it is back":                  {[]map[int32]string{both, onlyB, both}, false, false, true},
		"nobody answers":              {[]map[int32]string{both, nil}, false, true, true},
		"nobody answers any more":     {[]map[int32]string{both, onlyB, nil}, false, false, true},
		"it was never listed":         {[]map[int32]string{onlyB}, false, true, true},
		"it never was, but by number": {[]map[int32]string{onlyB}, true, false, false},
		"nobody answers at first":     {[]map[int32]string{nil, onlyB}, true, false, false},
		"it is back under another":    {[]map[int32]string{both, onlyB, {1: "c:1", 2: "b:1"}}, false, false, true},
		"its address has moved":       {[]map[int32]string{both, {3: "a:1", 2: "b:1"}}, false, true, true},
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
			b.OnBrokerConnect(kgo.BrokerMetadata{NodeID: -1, Host: "b", Port: 1}, 0, nil, nil) // of the configuration
			if c.known {
				b.OnBrokerConnect(kgo.BrokerMetadata{NodeID: 1, Host: "a", Port: 1}, 0, first, nil)
			}
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

// TestBrokersAreAskedAgainSoon: only a broker that has said that it is alone is asked seldom.
func TestBrokersAreAskedAgainSoon(t *testing.T) {
	for _, c := range []struct {
		answered bool
		known    int
		want     time.Duration
	}{{false, 0, listEvery}, {false, 1, listEvery}, {true, 1, listAlone}, {true, 2, listEvery}, {false, 3, listEvery}} {
		if got := listPause(c.answered, c.known); got != c.want {
			t.Errorf("answered %v, %d known: %v, want %v", c.answered, c.known, got, c.want)
		}
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
		var took time.Duration
		var err error
		for range 5 { // a busy machine may take ten seconds once
			start := time.Now()
			var conn net.Conn
			if conn, err = b.connect(t.Context(), "tcp", c.address); err == nil {
				conn.Close()
				t.Fatalf("%s: there is a connection", name)
			}
			if took = time.Since(start); took < 10*time.Second {
				break
			}
		}
		var timeout net.Error
		if deadline := errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout(); !deadline ||
			took < dialTimeout-100*time.Millisecond || took >= 10*time.Second {
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
	opened := 0
	for failed := 0; failed < 3; { // one after the other: a busy machine may need two seconds for one that succeeds
		c, err := net.DialTimeout("tcp", address, 2*time.Second)
		if failed++; err == nil {
			failed = 0
			if opened++; opened == 16 {
				t.Skip("the queue of a listener does not fill here")
			}
			t.Cleanup(func() { c.Close() })
		}
	}
	return address
}

// bootClock is a clock that a test has run ahead of Go's.
type bootClock struct {
	start time.Time
	ahead time.Duration
}

func (c *bootClock) Wall() time.Time        { return time.Now() }
func (c *bootClock) Elapsed() time.Duration { return time.Since(c.start) + c.ahead }

// TestUnanswered: an answer that waited, while the machine was suspended or the process stopped, is as old as its request.
func TestUnanswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := &bootClock{start: time.Now(), ahead: time.Hour}
		c, err := NewClient(Config{Brokers: []string{"127.0.0.1:1"}, Clock: clock})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		answer := func(after time.Duration) {
			c.brokers.OnBrokerE2E(kgo.BrokerMetadata{}, kmsg.Metadata.Int16(), kgo.BrokerE2E{TimeToWrite: after / 2, ReadWait: after / 4, TimeToRead: after / 4})
		}
		want := func(what string, want time.Duration) {
			t.Helper()
			if got := c.Unanswered(); got != want {
				t.Errorf("%s: %v instead of %v", what, got, want)
			}
		}
		time.Sleep(time.Second)
		answer(100 * time.Millisecond)
		want("an answer", 100*time.Millisecond)
		answer(200 * time.Millisecond)
		want("the answer to an earlier request", 100*time.Millisecond)
		time.Sleep(5 * time.Second)
		answer(4 * time.Second)
		want("an answer that a stopped process reads late", 4*time.Second)
		clock.ahead += 10 * time.Second
		answer(time.Second)
		want("an answer from before a suspension", 14*time.Second)
		answer(time.Millisecond)
		want("another one", 14*time.Second)
		time.Sleep(time.Second)
		answer(time.Second / 2)
		want("an answer to a later request", time.Second/2)
	})
}

// brokersOver returns a dialer that asks nobody.
func brokersOver(dial func(context.Context, string, string) (net.Conn, error)) *brokers {
	b := newBrokers(Config{Clock: SystemClock(), Dial: dial, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	b.close()
	return b
}
