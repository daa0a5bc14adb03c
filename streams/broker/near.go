package broker

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"

	"google.golang.org/grpc/test/bufconn"
)

// nearBuffer is how much of a message fits between the two ends of a connection within the process.
const nearBuffer = 256 << 10

// Dial connects to an address as net.Dialer does, except that a connection to this broker itself stays within the
// process: the same protocol, and no system calls. It is what kgo.Dialer takes.
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

// nearConn fails in the terms of package net, by which a Kafka client tells what is worth another try.
type nearConn struct{ net.Conn }

// Read reads from the connection.
func (c nearConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		err = &net.OpError{Op: "read", Net: "near", Err: closed(err)}
	}
	return n, err
}

// Write writes to the connection.
func (c nearConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if err != nil {
		err = &net.OpError{Op: "write", Net: "near", Err: closed(err)}
	}
	return n, err
}

// closed returns net.ErrClosed for what is neither a time-out nor the end of a context.
func closed(err error) error {
	var timeout net.Error
	if errors.As(err, &timeout) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return net.ErrClosed
}

// bothListener accepts connections over loopback and from within the process.
type bothListener struct {
	net.Listener // over loopback: its address is the broker's
	near         *bufconn.Listener
	accepted     chan net.Conn
	once         sync.Once
	stop         chan struct{}
}

func listenBoth(l net.Listener) *bothListener {
	b := &bothListener{Listener: l, near: bufconn.Listen(nearBuffer), accepted: make(chan net.Conn), stop: make(chan struct{})}
	go b.pass(l)
	go b.pass(b.near)
	return b
}

// pass hands over what one of the two accepts, until it is closed.
func (b *bothListener) pass(from net.Listener) {
	for {
		c, err := from.Accept()
		if err != nil {
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

// Close stops accepting. Connections that were accepted go on.
func (b *bothListener) Close() error {
	b.end()
	return errors.Join(b.near.Close(), b.Listener.Close())
}
