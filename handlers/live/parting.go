package live

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/olahol/melody"
)

// parting counts what a hub has under way with the journal's owner: orders that are entered, and ends of sessions that are told.
// A node that stops waits for that while it still owns the journal.
type parting struct {
	begun    atomic.Bool
	underWay atomic.Int64
	none     chan struct{} // has a token when nothing is under way any more, once parting has begun
}

// begin counts one more, unless parting has begun.
func (p *parting) begin() bool {
	// Counted before it is asked: who parts sets begun and then waits for the count. So it waits for this one, or this one sees it.
	p.add()
	if p.begun.Load() {
		p.end()
		return false
	}
	return true
}

// add counts one more, whether parting has begun or not.
func (p *parting) add() { p.underWay.Add(1) }

func (p *parting) end() {
	if p.underWay.Add(-1) == 0 && p.begun.Load() {
		select {
		case p.none <- struct{}{}:
		default: // there is one, and whoever takes it looks at the count
		}
	}
}

// wait waits until nothing is under way, or the context ends.
func (p *parting) wait(ctx context.Context) {
	for p.underWay.Load() > 0 {
		select {
		case <-p.none:
		case <-ctx.Done():
			return
		}
	}
}

// partWait bounds how long Part takes.
const partWait = 3 * time.Second

// Part ends what needs the journal's owner while there is one, which may be this very node: no more orders are entered, those under
// way are answered, and the connections whose orders are to be canceled at their end are closed with 1001, which the engine is
// told. It takes at most a few seconds: an owner that says nothing learns of the sessions' end by the silence of their node. All
// else goes on until Close.
func (h *Hub) Part(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, partWait)
	defer cancel()
	h.parting.begun.Store(true)
	h.parting.wait(ctx) // the answers come before the close frames
	h.mu.Lock()
	armed := slices.Collect(maps.Keys(h.gateway.armed))
	h.mu.Unlock()
	for _, s := range armed {
		s.close(nil, melody.CloseGoingAway, "the server is stopping")
		h.disarm(s) // here and now, so that it counts; the session's own way to it takes a goroutine
	}
	h.parting.wait(ctx)
}
