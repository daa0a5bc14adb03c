package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// network is a network of hosts, each of which can be cut off from all others. The brokers are the hosts 1 to 3. Each engine is
// a host too. Everything else runs on the host gateway.
type network interface {
	// host returns the address of a host.
	host(number int) string
	// wrap returns the command that runs a command on a host, with the same process id.
	wrap(number int, command []string) []string
	// cut drops every packet to and from a host, without an error to either side, until join.
	cut(number int) error
	join(number int) error
}

// The numbers of the hosts that are not brokers.
const (
	firstEngine = 11
	engines     = 2
	gateway     = 254 // this process's own
)

// forwarder copies the bytes of TCP connections to another address.
type forwarder struct {
	listener net.Listener
	to       string
	open     sync.WaitGroup
	mu       sync.Mutex
	conns    map[net.Conn]bool // nil after close
}

// forward listens on a free port of a host and forwards connections to an address. The embedded Postgres listens on loopback
// only, which is another one on each host.
func forward(ctx context.Context, host, to string) (*forwarder, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, err
	}
	f := &forwarder{listener: l, to: to, conns: make(map[net.Conn]bool)}
	f.open.Go(f.accept)
	return f, nil
}

func (f *forwarder) address() string { return f.listener.Addr().String() }

func (f *forwarder) accept() {
	for {
		from, err := f.listener.Accept()
		if err != nil {
			return // closed
		}
		f.open.Go(func() { f.serve(from) })
	}
}

// serve forwards one connection until either side closes it.
func (f *forwarder) serve(from net.Conn) {
	to, err := net.Dial("tcp", f.to)
	if err != nil {
		from.Close()
		return
	}
	if !f.keep(from, to) {
		return
	}
	var copying sync.WaitGroup
	for _, pair := range [][2]net.Conn{{from, to}, {to, from}} {
		copying.Go(func() {
			_, _ = io.Copy(pair[0], pair[1]) // either side may close
			pair[0].Close()
			pair[1].Close()
		})
	}
	copying.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.conns, from)
	delete(f.conns, to)
}

// keep notes the two connections for close. After close it closes them and reports false.
func (f *forwarder) keep(from, to net.Conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.conns == nil {
		from.Close()
		to.Close()
		return false
	}
	f.conns[from], f.conns[to] = true, true
	return true
}

// close ends the forwarding and every connection.
func (f *forwarder) close() error {
	err := f.listener.Close()
	f.mu.Lock()
	for c := range f.conns {
		c.Close()
	}
	f.conns = nil
	f.mu.Unlock()
	f.open.Wait()
	if err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("stop forwarding to %s: %w", f.to, err)
	}
	return nil
}

// freeAddress returns an address of a host with a port that was free a moment ago on loopback. The host has its own ports, so
// the port is free there as well if nothing else runs on it.
func freeAddress(ctx context.Context, host string) (string, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	return net.JoinHostPort(host, port), errors.Join(err, l.Close())
}
