package live

import (
	"context"
	"errors"
	"time"

	"github.com/olahol/melody"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/web"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// A connection may ask for its orders to be canceled when it ends (authenticate, cancel_on_disconnect). For the engine it
// is a session then, and its orders carry the session's id. The hub says when it ends; an order that is still on its way
// then is refused, since its session is gone. And as long as there are sessions the hub says every few seconds that it
// lives: a process that is killed says nothing, and 15 seconds after its last word the engine ends all its sessions.

// The rhythm in which the hub tells of itself and of sessions.
const (
	keepEvery  = 3 * time.Second
	tellWait   = 5 * time.Second // for one answer
	tellAgain  = 200 * time.Millisecond
	lastWords  = 2 * time.Second // that the ends of sessions are told for after the hub has been closed
	ofGateways = "gateway"       // the actor
)

// gateway is what a hub keeps of its sessions. The hub's lock guards it.
type gateway struct {
	id      scalar.ID
	nodes   submit.Submitter // the journal's owner, wherever it is; nil for none
	armed   map[*session]struct{}
	keeping bool
}

// arm makes the engine cancel the session's orders when it ends. It is called by the session's reader.
func (h *Hub) arm(s *session, r *request) *refusal {
	who := s.principal()
	switch {
	case h.gateway.nodes == nil || h.rest == nil:
		return refuse(InvalidMessage, "orders are not entered here")
	case who == nil || !who.Has(web.ScopeTrade):
		return refuse(Forbidden, "the token lacks the scope trade")
	case !s.tradingSession().IsZero():
		return nil
	case h.parting.begun.Load():
		return refuse(UpstreamError, "the connection is authenticated, but the server is stopping: its orders would not be canceled at its end")
	}
	id := web.NewID()
	ctx, cancel := context.WithTimeout(s.ctx, tellWait)
	defer cancel()
	result, err := h.tell(ctx, &trading.OpenSession{Session: id, Gateway: h.gateway.id, Username: who.Username, Broker: who.Broker})
	if err != nil {
		h.logger.Warn("the engine does not take a session", "error", err)
		h.serving.Go(func() { h.endSession(id) }) // it may have been opened all the same
		return refuse(UpstreamError, "the connection is authenticated, but the engine does not answer: its orders would not be canceled at its end")
	}
	ended := h.hold(s, id, result.Position.Sequence)
	if ended { // meanwhile, when there was nothing to disarm yet
		h.disarm(s)
	}
	return nil
}

// hold notes what the engine has opened for a session, and reports whether the session had ended before that.
func (h *Hub) hold(s *session, id scalar.ID, opened int64) (ended bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gateway.armed[s] = struct{}{}
	if !h.gateway.keeping {
		h.gateway.keeping = true
		h.serving.Go(h.keepGateway)
	}
	// Within the hub's lock: disarm, which finds the session among the armed from now on, must find its id with it. It would
	// tell the engine of the end of no session otherwise, and this one's orders would stay.
	s.mu.Lock()
	defer s.mu.Unlock()
	s.id, s.opened = id, opened
	return s.ended
}

// tradingSession returns the id of the engine's session, zero for none.
func (s *session) tradingSession() scalar.ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id
}

// disarm has the engine cancel what was placed over the session, if it asked for that. It is called when the session or its
// connection ends, whichever comes first. The id stays: what is entered from then on is refused by the engine.
func (h *Hub) disarm(s *session) {
	h.mu.Lock()
	_, armed := h.gateway.armed[s]
	delete(h.gateway.armed, s)
	h.mu.Unlock()
	if armed {
		id := s.tradingSession()
		h.parting.add()
		h.serving.Go(func() { // the caller is counted, so the count is not zero
			defer h.parting.end()
			h.endSession(id)
		})
	}
}

// endSession tells the engine that a session has ended, until it has heard. Once the hub is closed that is tried for a
// short while; then nobody says any more that the hub lives, by which the engine learns it, too.
func (h *Hub) endSession(id scalar.ID) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stop := context.AfterFunc(h.ctx, func() { time.AfterFunc(lastWords, cancel) })
	defer stop()
	for ctx.Err() == nil {
		once, done := context.WithTimeout(ctx, tellWait)
		_, err := h.tell(once, &trading.EndSession{Session: id})
		done()
		var refused *submit.RefusedError
		if err == nil || errors.As(err, &refused) { // also where it had ended already
			return
		}
		select {
		case <-time.After(tellAgain):
		case <-ctx.Done():
		}
	}
	h.logger.Warn("the end of a session could not be told; its orders are canceled when the engine misses this node", "session", id)
}

// keepGateway says that the hub lives, while it has sessions.
func (h *Hub) keepGateway() {
	tick := time.NewTicker(keepEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-h.ctx.Done():
			return
		}
		h.mu.Lock()
		if h.gateway.keeping = len(h.gateway.armed) > 0; !h.gateway.keeping {
			h.mu.Unlock()
			return
		}
		h.mu.Unlock()
		ctx, cancel := context.WithTimeout(h.ctx, tellWait)
		if _, err := h.tell(ctx, &trading.KeepGateway{Gateway: h.gateway.id}); err != nil && h.ctx.Err() == nil {
			h.logger.Warn("the engine was not told that this node lives", "error", err)
		}
		cancel()
	}
}

// tell sends the engine what this node has to say.
func (h *Hub) tell(ctx context.Context, p decide.Payload) (submit.Result, error) {
	return h.gateway.nodes.Submit(ctx, h.journal, decide.Command{ID: web.NewID(), Type: p.CommandType(), Actor: decide.Actor{System: ofGateways}, Payload: p})
}

// observeGateways ends the connections whose sessions a record ends because nothing was heard of this node. It is called
// under the hub's lock.
func (h *Hub) observeGateways(e record.Entry) {
	if len(h.gateway.armed) == 0 || len(e.Record.Events) < 2 { // a step and the event
		return
	}
	lost, ok := e.Record.Events[1].(*trading.GatewayLost)
	if !ok || lost.Gateway != h.gateway.id {
		return
	}
	for s := range h.gateway.armed {
		s.mu.Lock()
		before := !s.id.IsZero() && s.opened < e.Record.Sequence
		s.mu.Unlock()
		if before { // else it was opened after that
			h.metrics.errors.WithLabelValues(string(UpstreamError)).Inc()
			s.close(errorMessage(UpstreamError, "the engine had no word of this node for too long and has canceled the connection's orders"),
				melody.CloseInternalServerErr, string(UpstreamError))
		}
	}
}
