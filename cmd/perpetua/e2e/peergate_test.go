package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
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

// peerGate stands in front of a node where others reach it. It passes everything on but the commands of one type that other nodes
// send: it holds those until it is opened, before the node gets them or before its answers go back. A node that is killed
// meanwhile is killed between giving a command and knowing what came of it, while the owner of the journal goes on.
type peerGate struct {
	*httptest.Server
	barrier
	node http.Handler

	rule     sync.Mutex
	kind     string // of the commands that are held; "" for none
	answered bool   // the node gets them before
}

// newPeerGate starts a gate in front of an address.
func newPeerGate(t testing.TB, address string) *peerGate {
	t.Helper()
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: address})
	proxy.ErrorLog = log.New(io.Discard, "", 0) // of clients that are gone
	g := &peerGate{node: proxy}
	g.Server = httptest.NewServer(g)
	t.Cleanup(func() {
		g.open()
		g.Close()
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

// holds reports whether a command is one of those that are held while the gate is closed, and whether the node gets it before.
func (g *peerGate) holds(command []byte) (held, answered bool) {
	g.rule.Lock()
	defer g.rule.Unlock()
	return g.kind != "" && bytes.Contains(command, []byte(`"type":"`+g.kind+`"`)), g.answered
}

// ServeHTTP implements http.Handler.
func (g *peerGate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/internal/v1/commands" {
		g.node.ServeHTTP(w, r)
		return
	}
	command, err := io.ReadAll(r.Body)
	if err != nil {
		return // its sender is gone
	}
	passed := r.Clone(context.WithoutCancel(r.Context())) // what the node was asked it answers, whoever is gone then
	passed.Body = io.NopCloser(bytes.NewReader(command))
	held, answered := g.holds(command)
	weight := receiptsIn(command)
	if !held || !answered {
		if !held || g.pass(r.Context(), weight) {
			g.node.ServeHTTP(w, passed)
		}
		return
	}
	answer := httptest.NewRecorder()
	g.node.ServeHTTP(answer, passed)
	if !g.pass(r.Context(), weight) {
		return
	}
	for name, values := range answer.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.Code)
	w.Write(answer.Body.Bytes())
}

// receiptsIn is how many receipts a command holds, and 1 for every other command.
func receiptsIn(command []byte) int {
	var c struct {
		Payload struct{ Attempts []json.RawMessage }
	}
	if json.Unmarshal(command, &c) != nil {
		return 1
	}
	return max(1, len(c.Payload.Attempts))
}
