package live

import (
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/olahol/melody"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/web/access"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

func sizeText(bytes int64) string { return strconv.FormatInt(bytes, 10) + " bytes" }

// handle handles one request. Melody calls it from the goroutine that reads the connection.
func (h *Hub) handle(s *session, raw []byte) {
	if !utf8.Valid(raw) {
		h.notText(s)
		return
	}
	// Order entry is limited by Entries and by the user's rate limit, not by the rate of other requests.
	if e, err := parseEntry(raw); e != nil {
		if !s.isEnded() {
			h.beginEntry(s, e, err)
		}
		return
	}
	if !h.allowRequest(s, func() jsontext.Value { return idOf(raw) }) {
		return
	}
	r, err := parseRequest(raw)
	if err != nil {
		h.reject(s, r.id, InvalidMessage, err.Error())
		return
	}
	h.metrics.requests.WithLabelValues(r.op).Inc()
	switch r.op {
	case opPing:
		s.send(encode(ack{Op: "pong", ID: r.id}))
	case opAuthenticate:
		h.authenticate(s, r)
	case opSubscribe:
		h.awaitAnswered(s)
		for _, topic := range r.args {
			if refusal := h.subscribe(s, r, topic); refusal != nil {
				h.reject(s, r.id, refusal.code, refusal.message, topic)
			}
		}
	case opUnsubscribe:
		for _, topic := range r.args {
			h.unsubscribe(s, r, topic)
		}
	}
}

// notText ends the session of a client that sent invalid UTF-8 in a text message (RFC 6455, section 8.1). The
// WebSocket library does not check this.
func (h *Hub) notText(s *session) {
	const message = "a text message is not valid UTF-8"
	h.metrics.errors.WithLabelValues(string(InvalidMessage)).Inc()
	s.close(errorMessage(InvalidMessage, message), melody.CloseInvalidFramePayloadData, message)
}

// handleBinary rejects a binary message. It counts towards the rate limit like any other message.
func (h *Hub) handleBinary(s *session) {
	if h.allowRequest(s, func() jsontext.Value { return nil }) {
		h.reject(s, nil, InvalidMessage, "messages are JSON text, not binary")
	}
}

// allowRequest reports whether the next request is accepted: the session has not ended, and the rate limit is not exceeded.
// id returns the request's ID or nil; it is called only for an error.
func (h *Hub) allowRequest(s *session, id func() jsontext.Value) bool {
	if s.isEnded() {
		return false
	}
	if s.reader.bucket.Take(time.Now()) {
		s.reader.excess = 0
		return true
	}
	h.reject(s, id(), RateLimited, "requests come too fast; this one was not looked at")
	if s.reader.excess++; s.reader.excess > h.limits.RequestExcess {
		s.close(nil, melody.ClosePolicyViolation, string(RateLimited))
	}
	return false
}

// reject answers a request, or one topic of it, with an error.
func (h *Hub) reject(s *session, id jsontext.Value, code Code, message string, topics ...string) {
	h.metrics.errors.WithLabelValues(string(code)).Inc()
	s.send(errorReply(id, code, message, topics...))
}

// refusal is the reason for which a request fails.
type refusal struct {
	code    Code
	message string
}

func refuse(code Code, format string, args ...any) *refusal {
	return &refusal{code, fmt.Sprintf(format, args...)}
}

// subscribe creates a subscription and acknowledges it.
func (h *Hub) subscribe(s *session, r *request, topic string) *refusal {
	c, of, symbol, ok := parseTopic(topic)
	if !ok || h.rest == nil && (c == ticker || c == tickers || c == candles) {
		return refuse(UnknownTopic, "there is no such topic")
	}
	if !c.private && r.customer != "" {
		return refuse(InvalidMessage, "data.customer_code is for the private channels")
	}
	if r.resumeFrom != "" {
		if !c.resumable {
			return refuse(InvalidMessage, "resume_from is for channels of single events; this one begins with what there is now")
		}
		return h.resume(s, r, c, topic, symbol)
	}
	var refused *refusal
	h.follower.View(func(state decide.State, at record.Position) {
		h.mu.Lock()
		defer h.mu.Unlock()
		var sub *subscription
		venue := state.(*trading.State)
		if sub, refused = h.enter(s, r, c, topic, of, symbol, venue); refused != nil {
			return
		}
		s.send(encode(ack{"subscribed", topic, r.id}))
		h.begin(sub, symbol, venue, at.Sequence)
	})
	return refused
}

// awaitAnswered waits until the fold includes what the node has answered the session's user, so that snapshots include the
// user's own writes. It runs on the goroutine that reads the connection: only this session waits.
func (h *Hub) awaitAnswered(s *session) {
	if p := s.principal(); p != nil && h.answered != nil {
		h.answered.AwaitAnswered(s.ctx, p.Username, h.journal, h.follower)
	}
}

// begin sends a new subscription its initial messages. The caller holds the fold's lock and the hub's.
func (h *Hub) begin(sub *subscription, symbol string, venue *trading.State, sequence int64) {
	switch {
	case sub.channel == orderbook:
		h.sendSnapshot(sub, venue, sequence)
	case sub.channel.snapshots:
		h.beginAccounts(sub, venue)
	case sub.channel == tickers:
		for _, i := range venue.Instruments() {
			h.streams.conflation.wantTicker(i.Symbol)
		}
	case sub.channel == ticker:
		h.streams.conflation.wantTicker(symbol)
	case sub.channel == candles:
		h.streams.conflation.wantCandle(sub.key.name)
	}
}

// enter adds a subscription to the index if the session is allowed to have it. The caller holds the fold's lock and
// the hub's.
func (h *Hub) enter(s *session, r *request, c *channel, topic, of, symbol string, state *trading.State) (*subscription, *refusal) {
	if _, there := h.registry.sessions[s]; !there || s.isEnded() {
		return nil, refuse(InvalidMessage, "the connection is closed")
	}
	if s.subscriptions[topic] != nil {
		return nil, refuse(AlreadySubscribed, "the topic is subscribed to; unsubscribe first to change the subscription")
	}
	if h.streams.failed {
		return nil, refuse(c.failed, "the log behind the channel can't be read")
	}
	if len(s.subscriptions) >= h.limits.Subscriptions {
		return nil, refuse(RateLimited, "a connection has at most %d subscriptions", h.limits.Subscriptions)
	}
	k := key{c, ofSymbol, of}
	switch i, known := state.Instrument(symbol); {
	case c.private:
		var refused *refusal
		if k, refused = privateKey(s.principal(), c, r.customer, state); refused != nil {
			return nil, refused
		}
	case c.suffix == noSuffix:
	case !known:
		return nil, refuse(UnknownSymbol, "there is no such instrument")
	case i.Status == market.Withdrawn:
		return nil, refuse(c.refused, "the instrument is withdrawn")
	}
	sub := &subscription{session: s, channel: c, topic: topic, key: k, positions: r.positions}
	s.subscriptions[topic] = sub
	h.streams.index.add(sub)
	h.metrics.subscriptions.WithLabelValues(c.name).Inc()
	return sub, nil
}

// privateKey determines the messages that a principal receives: those of one account, of a broker, or of all brokers.
func privateKey(p *access.Principal, c *channel, customer string, state *trading.State) (key, *refusal) {
	if p == nil {
		return key{}, refuse(AuthenticationRequired, "the channel needs an authenticated connection")
	}
	if !p.Has(access.ScopeRead) {
		return key{}, refuse(Forbidden, "the token lacks the scope read")
	}
	if customer != "" {
		// The error for another broker's customer is the same as for an unknown one.
		if broker, known := state.CustomerBroker(customer); !known || !p.Sees(broker, customer) {
			return key{}, refuse(Forbidden, "the token does not give access to that customer")
		}
		return key{c, ofCustomer, customer}, nil
	}
	switch {
	case p.Customer != "":
		return key{c, ofCustomer, p.Customer}, nil
	case p.SeesAll():
		return key{c, ofVenue, ""}, nil
	}
	return key{c, ofBroker, p.Broker}, nil
}

func (h *Hub) unsubscribe(s *session, r *request, topic string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	sub := s.subscriptions[topic]
	if sub == nil {
		h.reject(s, r.id, NotSubscribed, "there is no subscription to the topic", topic)
		return
	}
	h.drop(sub)
	s.send(encode(ack{"unsubscribed", topic, r.id})) // the last message about the topic
}
