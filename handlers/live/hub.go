package live

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"math"
	"net"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/olahol/melody"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/web"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
	"github.com/perpetua-exchange/perpetua/streams/trace"
)

// Follower is the fold of the trading journal; *follow.Fold is one.
type Follower interface {
	// View calls look with the state, a *trading.State; no record is applied meanwhile.
	View(look func(s decide.State, at record.Position))
	// Listen registers a function that is called after each record, in order, under the fold's lock.
	Listen(call func(e record.Entry, s decide.State))
	// Wait returns once a sequence is applied, or with the error that ended the fold.
	Wait(ctx context.Context, sequence int64) error
	// WaitTip returns once everything is applied that the log holds now.
	WaitTip(ctx context.Context) error
}

// Verifier judges tokens and API keys, by the address that they come from; *web.Tokens is one.
type Verifier interface {
	Verify(token, address string) (*web.Principal, error)
}

// Answered knows the positions that the node returned to its users; *web.Auth is one.
type Answered interface {
	// AwaitAnswered waits until source has reached the positions of a journal that the node returned to the user. The wait
	// is bounded.
	AwaitAnswered(ctx context.Context, username, journal string, source web.Waiter)
}

// Changes tells of what the identity journal changes in what tokens give; login.Fold does.
type Changes interface {
	// Listen registers a function that is called with each change, in order, before anything later is seen there.
	Listen(call func(web.Change))
}

// Config is what a hub needs. Changes, Answered, Log, REST, Nodes, Wrap, Logger and Limits may be left out.
type Config struct {
	Follower  Follower
	Journal   string // "trading"
	Partition int32
	Tokens    Verifier
	Changes   Changes
	Answered  Answered   // what users were answered is in their snapshots; nil for none
	Log       Log        // for subscriptions that resume; without it every resume is too old
	REST      web.Caller // by which orders are entered and what some channels show is asked for; without it neither is
	// Nodes takes what the node says of its connections to the journal's owner, wherever that is; without it no orders are
	// canceled when a connection ends.
	Nodes  submit.Submitter
	Wrap   Wrap
	Logger *slog.Logger
	Limits Limits
	// Compression says whether messages are compressed for the clients that offer permessage-deflate.
	Compression bool
	Seed        *record.Seed // that the follower started from, if it did
}

// Hub serves the WebSocket connections of one node.
type Hub struct {
	follower  Follower
	journal   string
	partition int32
	tokens    Verifier
	answered  Answered // nil for none
	log       Log
	rest      web.Caller
	wrap      Wrap
	logger    *slog.Logger
	limits    Limits
	compress  bool // for clients that offer it
	tracer    *trace.Tracer
	metrics   *metrics
	melody    *melody.Melody
	writers   *writers
	serving   sync.WaitGroup // handlers, and what they started
	turns     *turns         // of subscriptions that read the log
	parting   parting
	ready     chan struct{}   // closed once the fold has reached the log's end
	ctx       context.Context // ends with the hub
	cancel    context.CancelFunc

	mu       sync.Mutex // taken inside the fold's lock
	gateway  gateway
	pace     pace
	statuses map[string]market.Status // in force, after the last record
	sessions map[*session]struct{}
	admitted int
	closing  bool
	cutting  bool // the hub waits for nobody any more
	failed   bool // the log can't be read
	index    *index
	books    map[string]*bookStream
	changes  uint64       // of the identity journal, so far
	last     decide.Stamp // of the last record
	anchors  record.Anchors
}

// New returns a hub that listens to the follower from then on, so it is made before the follower runs.
func New(cfg Config) *Hub {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	h := &Hub{
		follower: cfg.Follower, journal: cfg.Journal, partition: cfg.Partition, tokens: cfg.Tokens,
		answered: cfg.Answered, log: cfg.Log,
		rest: cfg.REST, wrap: cfg.Wrap, logger: cfg.Logger, limits: cfg.Limits.withDefaults(),
		compress: cfg.Compression, metrics: newMetrics(), melody: melody.New(),
		sessions: make(map[*session]struct{}), index: newIndex(), books: make(map[string]*bookStream),
		turns: newTurns(), parting: parting{none: make(chan struct{}, 1)}, ready: make(chan struct{}),
		gateway: gateway{id: web.NewID(), nodes: cfg.Nodes, armed: make(map[*session]struct{})},
		pace:    newPace(), statuses: make(map[string]market.Status),
	}
	if seed := cfg.Seed; seed != nil {
		h.last = decide.Stamp{Journal: seed.Journal, Sequence: seed.Position.Sequence, Time: seed.Time}
		h.anchors.Fill(seed.Anchors)
	}
	h.writers = &writers{most: runtime.GOMAXPROCS(0), serving: &h.serving}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	if h.wrap == nil {
		h.wrap = func(c net.Conn) net.Conn { return c }
	}
	m := h.melody
	m.Config.MaxMessageSize = h.limits.MessageBytes
	m.Config.MessageBufferSize = 1 // nothing goes that way
	m.Config.PingPeriod = h.limits.PingEvery
	m.Config.PongWait = h.limits.PongWait
	m.Config.WriteWait = h.limits.WriteWait
	m.Upgrader.WriteBufferPool = &sync.Pool{}
	m.HandleConnect(h.connected)
	m.HandleDisconnect(h.disconnected)
	m.HandleMessage(func(socket *melody.Session, raw []byte) { h.handle(sessionOf(socket), raw) })
	m.HandleMessageBinary(func(socket *melody.Session, _ []byte) { h.handleBinary(sessionOf(socket)) })
	m.HandleClose(func(socket *melody.Session, code int, _ string) error { sessionOf(socket).echo(code); return nil })
	m.HandleError(h.socketError)
	h.follower.View(func(s decide.State, _ record.Position) {
		state := s.(*trading.State)
		state.TrackBook()
		h.noteStatuses(state) // those that it starts from: the first record after them may change one
	})
	h.follower.Listen(h.onRecord)
	if cfg.Changes != nil {
		cfg.Changes.Listen(h.observe)
	}
	return h
}

const sessionKey = "session"

func sessionOf(socket *melody.Session) *session { return socket.MustGet(sessionKey).(*session) }

func (h *Hub) socketError(socket *melody.Session, err error) {
	h.logger.Debug("socket", "remote", socket.RemoteAddr(), "error", err)
	var failed net.Error
	if errors.As(err, &failed) && failed.Timeout() { // of the reader: a write through melody only queues
		sessionOf(socket).noPong()
	}
}

// Trace has the hub tell a tracer, which may be nil, of what it hands to sockets. It is called before the follower runs.
func (h *Hub) Trace(t *trace.Tracer) { h.tracer = t }

// Run lets connections in once the fold has reached the log's end, ends the subscriptions if the fold fails, and
// returns nil when the context ends. It is called once.
func (h *Hub) Run(ctx context.Context) error {
	for h.follower.WaitTip(ctx) != nil && h.failure() == nil { // otherwise the brokers don't answer, or there is no log yet
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(tipRetry):
		}
	}
	close(h.ready)
	var beating sync.WaitGroup
	beating.Go(func() { h.keepPace(ctx) })
	defer beating.Wait()
	err := h.follower.Wait(ctx, math.MaxInt64)
	if ctx.Err() == nil {
		h.fail(err)
		<-ctx.Done()
	}
	return nil
}

// tipRetry is how long it takes until the log's end is asked for again.
const tipRetry = 200 * time.Millisecond

// failure returns the error that ended the fold, or nil while it goes on.
func (h *Hub) failure() error {
	ended, end := context.WithCancel(context.Background())
	end()
	if err := h.follower.Wait(ended, math.MaxInt64); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// fail ends every subscription: the log behind them can't be read.
func (h *Hub) fail(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.failed {
		return
	}
	h.logger.Error("the journal can't be followed; live subscriptions end", "journal", h.journal, "error", err)
	h.failed = true
	for s := range h.sessions {
		for _, sub := range s.subscriptions {
			h.expel(sub, sub.channel.failed, "the log behind the channel can't be read; subscribe again to recover")
		}
	}
}

// onRecord turns a record into messages. It runs under the fold's lock.
func (h *Hub) onRecord(e record.Entry, s decide.State) {
	h.mu.Lock()
	defer h.mu.Unlock()
	// Before the early return: whoever subscribes next, under the same locks, gets a snapshot as of this record, and whoever
	// resumes looks for where to begin among the anchors.
	h.last = e.Stamp()
	h.anchors.Note(e.Position)
	h.observeGateways(e)
	state := s.(*trading.State)
	h.publishInstruments(e, state)
	if len(h.index.readers) == 0 {
		return
	}
	h.pace.note(e)
	if h.tracer != nil {
		defer h.tracer.Followed("deliver "+h.journal, trace.RecordOf(h.journal, e), time.Now())
	}
	// Books come after the other messages of the record, and withdrawals last: a client gets all that a record did to an
	// instrument before it is told that there is nothing more to come.
	drafts := translate(e, func(c *channel) bool { return h.index.count[c] > 0 })
	for i, position := range positions(h.logPosition(e.Record.Sequence), drafts) {
		h.publish(&drafts[i], position.text)
	}
	h.publishAccounts(e, state)
	h.publishBooks(state, h.last)
	for _, event := range e.Record.Events {
		if withdrawn, ok := event.(*trading.InstrumentDelisted); ok {
			h.rejectWithdrawn(withdrawn.Symbol)
		}
	}
}

// publish encodes a draft, if anybody reads it, and queues it for all its readers.
func (h *Hub) publish(d *draft, position string) {
	lists, any := h.index.of(d)
	if !any {
		return
	}
	h.metrics.encoded.Add(1)
	m := &message{plain: encode(d.value), position: position}
	queued := int64(0)
	for _, readers := range lists {
		for _, sub := range readers {
			if sub.deliver(m) {
				queued++
			}
		}
	}
	h.metrics.queued.Add(queued)
}

// deliver queues a message for the subscription's session, and reports whether it did; the caller counts it.
func (s *subscription) deliver(m *message) bool {
	if s.catching != nil {
		s.catching.buffer(m, s.session.hub.limits.QueueMessages)
		return false
	}
	return s.session.deliver(m.frame(s.positions))
}

// sendTo is deliver for one message alone.
func (h *Hub) sendTo(sub *subscription, m *message) {
	if sub.deliver(m) {
		h.metrics.queued.Add(1)
	}
}

// drop ends a subscription silently. It is called under the hub's lock.
func (h *Hub) drop(sub *subscription) {
	delete(sub.session.subscriptions, sub.topic)
	h.index.remove(sub)
	h.metrics.subscriptions.WithLabelValues(sub.channel.name).Dec()
	if sub.channel == orderbook && len(h.index.readers[sub.key]) == 0 {
		delete(h.books, sub.key.name)
	}
}

// expel ends a subscription with an error message. It is called under the hub's lock.
func (h *Hub) expel(sub *subscription, code Code, message string) {
	h.drop(sub)
	h.metrics.errors.WithLabelValues(string(code)).Inc()
	sub.session.send(errorMessage(code, message, sub.topic))
}

// Close ends every connection in an orderly way: what is queued is written, then a close frame with the code 1001.
// When the context ends, what is left is cut.
func (h *Hub) Close(ctx context.Context) error {
	if err := h.failure(); err != nil {
		h.fail(err) // the node may stop for that very reason, before Run got to say it
	}
	h.mu.Lock()
	first := !h.closing
	h.closing = true
	open := slices.Collect(maps.Keys(h.sessions))
	h.mu.Unlock()
	if !first {
		return nil
	}
	// From here on admit lets nobody in. A connection amid its handshake is not in open: it finds closing set when it has
	// put itself among the sessions, under the same lock, and closes itself.
	h.cancel()
	for _, s := range open {
		s.close(nil, melody.CloseGoingAway, "the server is stopping")
		s.hasten()
	}
	done := make(chan struct{})
	go func() {
		h.serving.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		h.cutAll()
		<-done
	}
	// Only now: melody may leave a session's goroutine behind for ever if it is closed while one comes or goes.
	if err := h.melody.Close(); err != nil && !errors.Is(err, melody.ErrClosed) {
		return err
	}
	return ctx.Err()
}

// cutAll cuts the connections that are there, and has those cut that are still to come out of their handshake.
func (h *Hub) cutAll() {
	h.mu.Lock()
	h.cutting = true
	left := slices.Collect(maps.Keys(h.sessions))
	h.mu.Unlock()
	for _, s := range left {
		s.conn.cut()
	}
}

// verifyAfter is when a token should be looked at again.
func (h *Hub) verifyAfter(p *web.Principal) time.Duration {
	if p.Expires.IsZero() {
		return h.limits.VerifyEvery
	}
	return max(0, min(h.limits.VerifyEvery, time.Until(p.Expires)))
}
