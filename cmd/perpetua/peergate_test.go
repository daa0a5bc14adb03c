package main

import (
	"bytes"
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"
)

// peerGate stands in front of a node where others reach it. It passes everything on but the commands of one type that other nodes
// send: it holds those until it is opened, before the node gets them or before its answers go back. A node that is killed
// meanwhile is killed between giving a command and knowing what came of it, while the owner of the journal goes on.
type peerGate struct {
	*httptest.Server
	node http.Handler

	mu       sync.Mutex
	kind     string        // of the commands that it holds; "" while it is open
	answered bool          // whether the node gets them
	opened   chan struct{} // closed when it opens
	holding  int           // of senders that live
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

// ServeHTTP implements http.Handler.
func (g *peerGate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/internal/v1/commands" {
		g.node.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // its sender is gone
	}
	passed := r.Clone(context.WithoutCancel(r.Context())) // to the end, once it is: a node that was asked answers
	passed.Body = io.NopCloser(bytes.NewReader(body))
	opened, answered := g.holds(body)
	if opened == nil {
		g.node.ServeHTTP(w, passed)
		return
	}
	answer := httptest.NewRecorder()
	if answered {
		g.node.ServeHTTP(answer, passed)
	}
	if !g.hold(r.Context(), opened) {
		return
	}
	if !answered {
		g.node.ServeHTTP(w, passed)
		return
	}
	for name, values := range answer.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.Code)
	w.Write(answer.Body.Bytes())
}

// holds returns until when a command is held, nil if it is not, and whether the node gets it before.
func (g *peerGate) holds(body []byte) (opened <-chan struct{}, answered bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.kind == "" || !bytes.Contains(body, []byte(`"type":"`+g.kind+`"`)) {
		return nil, false
	}
	return g.opened, g.answered
}

// hold waits until the gate opens, or false: until the sender is gone.
func (g *peerGate) hold(sender context.Context, opened <-chan struct{}) bool {
	g.count(1)
	defer g.count(-1)
	select {
	case <-opened:
		return true
	case <-sender.Done():
		return false
	}
}

func (g *peerGate) count(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.holding += n
}

// close has the gate hold commands of a type, before the node gets them or after it has answered.
func (g *peerGate) closeFor(kind string, answered bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.kind, g.answered, g.opened = kind, answered, make(chan struct{})
}

// open lets everything pass.
func (g *peerGate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.kind != "" {
		g.kind = ""
		close(g.opened)
	}
}

// held waits until the gate holds so many commands of senders that live.
func (g *peerGate) held(t testing.TB, n int) {
	t.Helper()
	waitFor(t, "commands at the gate", func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.holding == n
	})
}
