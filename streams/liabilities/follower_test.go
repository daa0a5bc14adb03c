package liabilities_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	gocloud "gocloud.dev/blob"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	form "github.com/perpetua-exchange/perpetua/domain/liabilities"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/commitment"
	"github.com/perpetua-exchange/perpetua/streams/liabilities"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/seal"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

const perp = "BTCUSDC_PERP"

// begin is the time at which venues begin, and that of the followers' clocks.
const begin = scalar.Time(1_767_225_600_000_000)

// venue is the owner of a trading journal, with the followers that read it.
type venue struct {
	t      *testing.T
	bucket *gocloud.Bucket
	box    *seal.Box

	mu        sync.Mutex
	state     *trading.State
	now       scalar.Time
	tip       record.Position
	id        scalar.ID
	followers []*liabilities.Follower
	recorded  []form.Recorded
	repeated  int
	changed   chan struct{} // closed and replaced after each submission
	fault     error         // of submissions
	passed    func()        // called after each record, under the lock; may be nil
}

func openVenue(t *testing.T) *venue {
	t.Helper()
	v := &venue{t: t, state: trading.NewState(), now: begin, tip: record.Before, id: scalar.ID{9}, changed: make(chan struct{})}
	var err error
	if v.box, err = seal.New(make([]byte, seal.KeySize)); err != nil {
		t.Fatal(err)
	}
	if v.bucket, err = blob.Open(t.Context(), "mem://"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.bucket.Close() })
	operator := decide.Actor{Sub: "operator", Broker: "venue"}
	for rules := 2; rules <= trading.Rules().Newest(); rules++ {
		v.do(operator, &decide.ActivateRules{Rules: rules})
	}
	d := func(n int64, scale uint8) fixed.Decimal { return fixed.Decimal{Coef: n, Scale: scale} }
	v.do(operator, &trading.ListInstrument{Instrument: market.Instrument{Symbol: perp, Underlying: "BTC", QuoteCurrency: "USDC", SettlementCurrency: "USDC",
		PriceTick: d(1, 1), AmountStep: d(1, 3), MinAmount: d(1, 3), MaxAmount: d(1000, 0), ContractSize: d(1, 0), InitMarginReq: d(5, 0), MaintMarginReq: d(25, 1),
		MaxLeverage: 13, FundingIntervalSeconds: 3600, PriceBand: d(5, 0), LimitBand: d(20, 0), MakerFee: d(2, 0), TakerFee: d(5, 0)}})
	v.do(operator, &trading.SetIndexPrice{Symbol: perp, Price: d(65000, 0)})
	for i := range 20 {
		code := fmt.Sprint("C-", i)
		v.do(operator, &trading.RegisterCustomer{CustomerCode: code, Broker: "alpha"})
		v.do(operator, &trading.MakeDeposit{CustomerCode: code, Currency: "USDC", Amount: fixed.Money(1+i) * 1_234_567_891})
	}
	return v
}

// do decides a command and has the followers read its record.
func (v *venue) do(actor decide.Actor, p decide.Payload) decide.Decision {
	v.t.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	d, err := v.decide(actor, p)
	if err != nil {
		v.t.Fatalf("%s: %v", p.CommandType(), err)
	}
	return d
}

func (v *venue) stamp() decide.Stamp {
	return decide.Stamp{Journal: v.id, Sequence: v.tip.Sequence + 1, Time: v.now, Prev: v.tip.Hash}
}

func (v *venue) decide(actor decide.Actor, p decide.Payload) (decide.Decision, error) {
	c := decide.Command{ID: scalar.ID{1}, Type: p.CommandType(), Actor: actor, Payload: p}
	for v.state.Due(v.now) == decide.Blocking {
		v.append(decide.Recorded{Type: "engine.step", Actor: decide.Engine}, v.state.Step(v.stamp(), false))
	}
	d, err := v.state.Decide(v.stamp(), c)
	if err == nil && !d.Repeated {
		v.append(c.Recorded(), d)
	}
	return d, err
}

func (v *venue) append(c decide.Recorded, d decide.Decision) {
	at := v.stamp()
	r := &record.Record{Sequence: at.Sequence, Prev: at.Prev, Time: at.Time, Command: c, Input: d.Input, Outcome: d.Outcome, Events: d.Events}
	value, err := record.Encode(nil, r)
	if err != nil {
		v.t.Fatal(err)
	}
	v.tip = record.Position{Sequence: at.Sequence, Hash: sha256.Sum256(value), Offset: at.Sequence}
	v.state.Evolve(at, c, d.Outcome, d.Events)
	if v.passed != nil {
		v.passed()
	}
	for _, e := range d.Events {
		if e, ok := e.(*trading.LiabilitiesRecorded); ok {
			v.recorded = append(v.recorded, form.Recorded{Sequence: at.Sequence, Statement: e.Statement})
		}
	}
	for _, f := range v.followers {
		f.Observe(record.Entry{Record: r, Position: v.tip, Journal: v.id, Value: value}, v.state)
	}
}

// instant lets the next instant of funding pass, and some more commands if others is set.
func (v *venue) instant(others int) {
	v.t.Helper()
	v.mu.Lock()
	_, next, _ := v.state.Funding(perp)
	v.now = next
	v.mu.Unlock()
	for i := range 1 + others {
		v.do(decide.Actor{Sub: "operator", Broker: "venue"}, &trading.SetIndexPrice{Symbol: perp, Price: fixed.Decimal{Coef: 65000 + int64(i)}})
	}
}

func (v *venue) store() liabilities.Store {
	return liabilities.Store{Blobs: blob.NewStore(v.bucket), Box: v.box}
}

func keys(_ context.Context, sequence int64) (*commitment.EpochKey, error) {
	return commitment.ParseEpochKey(append(make([]byte, commitment.KeySize-1), byte(sequence/4096)))
}

// submit has a statement decided.
func (v *venue) submit(_ context.Context, p *trading.RecordLiabilities) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	defer func() {
		close(v.changed)
		v.changed = make(chan struct{})
	}()
	if v.fault != nil {
		return v.fault
	}
	d, err := v.decide(decide.Actor{System: "liabilities"}, p)
	var refusal *decide.Refusal
	if errors.As(err, &refusal) {
		return &submit.RefusedError{Refusal: refusal}
	}
	if d.Repeated {
		v.repeated++
	}
	return err
}

// await waits until a condition holds, which submissions change.
func (v *venue) await(what string, is func() bool) {
	v.t.Helper()
	limit := time.After(time.Minute)
	for {
		v.mu.Lock()
		done, changed := is(), v.changed
		v.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-limit:
			v.t.Fatalf("still not: %s", what)
		}
	}
}

// follow starts a node that states liabilities. It reads what comes after.
func (v *venue) follow() (f *liabilities.Follower, stop func()) {
	f = liabilities.NewFollower(liabilities.Config{Store: v.store(), Keys: keys, Submit: v.submit, Logger: slog.New(slog.DiscardHandler),
		Now: func() time.Time { return begin.Std() }})
	v.mu.Lock()
	v.followers = append(v.followers, f)
	v.mu.Unlock()
	ctx, cancel := context.WithCancel(v.t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = f.Run(ctx)
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-ended
		v.mu.Lock()
		defer v.mu.Unlock()
		for i, o := range v.followers {
			if o == f {
				v.followers = append(v.followers[:i:i], v.followers[i+1:]...)
				break
			}
		}
	})
	v.t.Cleanup(stop)
	return f, stop
}

// TestTwoNodes: both state each instant, and it is recorded once. Every customer has a proof of every statement.
func TestTwoNodes(t *testing.T) {
	v := openVenue(t)
	v.follow()
	v.follow()
	prover := liabilities.NewProver(v.store(), keys, func(context.Context) (scalar.ID, error) { return v.id, nil }, nil)
	for n := 1; n <= 3; n++ {
		v.instant(n)
		v.await("recorded once and repeated once", func() bool { return len(v.recorded) == n && v.repeated == n })
	}
	for _, r := range v.recorded {
		published := r.Publish()
		for i := range 20 {
			p, err := prover.Prove(t.Context(), r, fmt.Sprint("C-", i))
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Verify(&published); err != nil {
				t.Error(err)
			}
		}
		if _, err := prover.Prove(t.Context(), r, "nobody"); !errors.Is(err, liabilities.ErrUnknownCustomer) {
			t.Errorf("nobody: %v", err)
		}
	}
	other := v.recorded[0]
	other.Root[3]++
	if _, err := liabilities.NewProver(v.store(), keys, func(context.Context) (scalar.ID, error) { return v.id, nil }, nil).Prove(t.Context(), other, "C-1"); err == nil {
		t.Error("another root is proven")
	}
	if err := v.store().Sweep(t.Context(), v.id, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, err := prover.Prove(t.Context(), v.recorded[0], "C-1"); !errors.Is(err, liabilities.ErrGone) {
		t.Errorf("after the sweep: %v", err)
	}
}

// TestRestartInTheMiddle: a node that stopped after it kept the balances leaves an instant that the next one states, although it
// reads only what comes after.
func TestRestartInTheMiddle(t *testing.T) {
	v := openVenue(t)
	v.fault = &submit.NotAcceptedError{Reason: "no owner"}
	_, stop := v.follow()
	v.instant(0)
	kept := func() int {
		all, err := v.store().Blobs.List(t.Context(), "liabilities/")
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	v.await("balances are kept", func() bool { return kept() == 1 })
	stop()
	v.mu.Lock()
	v.fault = nil
	v.mu.Unlock()
	next, stop := v.follow()
	v.do(decide.Actor{Sub: "operator", Broker: "venue"}, &trading.SetIndexPrice{Symbol: perp, Price: fixed.Decimal{Coef: 65100}})
	v.await("recorded", func() bool { return len(v.recorded) == 1 })
	if err := v.recorded[0].Check(); err != nil {
		t.Error(err)
	}
	v.do(decide.Actor{Sub: "operator", Broker: "venue"}, &trading.SetIndexPrice{Symbol: perp, Price: fixed.Decimal{Coef: 65100}})
	stop()

	v.instant(2) // which nobody states
	v.follow()
	v.do(decide.Actor{Sub: "operator", Broker: "venue"}, &trading.SetIndexPrice{Symbol: perp, Price: fixed.Decimal{Coef: 65200}})
	v.instant(0)
	v.await("the next one is recorded", func() bool { return len(v.recorded) == 2 })
	if last := v.recorded[1]; last.Timestamp-v.recorded[0].Timestamp != 2*scalar.Hour || next.Last() != v.recorded[0].Position.Sequence {
		t.Errorf("%+v", v.recorded)
	}
}

// TestStatementsAgain: the same state and key give the same statement and the same bytes in the bucket, and a state that was saved
// and read back gives them too.
func TestStatementsAgain(t *testing.T) {
	v := openVenue(t)
	v.follow()
	v.instant(0)
	v.await("recorded", func() bool { return len(v.recorded) == 1 })
	text := trading.Codec().Append(nil, v.state)
	read, err := trading.Codec().Read(text)
	if err != nil {
		t.Fatal(err)
	}
	key, _ := keys(t.Context(), 1)
	var before *liabilities.Balances
	for _, s := range []*trading.State{v.state, read.(*trading.State)} {
		instant, _ := s.FundingInstant()
		b, err := liabilities.State(liabilities.Of(s, instant), key)
		if err != nil {
			t.Fatal(err)
		}
		if b.Statement.Root != v.recorded[0].Root || b.Statement.Total != v.recorded[0].Total {
			t.Errorf("%+v, not %+v", b.Statement, v.recorded[0])
		}
		if before != nil && fmt.Sprint(*before) != fmt.Sprint(*b) {
			t.Errorf("%+v and %+v", *before, *b)
		}
		before = b
	}
}

// TestDamagedBalances cuts and changes the balances in the bucket: none are read.
func TestDamagedBalances(t *testing.T) {
	v := openVenue(t)
	v.follow()
	v.instant(0)
	v.await("recorded", func() bool { return len(v.recorded) == 1 })
	store, ctx := v.store(), t.Context()
	all, err := store.Blobs.List(ctx, "liabilities/")
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	at := v.recorded[0].Position
	whole, err := store.Blobs.Read(ctx, all[0].Key, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Load(ctx, v.id, at); err != nil {
		t.Fatal(err)
	}
	for i := range whole {
		changed := append([]byte(nil), whole...)
		changed[i] ^= 1
		for _, damaged := range [][]byte{changed, whole[:i]} {
			if err := store.Blobs.Write(ctx, all[0].Key, damaged, time.Minute); err != nil {
				t.Fatal(err)
			}
			if b, err := store.Load(ctx, v.id, at); err == nil {
				t.Fatalf("byte %d is damaged, and read as %+v", i, b)
			}
		}
	}
	if _, err := store.Load(ctx, v.id, form.Position{Sequence: at.Sequence, Hash: fmt.Sprintf("%064d", 1)}); !errors.Is(err, liabilities.ErrGone) {
		t.Errorf("another history: %v", err)
	}
}

// TestTornBalances: balances that a full disk has cut off are written again, and proven meanwhile from the state at that time.
func TestTornBalances(t *testing.T) {
	v := openVenue(t)
	past := &pastStates{states: map[int64][]byte{}, at: map[int64]record.Position{}}
	v.mu.Lock()
	v.passed = func() {
		past.states[v.tip.Sequence], past.at[v.tip.Sequence] = trading.Codec().Append(nil, v.state), v.tip
	}
	v.mu.Unlock()
	v.follow()
	v.instant(1)
	v.await("recorded", func() bool { return len(v.recorded) == 1 })
	store, ctx, at := v.store(), t.Context(), v.recorded[0].Position
	all, err := store.Blobs.List(ctx, "liabilities/")
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	whole, err := store.Load(ctx, v.id, at)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{0, 40} {
		sealed, err := store.Blobs.Read(ctx, all[0].Key, 1<<20)
		if err == nil {
			err = store.Blobs.Write(ctx, all[0].Key, sealed[:size], time.Minute)
		}
		if err != nil {
			t.Fatal(err)
		}
		prover := liabilities.NewProver(store, keys, func(context.Context) (scalar.ID, error) { return v.id, nil }, past)
		if _, err := prover.Prove(ctx, v.recorded[0], "C-1"); err != nil {
			t.Errorf("with %d bytes: %v", size, err)
		}
		if err := store.Keep(ctx, v.id, whole); err != nil {
			t.Errorf("with %d bytes: %v", size, err)
		}
		if again, err := store.Load(ctx, v.id, at); err != nil || fmt.Sprint(*again) != fmt.Sprint(*whole) {
			t.Errorf("with %d bytes: %+v, %v", size, again, err)
		}
	}
}

// pastStates are the states of a venue at some positions, saved and read back.
type pastStates struct {
	states map[int64][]byte
	at     map[int64]record.Position
	asked  int
	fault  error
}

func (p *pastStates) StateAt(_ context.Context, journal string, partition int32, sequence int64) (decide.State, record.Position, error) {
	p.asked++
	if p.fault != nil || journal != "trading" || partition != 0 {
		return nil, record.Position{}, p.fault
	}
	s, err := trading.Codec().Read(p.states[sequence])
	return s, p.at[sequence], err
}

// TestTreesOfPastStates: when the balances are deleted, every customer gets the same proof from the state at that time. A state
// that is another gives none.
func TestTreesOfPastStates(t *testing.T) {
	v := openVenue(t)
	past := &pastStates{states: map[int64][]byte{}, at: map[int64]record.Position{}}
	v.mu.Lock()
	v.passed = func() {
		past.states[v.tip.Sequence], past.at[v.tip.Sequence] = trading.Codec().Append(nil, v.state), v.tip
	}
	v.mu.Unlock()
	v.follow()
	for n := 1; n <= 2; n++ {
		v.instant(n)
		v.await("recorded", func() bool { return len(v.recorded) == n })
	}
	id := func(context.Context) (scalar.ID, error) { return v.id, nil }
	prover := liabilities.NewProver(v.store(), keys, id, past)
	proofs := func() (all []string) {
		for _, r := range v.recorded {
			for i := range 20 {
				p, err := prover.Prove(t.Context(), r, fmt.Sprint("C-", i))
				if err != nil {
					t.Fatal(err)
				}
				text, err := p.Encode()
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, string(text))
			}
		}
		return all
	}
	kept := proofs()
	if past.asked > 0 {
		t.Error("a state is computed although the balances are kept")
	}
	if err := v.store().Sweep(t.Context(), v.id, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	prover = liabilities.NewProver(v.store(), keys, id, past)
	if computed := proofs(); fmt.Sprint(computed) != fmt.Sprint(kept) {
		t.Errorf("the proofs of past states are %v and not %v", computed, kept)
	}
	if past.asked != 2 {
		t.Errorf("%d states are computed for 2 statements", past.asked)
	}

	first, second := v.recorded[0], v.recorded[1]
	refused := func(what string, r form.Recorded, want string) {
		t.Helper()
		_, err := liabilities.NewProver(v.store(), keys, id, past).Prove(t.Context(), r, "C-1")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	another := first
	another.Root[3]++
	refused("another root", another, "recorded root")
	another = first
	another.Position.Hash = second.Position.Hash
	refused("another history", another, "has the hash")
	another = first
	another.Position.Sequence++
	hash := past.at[another.Position.Sequence].Hash
	another.Position.Hash = hex.EncodeToString(hash[:])
	refused("a record that fixes nothing", another, "fixed no funding")
	right := past.states[first.Position.Sequence]
	past.states[first.Position.Sequence] = past.states[second.Position.Sequence]
	refused("another state", first, "fixed no funding")
	past.states[first.Position.Sequence] = right
	past.fault = errors.New("the log is away")
	refused("no state", first, "the log is away")
}
