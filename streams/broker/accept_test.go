package broker

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
)

// scarceListener is a listener of a process that has no free descriptor for its first connections.
type scarceListener struct {
	net.Listener
	failures int
}

func (l *scarceListener) Accept() (net.Conn, error) {
	if l.failures > 0 {
		l.failures--
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return l.Listener.Accept()
}

// TestListenerOutlivesFailedAccepts and logs them once.
func TestListenerOutlivesFailedAccepts(t *testing.T) {
	loopback, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	b := listenBoth(&scarceListener{Listener: loopback, failures: 4}, slog.New(slog.NewTextHandler(&log, nil)))
	for name, dial := range map[string]func() (net.Conn, error){
		"loopback": func() (net.Conn, error) {
			return (&net.Dialer{}).DialContext(t.Context(), "tcp", loopback.Addr().String())
		},
		"in-process": func() (net.Conn, error) { return b.near.DialContext(t.Context()) },
	} {
		c, err := dial()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		accepted, err := b.Accept()
		if err != nil {
			t.Fatalf("a connection over %s after failed accepts: %v", name, err)
		}
		if err := errors.Join(accepted.Close(), c.Close()); err != nil {
			t.Error(err)
		}
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if _, err := b.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a closed listener accepts: %v", err)
	}
	if said := log.String(); strings.Count(said, "\n") != 1 || !strings.Contains(said, "too many open files") {
		t.Errorf("logged:\n%s", said)
	}
}
