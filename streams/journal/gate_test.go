package journal_test

import (
	"context"
	"net"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	keyProduce = 0
	keyFetch   = 1
)

// gate stands between one client and its brokers. It can hold back what the client produces, hold back the brokers'
// acknowledgements of it or what they answer to fetches, and cut every connection. franz-go has a connection of its own
// for producing and one for fetching, and writes a request at once, so the key in its header tells which one that is.
type gate struct {
	mu       sync.Mutex
	open     *sync.Cond
	requests bool // held back on their way to the broker
	acks     bool // held back on their way to the client
	fetched  bool // what was fetched is held back on its way to the client
	conns    map[*gated]struct{}
	waiting  int // writes that are held back
}

func newGate() *gate {
	g := &gate{conns: make(map[*gated]struct{})}
	g.open = sync.NewCond(&g.mu)
	return g
}

func (g *gate) option() kgo.Opt {
	return kgo.Dialer(func(ctx context.Context, network, host string) (net.Conn, error) {
		var d net.Dialer
		c, err := d.DialContext(ctx, network, host)
		if err != nil {
			return nil, err
		}
		conn := &gated{Conn: c, gate: g}
		g.mu.Lock()
		g.conns[conn] = struct{}{}
		g.mu.Unlock()
		return conn, nil
	})
}

func (g *gate) set(requests, acks bool) {
	g.mu.Lock()
	g.requests, g.acks = requests, acks
	g.open.Broadcast()
	g.mu.Unlock()
}

// withhold holds the acknowledgements back of what is produced from now on; the records are appended.
func (g *gate) withhold() { g.set(false, true) }

// stall holds the produce requests themselves back.
func (g *gate) stall() { g.set(true, false) }

// release lets everything through.
func (g *gate) release() {
	g.blind(false)
	g.set(false, false)
}

// blind holds back what the client fetches, or no more.
func (g *gate) blind(on bool) {
	g.mu.Lock()
	g.fetched = on
	g.open.Broadcast()
	g.mu.Unlock()
}

// stalled returns how many produce requests are held back.
func (g *gate) stalled() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.waiting
}

// cut closes every connection.
func (g *gate) cut() {
	g.mu.Lock()
	conns := g.conns
	g.conns = make(map[*gated]struct{})
	g.mu.Unlock()
	for c := range conns {
		c.Close()
	}
}

type gated struct {
	net.Conn
	gate    *gate
	unacked bool // guarded by the gate: it has produced since acknowledgements are held back
	fetch   bool
	closed  bool
}

func (c *gated) Write(b []byte) (int, error) {
	g := c.gate
	switch {
	case len(b) < 6:
	case int(b[4])<<8|int(b[5]) == keyFetch:
		g.mu.Lock()
		c.fetch = true
		g.mu.Unlock()
	case int(b[4])<<8|int(b[5]) == keyProduce:
		g.mu.Lock()
		g.waiting++
		for g.requests && !c.closed {
			g.open.Wait()
		}
		g.waiting--
		c.unacked = g.acks
		g.mu.Unlock()
	}
	return c.Conn.Write(b)
}

func (c *gated) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	g := c.gate
	g.mu.Lock()
	for (c.unacked && g.acks || c.fetch && g.fetched) && !c.closed && err == nil {
		g.open.Wait()
	}
	if c.closed && err == nil { // what was held back is lost with the connection
		n, err = 0, net.ErrClosed
	}
	g.mu.Unlock()
	return n, err
}

func (c *gated) Close() error {
	g := c.gate
	g.mu.Lock()
	c.closed = true
	delete(g.conns, c)
	g.open.Broadcast()
	g.mu.Unlock()
	return c.Conn.Close()
}
