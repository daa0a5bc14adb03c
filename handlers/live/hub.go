package live

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"math"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/olahol/melody"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/web/access"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/handlers/web/slots"
	"github.com/perpetua-exchange/perpetua/streams/logclock"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
	"github.com/perpetua-exchange/perpetua/streams/trace"
)

// Verifier verifies tokens and API keys sent from an address. *access.Tokens implements it.
type Verifier interface {
	Verify(token, address string) (*access.Principal, error)
}

// Answered has the positions that the node returned to its users. *rest.Auth implements it.
type Answered interface {
	// AwaitAnswered waits until source has reached the positions of a journal that the node returned to the user. The wait
	// is bounded.
	AwaitAnswered(ctx context.Context, username, journal string, source operation.Waiter)
}

// Changes reports how the identity journal changes the rights of tokens. login.Changes implements it.
type Changes interface {
	// Listen registers a function that is called with each change, in order, before later records become visible.
	Listen(call func(access.Change))
}

// Config holds the dependencies of a hub. Changes, Log, REST, Nodes, Wrap, Logger, Limits and Networks are optional.
type Config struct {
	Follower  record.Follower // of the trading journal
	Journal   string          // "trading"
	Partition int32
	Tokens    Verifier
	Changes   Changes
	Answered  Answered    // new subscriptions wait for its positions; nil for none
	Log       Log         // for resumed subscriptions; if nil, every resume is too old
	REST      rest.Caller // executes order entry and the reads of some channels; if nil, these are unavailable
	// Nodes submits commands about sessions to the journal's owner on any node. If it is nil, no orders are canceled
	// when a connection ends.
	Nodes  submit.Submitter
	Wrap   Wrap
	Logger *slog.Logger
	Limits Limits
	// Compression enables permessage-deflate for clients that offer it.
	Compression bool
	Seed        *record.Seed // the snapshot from which the follower started, or nil
	// ReadOnly is the response to order entry at a node that only follows the venue; nil where orders are entered.
	ReadOnly *problem.Problem
	// Networks has the limits of the networks of clients without a valid token. If it is nil, neither their connections nor
	// their guesses of a token are limited.
	Networks *access.Networks
}

// Hub serves the WebSocket connections of one node. Without another note, a field is constant after New.
type Hub struct {
	sources
	connections
	limits  Limits
	logger  *slog.Logger
	metrics *metrics
	tracer  *trace.Tracer

	shutdown    shutdown        // of order entry; any goroutine may call its methods
	ready       chan struct{}   // closed when the fold has reached the log's end
	ctx         context.Context // ends when the hub is closed
	cancel      context.CancelFunc
	serving     sync.WaitGroup // counts handlers and the goroutines that they started
	replaySlots *slots.Slots   // limits subscriptions that read the log

	// mu guards the rest, except for streams.anchors, which has its own mutex, and constants of gateway. It is acquired after the fold's lock, and before a session's.
	mu       sync.Mutex
	registry registry
	streams  streams
	gateway  gateway
}

// sources hold the state, the log, and the interfaces that a hub reads.
type sources struct {
	follower  record.Follower
	journal   string
	clock     *logclock.Clock // of the journal
	partition int32
	tokens    Verifier
	answered  Answered // nil for none
	log       Log
	rest      rest.Caller      // reads of some channels, and order entry
	readOnly  *problem.Problem // the response to order entry, or nil
	networks  *access.Networks
}

// connections holds what turns upgraded requests into connections and writes to them.
type connections struct {
	wrap     Wrap
	compress bool // for clients that offer compression
	melody   *melody.Melody
	writers  *writers
}

// registry holds the sessions. It is changed by the goroutines that serve connections, by Close, and by the follower of the
// identity journal.
type registry struct {
	sessions map[*session]struct{}
	admitted int // connections, including those in their handshake
	// anonymous counts those that were opened without a token, by network, where networks are limited.
	anonymous map[netip.Prefix]int
	closing   bool
	cutting   bool   // new connections must be cut immediately
	changes   uint64 // number of changes of the identity journal
	// unverified are the sessions that verifyUnverified is to take next. verifying says that it runs.
	unverified map[*session]struct{}
	verifying  bool
}

// streams holds the subscriptions, and the state that their messages depend on. The fold's goroutine changes it with each
// record, the goroutine of conflation at each interval, and the readers of sessions when they subscribe.
type streams struct {
	index      *index
	books      map[string]*bookStream
	conflation conflation
	statuses   map[string]market.Status // effective statuses after the last record
	failed     bool                     // the log cannot be read
	last       decide.Stamp             // of the last record
	anchors    record.Anchors
}

// New returns a hub and registers its listeners. It must be called before the follower runs.
func New(cfg Config) *Hub {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	h := &Hub{
		sources: sources{follower: cfg.Follower, journal: cfg.Journal, clock: logclock.New(time.Now), partition: cfg.Partition, tokens: cfg.Tokens,
			answered: cfg.Answered, log: cfg.Log, rest: cfg.REST, readOnly: cfg.ReadOnly, networks: cfg.Networks},
		connections: connections{wrap: cfg.Wrap, compress: cfg.Compression, melody: melody.New()},
		limits:      cfg.Limits.withDefaults(), logger: cfg.Logger, metrics: newMetrics(),
		shutdown: shutdown{none: make(chan struct{}, 1)},
		ready:    make(chan struct{}), replaySlots: slots.New(maxResuming, maxResumingOfUser),
		registry: registry{sessions: make(map[*session]struct{}), anonymous: make(map[netip.Prefix]int), unverified: make(map[*session]struct{})},
		streams: streams{index: newIndex(), books: make(map[string]*bookStream), conflation: newConflation(),
			statuses: make(map[string]market.Status)},
		gateway: gateway{id: operation.NewID(), nodes: cfg.Nodes, armed: make(map[*session]struct{})},
	}
	if seed := cfg.Seed; seed != nil {
		h.streams.last = decide.Stamp{Journal: seed.Journal, Sequence: seed.Position.Sequence, Time: seed.Time}
		h.streams.anchors.Fill(seed.Anchors)
	}
	h.writers = &writers{most: runtime.GOMAXPROCS(0), serving: &h.serving}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	if h.wrap == nil {
		h.wrap = func(c net.Conn) net.Conn { return c }
	}
	m := h.melody
	m.Config.MaxMessageSize = h.limits.MessageBytes
	m.Config.MessageBufferSize = 1 // unused: messages do not pass through melody
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
		h.clock.Start(state)
		h.noteStatuses(state) // the statuses before the first record, which may change one
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
	if errors.As(err, &failed) && failed.Timeout() { // an error of the reader, because a write through melody only queues
		sessionOf(socket).noPong()
	}
}

// Trace sets the tracer for messages handed to sockets; it may be nil. Trace must be called before the follower runs.
func (h *Hub) Trace(t *trace.Tracer) { h.tracer = t }

// Run accepts connections when the fold has reached the log's end, and ends the subscriptions if the fold fails. It
// returns nil when the context ends. It must be called only once.
func (h *Hub) Run(ctx context.Context) error {
	select {
	case <-h.follower.CaughtUp():
	case <-ctx.Done():
		return nil
	}
	close(h.ready)
	var beating sync.WaitGroup
	beating.Go(func() { h.runConflation(ctx) })
	defer beating.Wait()
	err := h.follower.Wait(ctx, math.MaxInt64)
	if ctx.Err() == nil {
		h.fail(err)
		<-ctx.Done()
	}
	return nil
}

// failure returns the error that stopped the fold, or nil while it runs.
func (h *Hub) failure() error {
	ended, end := context.WithCancel(context.Background())
	end()
	if err := h.follower.Wait(ended, math.MaxInt64); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// fail ends all subscriptions because the log cannot be read.
func (h *Hub) fail(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.streams.failed {
		return
	}
	h.logger.Error("the journal can't be followed; live subscriptions end", "journal", h.journal, "error", err)
	h.streams.failed = true
	for s := range h.registry.sessions {
		for _, sub := range s.subscriptions {
			h.expel(sub, sub.channel.failed, "the log behind the channel can't be read; subscribe again to recover")
		}
	}
}

// onRecord converts a record to messages. It runs under the fold's lock.
func (h *Hub) onRecord(e record.Entry, s decide.State) {
	h.mu.Lock()
	defer h.mu.Unlock()
	// Do this before the early return: the next subscription, created under the same locks, gets a snapshot as of
	// this record, and resumed subscriptions start from the anchors.
	h.clock.Reach(&e)
	h.streams.last = e.Stamp()
	h.streams.anchors.Note(e.Position)
	h.observeGateways(e)
	state := s.(*trading.State)
	h.publishInstruments(e, state)
	if len(h.streams.index.readers) == 0 {
		return
	}
	h.streams.conflation.note(e)
	if h.tracer != nil {
		defer h.tracer.Followed("deliver "+h.journal, trace.RecordOf(h.journal, e), time.Now())
	}
	// Publish books after the other messages of the record, and withdrawals last, so that a client receives
	// everything that the record did to an instrument before the end of the subscription.
	drafts := translate(e, func(c *channel) bool { return h.streams.index.count[c] > 0 })
	for i, position := range positions(h.logPosition(e.Record.Sequence), drafts) {
		h.publish(&drafts[i], position.text)
	}
	h.publishAccounts(e, state)
	h.publishBooks(state, h.streams.last)
	for _, event := range e.Record.Events {
		if withdrawn, ok := event.(*trading.InstrumentDelisted); ok {
			h.rejectWithdrawn(withdrawn.Symbol)
		}
	}
}

// publish encodes a draft, if it has subscribers, and queues it for all subscriptions.
func (h *Hub) publish(d *draft, position string) {
	h.publishTo(d, position, func(*subscription) bool { return true })
}

// publishTo is publish for the subscriptions for which to returns true.
func (h *Hub) publishTo(d *draft, position string, to func(*subscription) bool) {
	lists, any := h.streams.index.of(d)
	if !any {
		return
	}
	h.metrics.encoded.Add(1)
	m := &message{plain: encode(d.value), position: position}
	queued := int64(0)
	for _, readers := range lists {
		for _, sub := range readers {
			if to(sub) && sub.deliver(m) {
				queued++
			}
		}
	}
	h.metrics.queued.Add(queued)
}

// deliver queues a message for the subscription's session and reports whether it did. The caller updates the metric.
func (s *subscription) deliver(m *message) bool {
	if s.catching != nil {
		s.catching.buffer(m, s.session.hub.limits.QueueMessages)
		return false
	}
	return s.session.deliver(m.frame(s.positions))
}

// sendTo is deliver for a single message, with the metric.
func (h *Hub) sendTo(sub *subscription, m *message) {
	if sub.deliver(m) {
		h.metrics.queued.Add(1)
	}
}

// drop ends a subscription without a message. The caller holds the hub's lock.
func (h *Hub) drop(sub *subscription) {
	delete(sub.session.subscriptions, sub.topic)
	h.streams.index.remove(sub)
	h.metrics.subscriptions.WithLabelValues(sub.channel.name).Dec()
	if sub.channel == orderbook && len(h.streams.index.readers[sub.key]) == 0 {
		delete(h.streams.books, sub.key.name)
	}
}

// expel ends a subscription with an error message. The caller holds the hub's lock.
func (h *Hub) expel(sub *subscription, code Code, message string) {
	h.drop(sub)
	h.metrics.errors.WithLabelValues(string(code)).Inc()
	sub.session.send(errorMessage(code, message, sub.topic))
}

// Close ends every connection: it writes the queued messages and then a close frame with the code 1001. When the
// context ends, it cuts the remaining connections.
func (h *Hub) Close(ctx context.Context) error {
	if err := h.failure(); err != nil {
		h.fail(err) // the node may stop because of this error before Run reports it
	}
	h.mu.Lock()
	first := !h.registry.closing
	h.registry.closing = true
	open := slices.Collect(maps.Keys(h.registry.sessions))
	h.mu.Unlock()
	if !first {
		return nil
	}
	// From here on, admit refuses connections. A connection in its handshake is not in open: after it has added
	// itself to the sessions, under the same lock, it finds closing set and closes itself.
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
	// Close melody last: if it is closed while a session starts or ends, it may leak a goroutine.
	if err := h.melody.Close(); err != nil && !errors.Is(err, melody.ErrClosed) {
		return err
	}
	return ctx.Err()
}

// cutAll cuts all connections, including those still in their handshake when they complete it.
func (h *Hub) cutAll() {
	h.mu.Lock()
	h.registry.cutting = true
	left := slices.Collect(maps.Keys(h.registry.sessions))
	h.mu.Unlock()
	for _, s := range left {
		s.conn.cut()
	}
}

// verifyAfter returns the time until the next verification of a token.
func (h *Hub) verifyAfter(p *access.Principal) time.Duration {
	if p.Expires.IsZero() {
		return h.limits.VerifyEvery
	}
	return max(0, min(h.limits.VerifyEvery, time.Until(p.Expires)))
}
