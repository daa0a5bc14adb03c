package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"sync"
	"testing"
)

// barrier holds requests while it is closed. It begins open.
type barrier struct {
	mu      sync.Mutex
	opened  chan struct{} // closed when it opens; nil while it is open
	holding int           // the weight of what is held
	left    int           // the weight of what was held, since it was last shut, until its requester was gone
}

// shut has requests be held from now on.
func (b *barrier) shut() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.opened == nil {
		b.opened, b.left = make(chan struct{}), 0
	}
}

// open lets go of what is held.
func (b *barrier) open() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.opened != nil {
		close(b.opened)
		b.opened = nil
	}
}

// pass returns once the barrier is open, or false: once the requester is gone. What is held counts by its weight.
func (b *barrier) pass(requester context.Context, weight int) bool {
	b.mu.Lock()
	opened := b.opened
	if opened == nil {
		b.mu.Unlock()
		return true
	}
	b.holding += weight
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.holding -= weight
	}()
	select {
	case <-opened:
		return true
	case <-requester.Done():
		b.mu.Lock()
		defer b.mu.Unlock()
		b.left += weight
		return false
	}
}

// gone waits until the requesters of so much weight are gone. Those who take over may have come with the same by then.
func (b *barrier) gone(t testing.TB, n int) {
	t.Helper()
	waitFor(t, "requesters to be gone", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.left >= n
	})
}

// held waits until requests of so much weight are held whose requesters live.
func (b *barrier) held(t testing.TB, n int) {
	t.Helper()
	waitFor(t, "requests to be held", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.holding == n
	})
}

// peerGate stands in front of a node where others reach it. It passes the bytes of all connections on, but holds a stream of
// commands (in cleartext) from a command of one type on, until it is opened: before the node gets that command, or before its
// answers go back. A node that is killed meanwhile is killed between giving a command and knowing what came of it, while the owner
// of the journal goes on. A stream that is held ends within seconds, and its sender opens another.
type peerGate struct {
	barrier
	URL  string
	node string // address of the node

	rule     sync.Mutex
	kind     string // of the commands that are held; "" for none
	answered bool   // the node gets them before
}

// newPeerGate starts a gate in front of an address.
func newPeerGate(t testing.TB, address string) *peerGate {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &peerGate{URL: "http://" + l.Addr().String(), node: address}
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { g.serve(ctx, c) })
		}
	})
	t.Cleanup(func() {
		g.open()
		cancel()
		l.Close()
		serving.Wait()
	})
	return g
}

// closeFor has the gate hold commands of a type, before the node gets them or after it has answered.
func (g *peerGate) closeFor(kind string, answered bool) {
	g.rule.Lock()
	defer g.rule.Unlock()
	g.kind, g.answered = kind, answered
	g.shut()
}

// holds returns the weight of the commands in some bytes that are held while the gate is closed, and whether the node gets them
// before.
func (g *peerGate) holds(sent []byte) (weight int, answered bool) {
	g.rule.Lock()
	defer g.rule.Unlock()
	if g.kind == "" {
		return 0, false
	}
	// A frame names a type once, however many commands it holds. A handshake names all types, and holds no payload.
	_, after, found := bytes.Cut(sent, []byte(g.kind))
	if !found || !bytes.Contains(after, []byte(`{"`)) {
		return 0, false
	}
	return max(1, receiptsIn(sent)), g.answered
}

// serve passes on what both sides of a connection send, until either is gone.
func (g *peerGate) serve(ctx context.Context, asking net.Conn) {
	defer asking.Close()
	node, err := net.Dial("tcp", g.node)
	if err != nil {
		return
	}
	defer node.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	context.AfterFunc(ctx, func() {
		asking.Close()
		node.Close()
	})
	var passing sync.WaitGroup
	// hold begins to hold some weight. What it returns is closed when that is over.
	hold := func(weight int) <-chan struct{} {
		over := make(chan struct{})
		passing.Go(func() {
			defer close(over)
			if !g.pass(ctx, weight) {
				cancel() // the sender is gone
			}
		})
		return over
	}
	type piece struct {
		bytes []byte
		held  <-chan struct{} // nil if it is not
	}
	forth, answers := make(chan piece, 1024), make(chan (<-chan struct{}), 1024)
	passing.Go(func() { // reads on while something is held, to see when the sender is gone
		defer cancel()
		defer close(forth)
		for {
			b := make([]byte, 64<<10)
			n, err := asking.Read(b)
			if err != nil {
				return
			}
			p := piece{bytes: b[:n]}
			if weight, answered := g.holds(p.bytes); weight > 0 && answered {
				answers <- hold(weight)
			} else if weight > 0 {
				p.held = hold(weight)
			}
			select {
			case forth <- p:
			case <-ctx.Done():
				return
			}
		}
	})
	passing.Go(func() {
		defer cancel()
		for p := range forth {
			if p.held != nil {
				<-p.held
			}
			if ctx.Err() != nil {
				return
			}
			if _, err := node.Write(p.bytes); err != nil {
				return
			}
		}
	})
	passing.Go(func() {
		defer cancel()
		b := make([]byte, 64<<10)
		for {
			n, err := node.Read(b)
			if err != nil {
				return
			}
			for len(answers) > 0 {
				<-<-answers
			}
			if ctx.Err() != nil {
				return
			}
			if _, err := asking.Write(b[:n]); err != nil {
				return
			}
		}
	})
	passing.Wait()
}

// receiptsIn is how many receipts of deliveries the commands in some bytes hold.
func receiptsIn(sent []byte) (n int) {
	begin := []byte(`{"Attempts":`)
	for at := bytes.Index(sent, begin); at >= 0; at = bytes.Index(sent, begin) {
		var payload struct{ Attempts []json.RawMessage }
		if json.NewDecoder(bytes.NewReader(sent[at:])).Decode(&payload) == nil {
			n += len(payload.Attempts)
		}
		sent = sent[at+len(begin):]
	}
	return n
}
