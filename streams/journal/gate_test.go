package journal_test

import (
	"context"
	"net"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

const keyProduce = 0

// gate stands between one client and its brokers. It can hold back what the client produces, hold back the brokers'
// acknowledgements of it, and cut every connection. franz-go has a connection of its own for producing, and writes a
// request at once, so the key in its header tells which connection that is.
type gate struct {
	mu       sync.Mutex
	open     *sync.Cond
	requests bool // held back on their way to the broker
	acks     bool // held back on their way to the client
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

// withhold holds the acknowledgements back; the records are appended.
func (g *gate) withhold() { g.set(false, true) }

// stall holds the produce requests themselves back.
func (g *gate) stall() { g.set(true, false) }

// release lets everything through.
func (g *gate) release() { g.set(false, false) }

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
	produce bool // guarded by the gate
	closed  bool
}

func (c *gated) Write(b []byte) (int, error) {
	if len(b) >= 6 && int(b[4])<<8|int(b[5]) == keyProduce {
		g := c.gate
		g.mu.Lock()
		c.produce = true
		g.waiting++
		for g.requests && !c.closed {
			g.open.Wait()
		}
		g.waiting--
		g.mu.Unlock()
	}
	return c.Conn.Write(b)
}

func (c *gated) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	g := c.gate
	g.mu.Lock()
	for c.produce && g.acks && !c.closed && err == nil {
		g.open.Wait()
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
