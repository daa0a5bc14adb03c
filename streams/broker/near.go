package broker

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc/test/bufconn"
)

// nearBuffer is the buffer size in bytes of an in-process connection.
const nearBuffer = 256 << 10

// Dial connects like net.Dialer, except that a connection to this broker stays within the process: it uses the same
// protocol without system calls. Pass it to kgo.Dialer.
func (b *Broker) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if addr != b.addrs[0] {
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	c, err := b.near.near.DialContext(ctx)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: closed(err)}
	}
	return nearConn{c}, nil
}

// nearConn returns the error types of package net, from which a Kafka client decides what to retry.
type nearConn struct{ net.Conn }

// Read implements net.Conn.
func (c nearConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		err = &net.OpError{Op: "read", Net: "near", Err: closed(err)}
	}
	return n, err
}

// Write implements net.Conn.
func (c nearConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if err != nil {
		err = &net.OpError{Op: "write", Net: "near", Err: closed(err)}
	}
	return n, err
}

// closed returns net.ErrClosed for every error except timeouts and ended contexts.
func closed(err error) error {
	var timeout net.Error
	if errors.As(err, &timeout) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return net.ErrClosed
}

// bothListener accepts connections over loopback and from within the process.
type bothListener struct {
	net.Listener // over loopback; its address is the broker's
	near         *bufconn.Listener
	logger       *slog.Logger
	accepted     chan net.Conn
	once         sync.Once
	stop         chan struct{}
}

func listenBoth(l net.Listener, logger *slog.Logger) *bothListener {
	b := &bothListener{Listener: l, near: bufconn.Listen(nearBuffer), logger: logger, accepted: make(chan net.Conn), stop: make(chan struct{})}
	go b.pass(l)
	go b.pass(b.near)
	return b
}

// The pauses after a failed accept grow from the first to the longest.
const (
	firstAcceptPause   = 5 * time.Millisecond
	longestAcceptPause = time.Second
)

// pass forwards the connections that one of the two listeners accepts, until that listener is closed. An accept that fails for
// another reason, such as too many open files, is tried again: kfake would never accept another connection.
func (b *bothListener) pass(from net.Listener) {
	pause := firstAcceptPause
	for {
		c, err := from.Accept()
		switch {
		case err == nil:
			pause = firstAcceptPause
		case b.rests(err, pause):
			pause = min(2*pause, longestAcceptPause)
			continue
		default:
			b.end()
			return
		}
		select {
		case b.accepted <- c:
		case <-b.stop:
			c.Close()
			return
		}
	}
}

// rests waits before the next accept, unless the error says that the listener is closed. It logs the error once for each row of
// failures.
func (b *bothListener) rests(err error, pause time.Duration) bool {
	if !errors.As(err, new(*net.OpError)) || errors.Is(err, net.ErrClosed) {
		return false
	}
	if pause == firstAcceptPause {
		b.logger.Warn("the embedded broker cannot accept a connection; trying again", "error", err)
	}
	select {
	case <-b.stop:
		return false
	case <-time.After(pause):
		return true
	}
}

// Accept returns the next connection of either kind.
func (b *bothListener) Accept() (net.Conn, error) {
	select {
	case c := <-b.accepted:
		return c, nil
	case <-b.stop:
		return nil, net.ErrClosed
	}
}

func (b *bothListener) end() { b.once.Do(func() { close(b.stop) }) }

// Close stops accepting. Accepted connections stay open.
func (b *bothListener) Close() error {
	b.end()
	return errors.Join(b.near.Close(), b.Listener.Close())
}
