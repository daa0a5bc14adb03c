package live

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/olahol/melody"
)

// shutdown counts a hub's requests in progress at the journal's owner: order entry and ends of sessions. A stopping
// node waits for them while it still owns the journal.
type shutdown struct {
	begun    atomic.Bool
	underWay atomic.Int64
	none     chan struct{} // has a token if the count reached zero after the shutdown began
}

// begin adds a request, unless the shutdown has begun.
func (p *shutdown) begin() bool {
	// Count before checking. Part sets begun and then waits for the count, so either Part waits for this request or
	// this request sees begun.
	p.add()
	if p.begun.Load() {
		p.end()
		return false
	}
	return true
}

// add adds a request, even after the shutdown has begun.
func (p *shutdown) add() { p.underWay.Add(1) }

func (p *shutdown) end() {
	if p.underWay.Add(-1) == 0 && p.begun.Load() {
		select {
		case p.none <- struct{}{}:
		default: // there is a token already; its receiver checks the count
		}
	}
}

// wait waits until the count is zero or the context ends.
func (p *shutdown) wait(ctx context.Context) {
	for p.underWay.Load() > 0 {
		select {
		case <-p.none:
		case <-ctx.Done():
			return
		}
	}
}

// partWait limits the duration of Part.
const partWait = 3 * time.Second

// Part completes the requests that need the journal's owner, which may be this node. It stops accepting orders, waits
// for those in progress, closes the connections with engine sessions with 1001, and ends these sessions. It takes at
// most partWait; if the owner does not answer, the missing keepalives end the sessions later. Everything else
// continues until Close.
func (h *Hub) Part(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, partWait)
	defer cancel()
	h.shutdown.begun.Store(true)
	h.shutdown.wait(ctx) // send the responses before the close frames
	h.mu.Lock()
	armed := slices.Collect(maps.Keys(h.gateway.armed))
	h.mu.Unlock()
	for _, s := range armed {
		s.close(nil, melody.CloseGoingAway, "the server is stopping")
		h.disarm(s) // call it here so that it is counted; the session would call it in another goroutine
	}
	h.shutdown.wait(ctx)
}
