package live_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/live"
	"github.com/perpetua-exchange/perpetua/handlers/live/livetest"
	"github.com/perpetua-exchange/perpetua/handlers/web/access"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

const (
	btc = "BTCUSDC_PERP"
	eth = "ETHUSDC_PERP"
)

// venue is a trading journal in memory with a hub that follows it: records are decided and folded by the real rules.
// It is a record.Follower and a live.Log.
type venue struct {
	record.Follower

	t   testing.TB
	hub *live.Hub
	url string

	mu        sync.RWMutex
	state     *trading.State
	entries   []record.Entry
	listeners []func(record.Entry, decide.State)
	applied   chan struct{}
	err       error
	broken    error        // of Read
	base      *record.Base // with which the log begins; nil for its genesis
	reading   func()       // called by Read before it passes anything, if set
	reads     atomic.Int64
	clock     scalar.Time
	tip       chan struct{} // closed once the fold has caught up
	rest      atomic.Value  // http.HandlerFunc, the REST interface; nothing is there otherwise

	telling sync.Mutex // of the hub, of its connections
	told    []decide.Payload
	deaf    bool

	tokens
}

// tokens is a live.Verifier and a live.Changes.
type tokens struct {
	known     sync.Map // token → func() *access.Principal
	asked     func()   // called before a token is judged, if set
	unknown   error    // the error for an unknown token; nil for any
	observers []func(access.Change)
}

// Listen implements live.Changes.
func (s *tokens) Listen(call func(access.Change)) { s.observers = append(s.observers, call) }

// change tells of a change, as the fold of the identity journal does.
func (s *tokens) change(c access.Change) {
	for _, call := range s.observers {
		call(c)
	}
}

// token makes a token for a principal that is valid for a while from its first use.
func (s *tokens) token(broker, customer string, lasts time.Duration, scopes ...string) string {
	token := strings.Join(append([]string{broker, customer, lasts.String(), time.Now().String()}, scopes...), "|")
	s.known.Store(token, sync.OnceValue(func() *access.Principal {
		return &access.Principal{Username: "u-" + broker, Broker: broker, Customer: customer, Scopes: scopes, Expires: time.Now().Add(lasts)}
	}))
	return token
}

func (s *tokens) reader(broker string) string {
	return s.token(broker, "", time.Hour, access.ScopeRead)
}

// Verify implements live.Verifier.
func (s *tokens) Verify(token, _ string) (*access.Principal, error) {
	use, ok := s.known.Load(token)
	if s.asked != nil {
		s.asked()
	}
	if !ok && s.unknown != nil {
		return nil, s.unknown
	}
	if !ok {
		return nil, errors.New("unknown")
	}
	if p := use.(func() *access.Principal)(); time.Now().Before(p.Expires) {
		return p, nil
	}
	return nil, errors.New("expired")
}

// nodes takes what the hub says of its connections, unless it is deaf.
type nodes struct{ v *venue }

// Submit implements submit.Submitter.
func (n nodes) Submit(_ context.Context, _ string, c decide.Command) (submit.Result, error) {
	n.v.telling.Lock()
	defer n.v.telling.Unlock()
	n.v.told = append(n.v.told, c.Payload.(decide.Payload))
	if n.v.deaf {
		return submit.Result{}, &submit.NotAcceptedError{Reason: "a test"}
	}
	d, err := n.v.state.Decide(n.v.stamp(), c)
	if err != nil {
		return submit.Result{}, &submit.RefusedError{Refusal: err.(*decide.Refusal)}
	}
	e := n.v.evolve(c.Recorded(), d)
	return submit.Result{Position: record.LogPosition{Journal: "trading", Sequence: e.Record.Sequence}, Entry: &e}, nil
}

// newVenue starts a hub over a venue with two instruments and the customers A1 and A2 of broker alpha and B1 of beta,
// each with a million.
func newVenue(t testing.TB, limits live.Limits, wrap live.Wrap, options ...func(*live.Config)) *venue {
	t.Helper()
	v := emptyVenue(t, limits, wrap, options...)
	v.fill()
	close(v.tip)
	return v
}

// emptyVenue starts a hub over a journal that still has to be replayed. It pings only if the limits say how often: on a busy machine
// a test may not read for longer than a node waits for a pong.
func emptyVenue(t testing.TB, limits live.Limits, wrap live.Wrap, options ...func(*live.Config)) *venue {
	t.Helper()
	if limits.PingEvery == 0 {
		limits.PingEvery, limits.PongWait = time.Hour, 2*time.Hour
	}
	v := &venue{t: t, state: trading.NewState(), applied: make(chan struct{}), tip: make(chan struct{}),
		clock: scalar.TimeOf(time.Date(2026, 3, 31, 8, 0, 0, 0, time.UTC))}
	cfg := live.Config{Follower: v, Journal: "trading", Tokens: v, Changes: &v.tokens, Log: v, Wrap: wrap, Limits: limits,
		REST: overHTTP(func(w http.ResponseWriter, r *http.Request) {
			if serve, ok := v.rest.Load().(http.HandlerFunc); ok {
				serve(w, r)
			} else {
				http.NotFound(w, r)
			}
		}), Nodes: nodes{v}}
	for _, set := range options {
		set(&cfg)
	}
	v.hub = live.New(cfg)
	v.serve()
	return v
}

// compressing has a hub compress messages for the clients that ask for it.
func compressing(c *live.Config) { c.Compression = true }

// overHTTP is a REST interface that answers all calls as requests over HTTP.
type overHTTP http.HandlerFunc

func (serve overHTTP) Do(ctx context.Context, c *rest.Call) rest.Reply {
	return c.Over(ctx, http.HandlerFunc(serve))
}

// fill lists the instruments and registers the customers.
func (v *venue) fill() {
	v.t.Helper()
	v.evolve(decide.Recorded{Type: "journal.genesis", Actor: decide.Engine}, decide.Decision{Outcome: decide.Accepted,
		Events: []decide.Event{&record.Genesis{Journal: "trading", Partitions: 1}}})
	for _, symbol := range []string{btc, eth} {
		v.do(trading.CommandListInstrument, &trading.ListInstrument{Instrument: instrument(symbol)})
		v.do(trading.CommandSetIndexPrice, &trading.SetIndexPrice{Symbol: symbol, Price: dec("1000")})
	}
	for _, code := range []string{"A1", "A2", "B1"} {
		v.do(trading.CommandRegisterCustomer, &trading.RegisterCustomer{CustomerCode: code, Broker: brokerOf(code)})
		v.do(trading.CommandMakeDeposit, &trading.MakeDeposit{CustomerCode: code, Currency: "USDC", Amount: 1_000_000 * fixed.Unit})
	}
}

func brokerOf(customer string) string {
	if customer[0] == 'A' {
		return "alpha"
	}
	return "beta"
}

func (v *venue) serve() {
	hub := v.hub // a test may put another one in its place
	e, err := rest.New(rest.Options{})
	if err != nil {
		v.t.Fatal(err)
	}
	hub.Register(e.Echo)
	server := httptest.NewServer(e)
	v.url = "ws" + strings.TrimPrefix(server.URL, "http") + live.Path
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := hub.Run(ctx); err != nil {
			v.t.Error(err)
		}
	})
	v.t.Cleanup(func() {
		stop()
		running.Wait()
		bounded, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = hub.Close(bounded)
		server.Close()
	})
}

func instrument(symbol string) market.Instrument {
	return market.Instrument{
		Symbol: symbol, Underlying: symbol[:3], QuoteCurrency: "USDC", SettlementCurrency: "USDC", Status: market.Open,
		PriceTick: dec("0.1"), AmountStep: dec("0.001"), MinAmount: dec("0.001"), MaxAmount: dec("1000"), ContractSize: dec("1"),
		InitMarginReq: dec("5.00"), MaintMarginReq: dec("2.50"), MaxLeverage: 13, FundingIntervalSeconds: 3600,
		PriceBand: dec("5.00"), LimitBand: dec("20.00"), MakerFee: dec("2"), TakerFee: dec("5"),
	}
}

func dec(s string) fixed.Decimal {
	d, err := fixed.ParseDecimal(s)
	if err != nil {
		panic(err)
	}
	return d
}

// do gives a command, which must be accepted or rejected with a record, and returns the record.
func (v *venue) do(command string, payload any) record.Entry {
	v.t.Helper()
	e, err := v.try(command, payload)
	if err != nil {
		v.t.Fatalf("%s %+v: %v", command, payload, err)
	}
	return e
}

func (v *venue) try(command string, payload any) (record.Entry, error) {
	customer := "A1"
	if place, ok := payload.(*trading.PlaceOrder); ok {
		customer = place.CustomerCode
	}
	return v.as(customer, command, payload)
}

// as is try in the name of a customer's broker.
func (v *venue) as(customer, command string, payload any) (record.Entry, error) {
	v.clock += scalar.Millisecond
	c := decide.Command{ID: scalar.ID{15: byte(len(v.entries))}, Type: command, Payload: payload, Actor: decide.Actor{Sub: "test", Broker: brokerOf(customer)}}
	d, err := v.state.Decide(v.stamp(), c)
	if err != nil {
		return record.Entry{}, err
	}
	if d.Repeated {
		return record.Entry{}, errors.New("repeated")
	}
	e := v.evolve(c.Recorded(), d)
	for v.state.Due(v.clock) != decide.Nothing {
		v.evolve(decide.Recorded{Type: "engine.step", Actor: decide.Engine}, v.state.Step(v.stamp(), false))
	}
	return e, nil
}

func (v *venue) stamp() decide.Stamp {
	return decide.Stamp{Journal: scalar.ID{1}, Sequence: int64(len(v.entries)), Time: v.clock}
}

// evolve appends a record and folds it as a follower does.
func (v *venue) evolve(c decide.Recorded, d decide.Decision) record.Entry {
	v.mu.Lock()
	defer v.mu.Unlock()
	at := v.stamp()
	e := record.Entry{Journal: at.Journal, Position: record.Position{Offset: at.Sequence, Sequence: at.Sequence},
		Record: &record.Record{Sequence: at.Sequence, Time: at.Time, Command: c, Outcome: d.Outcome, Events: d.Events}}
	v.entries = append(v.entries, e)
	v.state.Evolve(at, c, d.Outcome, d.Events)
	for _, call := range v.listeners {
		call(e, v.state)
	}
	close(v.applied)
	v.applied = make(chan struct{})
	return e
}

// View implements record.Follower.
func (v *venue) View(look func(decide.State, record.Position)) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	n := int64(len(v.entries)) - 1
	look(v.state, record.Position{Offset: n, Sequence: n})
}

// Position implements record.Follower.
func (v *venue) Position() (at record.Position) {
	v.View(func(_ decide.State, p record.Position) { at = p })
	return at
}

// Listen implements record.Follower.
func (v *venue) Listen(call func(record.Entry, decide.State)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.listeners = append(v.listeners, call)
}

// Wait implements record.Follower.
func (v *venue) Wait(ctx context.Context, sequence int64) error {
	for {
		v.mu.RLock()
		n, err, applied := int64(len(v.entries))-1, v.err, v.applied
		v.mu.RUnlock()
		if n >= sequence || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-applied:
		}
	}
}

// WaitTip implements record.Follower.
func (v *venue) WaitTip(ctx context.Context) error {
	select {
	case <-v.tip:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// CaughtUp implements record.Follower.
func (v *venue) CaughtUp() <-chan struct{} { return v.tip }

// fail ends the fold.
func (v *venue) fail(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.err = err
	close(v.applied)
	v.applied = make(chan struct{})
}

// Read implements live.Log.
func (v *venue) Read(ctx context.Context, after record.Position, each func(record.Entry) bool) error {
	v.mu.RLock()
	entries, broken, reading, base := slices.Clone(v.entries[after.Sequence+1:]), v.broken, v.reading, v.base
	v.mu.RUnlock()
	if base != nil && after.Sequence < base.Sequence-1 {
		return &record.TrimmedError{Base: *base, Have: after}
	}
	v.reads.Add(1)
	if reading != nil {
		reading()
	}
	for _, e := range entries {
		if broken != nil {
			return broken
		}
		if !each(e) {
			return nil
		}
	}
	<-ctx.Done()
	return ctx.Err()
}

func (v *venue) dial(token string) *livetest.Client {
	v.t.Helper()
	return livetest.Dial(v.t, v.url, token)
}

// limit is a limit order.
func limit(customer, symbol string, action order.Action, amount, price string) *trading.PlaceOrder {
	return &trading.PlaceOrder{CustomerCode: customer, Symbol: symbol, Action: action, Type: order.Limit, Amount: dec(amount),
		LimitPrice: dec(price)}
}

// place places an order and returns it as the record has it.
func (v *venue) place(payload *trading.PlaceOrder) *order.Order {
	v.t.Helper()
	before := len(v.entries)
	e := v.do(trading.CommandPlaceOrder, payload)
	for _, event := range e.Record.Events {
		if o, ok := event.(trading.OrderEvent); ok && o.After().CustomerCode == payload.CustomerCode && o.After().Created == e.Record.Time {
			return o.After()
		}
	}
	v.t.Fatalf("record %d has no such order", before)
	return nil
}
