package live

import (
	"context"
	"errors"
	"time"

	"github.com/olahol/melody"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/web/access"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// A client may request that its orders are canceled when the connection ends (authenticate with
// cancel_on_disconnect). The engine then has a session for the connection, and orders of the connection carry the
// session's ID. The hub reports the end of the session; the engine refuses orders of an ended session that arrive
// later. While there are sessions, the hub also sends a keepalive every few seconds. If the process is killed, the
// engine ends all its sessions 15 seconds after the last keepalive.

// These constants control the messages to the engine.
const (
	keepEvery  = 3 * time.Second
	tellWait   = 5 * time.Second // timeout of one command
	tellAgain  = 200 * time.Millisecond
	lastWords  = 2 * time.Second // how long ends of sessions are reported after the hub is closed
	ofGateways = "gateway"       // name of the actor
)

// gateway is the state of a hub's engine sessions. The hub's lock guards it.
type gateway struct {
	id      scalar.ID
	nodes   submit.Submitter // submits to the journal's owner on any node; may be nil
	armed   map[*session]struct{}
	keeping bool
}

// arm opens an engine session, so that the orders are canceled when the connection ends. It is called by the
// session's reader.
func (h *Hub) arm(s *session, r *request) *refusal {
	who := s.principal()
	switch {
	case h.readOnly != nil:
		return refuse(ReadOnly, "this node follows the venue and enters no orders: none would be canceled at the end of the connection")
	case h.gateway.nodes == nil || h.rest == nil:
		return refuse(InvalidMessage, "orders are not entered here")
	case who == nil || !who.Has(access.ScopeTrade):
		return refuse(Forbidden, "the token lacks the scope trade")
	case !s.tradingSession().IsZero():
		return nil
	case h.shutdown.begun.Load():
		return refuse(UpstreamError, "the connection is authenticated, but the server is stopping: its orders would not be canceled at its end")
	}
	id := operation.NewID()
	ctx, cancel := context.WithTimeout(s.ctx, tellWait)
	defer cancel()
	result, err := h.tell(ctx, &trading.OpenSession{Session: id, Gateway: h.gateway.id, Username: who.Username, Broker: who.Broker})
	if err != nil {
		h.logger.Warn("the engine does not take a session", "error", err)
		h.serving.Go(func() { h.endSession(id) }) // the session may have been opened in spite of the error
		return refuse(UpstreamError, "the connection is authenticated, but the engine does not answer: its orders would not be canceled at its end")
	}
	ended := h.hold(s, id, result.Position.Sequence)
	if ended { // it ended before hold, when there was nothing to disarm
		h.disarm(s)
	}
	return nil
}

// hold records the engine session of a connection. It reports whether the connection had already ended.
func (h *Hub) hold(s *session, id scalar.ID, opened int64) (ended bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gateway.armed[s] = struct{}{}
	if !h.gateway.keeping {
		h.gateway.keeping = true
		h.serving.Go(h.keepGateway)
	}
	// Set the ID before releasing the hub's lock: disarm, which now finds the session in armed, must also find its
	// ID. Otherwise it would report the end of no session, and the orders would stay.
	s.mu.Lock()
	defer s.mu.Unlock()
	s.engine.id, s.engine.opened = id, opened
	return s.ending.ended
}

// tradingSession returns the ID of the engine session, or zero.
func (s *session) tradingSession() scalar.ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.engine.id
}

// disarm ends the engine session, if there is one, which cancels its orders. It is called when the session or the
// connection ends; a second call does nothing. The ID stays set, so the engine refuses later orders.
func (h *Hub) disarm(s *session) {
	h.mu.Lock()
	_, armed := h.gateway.armed[s]
	delete(h.gateway.armed, s)
	h.mu.Unlock()
	if armed {
		id := s.tradingSession()
		h.shutdown.add()
		h.serving.Go(func() { // Add is safe: the counter includes the caller
			defer h.shutdown.end()
			h.endSession(id)
		})
	}
}

// endSession reports the end of a session to the engine until it succeeds. After the hub is closed, it tries only for
// lastWords; after that, the missing keepalives also end the session.
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
		if err == nil || errors.As(err, &refused) { // a refusal means that it had already ended
			return
		}
		select {
		case <-time.After(tellAgain):
		case <-ctx.Done():
		}
	}
	h.logger.Warn("the end of a session could not be told; its orders are canceled when the engine misses this node", "session", id)
}

// keepGateway sends keepalives while there are sessions.
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

// tell submits a command about sessions to the engine.
func (h *Hub) tell(ctx context.Context, p decide.Payload) (submit.Result, error) {
	return h.gateway.nodes.Submit(ctx, h.journal, decide.Command{ID: operation.NewID(), Type: p.CommandType(), Actor: decide.Actor{System: ofGateways}, Payload: p})
}

// observeGateways closes the connections after the engine has ended their sessions for lack of keepalives. The
// caller holds the hub's lock.
func (h *Hub) observeGateways(e record.Entry) {
	if len(h.gateway.armed) == 0 || len(e.Record.Events) < 2 { // such a record has a step and this event
		return
	}
	lost, ok := e.Record.Events[1].(*trading.GatewayLost)
	if !ok || lost.Gateway != h.gateway.id {
		return
	}
	for s := range h.gateway.armed {
		s.mu.Lock()
		before := !s.engine.id.IsZero() && s.engine.opened < e.Record.Sequence
		s.mu.Unlock()
		if before { // otherwise the session was opened later
			h.metrics.errors.WithLabelValues(string(UpstreamError)).Inc()
			s.close(errorMessage(UpstreamError, "the engine had no word of this node for too long and has canceled the connection's orders"),
				melody.CloseInternalServerErr, string(UpstreamError))
		}
	}
}
