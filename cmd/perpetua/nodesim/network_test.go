package nodesim

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// network is an in-memory network. Each host has a name, and each listener an address of the loopback network. Data
// arrive after up to latency. Nothing arrives on a silent route until it is healed: neither data nor the end of a
// connection.
type network struct {
	mu        sync.Mutex
	listeners map[string]*listener
	links     map[*link]struct{}
	silent    map[route]chan struct{} // closed when the route is healed
	ports     int
}

// route is one direction between two hosts.
type route struct{ from, to string }

func newNetwork() *network {
	return &network{listeners: make(map[string]*listener), links: make(map[*link]struct{}), silent: make(map[route]chan struct{})}
}

// gate returns a channel that is closed when the route is healed, or nil if the route is open.
func (n *network) gate(r route) chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.silent[r]
}

// silence stops what one host sends to another.
func (n *network) silence(from, to string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if r := (route{from, to}); n.silent[r] == nil {
		n.silent[r] = make(chan struct{})
	}
}

// heal opens the routes between two hosts again.
func (n *network) heal(a, b string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, r := range []route{{a, b}, {b, a}} {
		if gate := n.silent[r]; gate != nil {
			delete(n.silent, r)
			close(gate)
		}
	}
}

// healAll opens all routes.
func (n *network) healAll() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for r, gate := range n.silent {
		delete(n.silent, r)
		close(gate)
	}
}

// reset ends the connections that match with an error on both sides.
func (n *network) reset(matches func(a, b string) bool) {
	n.mu.Lock()
	var ended []*link
	for l := range n.links {
		if matches(l.hosts.from, l.hosts.to) {
			ended = append(ended, l)
			delete(n.links, l)
		}
	}
	n.mu.Unlock()
	for _, l := range ended {
		l.there.finish(syscall.ECONNRESET)
		l.back.finish(syscall.ECONNRESET)
	}
}

// kill ends a host: its connections are reset, its ports are closed, and it reaches nobody any more.
func (n *network) kill(host string) {
	n.mu.Lock()
	for address, l := range n.listeners {
		if l.host == host {
			delete(n.listeners, address)
			l.end()
		}
	}
	n.mu.Unlock()
	n.reset(func(a, b string) bool { return a == host || b == host })
}

// listen opens an address of a host.
func (n *network) listen(host, address string) (net.Listener, error) {
	at, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners[address] != nil {
		return nil, &net.OpError{Op: "listen", Net: "tcp", Addr: at, Err: os.NewSyscallError("bind", syscall.EADDRINUSE)}
	}
	l := &listener{network: n, host: host, address: at, accepted: make(chan net.Conn, 64), ended: make(chan struct{})}
	n.listeners[address] = l
	return l, nil
}

// from returns the function with which a host dials. alive reports whether the host lives.
func (n *network) from(host string, alive func() bool) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, _, address string) (net.Conn, error) {
		failed := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
		for {
			n.mu.Lock()
			l := n.listeners[address]
			if !alive() {
				n.mu.Unlock()
				return nil, failed(syscall.ENETUNREACH)
			}
			if l == nil {
				n.mu.Unlock()
				return nil, failed(os.NewSyscallError("connect", syscall.ECONNREFUSED))
			}
			gate := n.silent[route{host, l.host}]
			if gate == nil {
				break // with the lock
			}
			n.mu.Unlock()
			select {
			case <-gate:
			case <-ctx.Done():
				return nil, failed(ctx.Err())
			}
		}
		defer n.mu.Unlock()
		l := n.listeners[address]
		n.ports++
		ours := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 20_000 + n.ports%40_000}
		k := &link{hosts: route{host, l.host}}
		k.there, k.back = newFlow(n, k.hosts), newFlow(n, route{l.host, host})
		n.links[k] = struct{}{}
		select {
		case l.accepted <- &conn{link: k, in: k.there, out: k.back, local: l.address, remote: ours}:
		default:
			delete(n.links, k)
			return nil, failed(os.NewSyscallError("connect", syscall.ECONNREFUSED))
		}
		return &conn{link: k, in: k.back, out: k.there, local: ours, remote: l.address}, nil
	}
}

// listener is a port.
type listener struct {
	network  *network
	host     string
	address  *net.TCPAddr
	accepted chan net.Conn
	once     sync.Once
	ended    chan struct{}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accepted:
		return c, nil
	case <-l.ended:
		return nil, net.ErrClosed
	}
}

func (l *listener) end() { l.once.Do(func() { close(l.ended) }) }

func (l *listener) Close() error {
	l.network.mu.Lock()
	defer l.network.mu.Unlock()
	if l.network.listeners[l.address.String()] == l {
		delete(l.network.listeners, l.address.String())
	}
	l.end()
	return nil
}

func (l *listener) Addr() net.Addr { return l.address }

// link is a connection: one flow in each direction.
type link struct {
	hosts       route
	there, back *flow
}

// latency is the longest time that data are on their way.
const latency = 5 * time.Millisecond

// segment is what one Write sends.
type segment struct {
	bytes []byte
	due   time.Time // when it arrives
}

// flow is one direction of a connection.
type flow struct {
	network *network
	route   route

	mu      sync.Mutex
	under   []segment     // on their way, or arrived and unread
	size    int           // bytes in under
	err     error         // how it ended; io.EOF if the writer closed it
	changed chan struct{} // closed and replaced at each change
}

func newFlow(n *network, r route) *flow {
	return &flow{network: n, route: r, changed: make(chan struct{})}
}

// flowLimit is the number of bytes under way after which a writer waits.
const flowLimit = 256 << 10

func (f *flow) signal() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// finish ends the flow. Only the first end counts.
func (f *flow) finish(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = err
		f.signal()
	}
}

func (f *flow) write(b []byte, late *deadline) (n int, err error) {
	for len(b) > 0 {
		f.mu.Lock()
		if f.err != nil {
			f.mu.Unlock()
			return n, syscall.EPIPE
		}
		room := min(len(b), flowLimit-f.size)
		if room > 0 {
			due := time.Now().Add(rand.N(latency))
			if last := len(f.under) - 1; last >= 0 && f.under[last].due.After(due) {
				due = f.under[last].due
			}
			f.under = append(f.under, segment{bytes.Clone(b[:room]), due})
			f.size += room
			n, b = n+room, b[room:]
			f.signal()
		}
		changed := f.changed
		f.mu.Unlock()
		if len(b) == 0 {
			break
		}
		select {
		case <-changed:
		case <-late.passed():
			return n, os.ErrDeadlineExceeded
		}
	}
	return n, nil
}

func (f *flow) read(b []byte, late *deadline, closed <-chan struct{}) (int, error) {
	for {
		gate := f.network.gate(f.route)
		f.mu.Lock()
		var arrival <-chan time.Time
		if gate == nil {
			n, wait := f.take(b)
			if n > 0 {
				f.mu.Unlock()
				return n, nil
			}
			if wait > 0 {
				arrival = time.After(wait)
			} else if f.err != nil {
				f.mu.Unlock()
				return 0, f.err
			}
		}
		changed := f.changed
		f.mu.Unlock()
		select {
		case <-changed:
		case <-arrival:
		case <-gate:
		case <-late.passed():
			return 0, os.ErrDeadlineExceeded
		case <-closed:
			return 0, net.ErrClosed
		}
	}
}

// take reads what has arrived. If that is nothing, it returns the time until something will arrive, or 0. An error other
// than the end loses what is under way.
func (f *flow) take(b []byte) (n int, wait time.Duration) {
	if f.err != nil && f.err != io.EOF {
		return 0, 0
	}
	for len(f.under) > 0 && n < len(b) {
		first := &f.under[0]
		if wait = time.Until(first.due); wait > 0 {
			break
		}
		read := copy(b[n:], first.bytes)
		n, f.size = n+read, f.size-read
		if first.bytes = first.bytes[read:]; len(first.bytes) == 0 {
			f.under = f.under[1:]
		}
	}
	if n > 0 {
		f.signal()
	}
	return n, wait
}

// conn is one end of a link.
type conn struct {
	link          *link
	in, out       *flow
	local, remote *net.TCPAddr
	reads, writes deadline
	once          sync.Once
	closed        deadline // closed by Close
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.in.read(b, &c.reads, c.closed.passed())
	if err != nil && err != io.EOF {
		err = &net.OpError{Op: "read", Net: "tcp", Addr: c.remote, Err: err}
	}
	return n, err
}

func (c *conn) Write(b []byte) (int, error) {
	n, err := c.out.write(b, &c.writes)
	if err != nil {
		err = &net.OpError{Op: "write", Net: "tcp", Addr: c.remote, Err: err}
	}
	return n, err
}

func (c *conn) Close() error {
	c.once.Do(func() {
		c.closed.set(time.Now())
		c.out.finish(io.EOF)
		c.in.finish(net.ErrClosed)
		c.reads.set(time.Time{})
		c.writes.set(time.Time{})
		n := c.in.network
		n.mu.Lock()
		delete(n.links, c.link)
		n.mu.Unlock()
	})
	return nil
}

func (c *conn) LocalAddr() net.Addr  { return c.local }
func (c *conn) RemoteAddr() net.Addr { return c.remote }

func (c *conn) SetDeadline(t time.Time) error {
	c.reads.set(t)
	c.writes.set(t)
	return nil
}

func (c *conn) SetReadDeadline(t time.Time) error {
	c.reads.set(t)
	return nil
}

func (c *conn) SetWriteDeadline(t time.Time) error {
	c.writes.set(t)
	return nil
}

func (c *conn) String() string { return fmt.Sprintf("%s to %s", c.local, c.remote) }

// deadline is a time that may be moved, until which waiters wait.
type deadline struct {
	mu    sync.Mutex
	done  chan struct{}
	timer *time.Timer
	over  bool
}

// passed returns a channel that is closed when the deadline passes.
func (d *deadline) passed() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.channel()
}

func (d *deadline) channel() chan struct{} {
	if d.done == nil {
		d.done = make(chan struct{})
	}
	return d.done
}

// set moves the deadline; the zero time is none. Waiters keep waiting for the moved one.
func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	if d.over {
		d.over, d.done = false, nil
	}
	switch done := d.channel(); {
	case t.IsZero():
	case !time.Now().Before(t):
		d.over = true
		close(done)
	default:
		var timer *time.Timer
		timer = time.AfterFunc(time.Until(t), func() {
			d.mu.Lock()
			defer d.mu.Unlock()
			if d.timer == timer {
				d.over, d.timer = true, nil
				close(done)
			}
		})
		d.timer = timer
	}
}
