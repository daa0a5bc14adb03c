package trading

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"pgregory.net/rapid"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/decide/decidetest"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/pack/packtest"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/schedule"
)

// save makes a twin of the journal's state by way of the saved form. From then on it is held against the other.
func (j *testJournal) save() {
	j.t.Helper()
	j.compare()
	j.twin = reread(j.t, j.state)
	j.twin.TrackBook()
	j.twin.limit = j.state.limit
}

// reread saves a state and reads it back.
func reread(t fataler, s *State) *State {
	t.Helper()
	before := s.Digest()
	saved := Codec().Append(nil, s)
	if s.Digest() != before {
		t.Fatalf("saving changed the state")
	}
	twin, err := Codec().Read(saved)
	if err != nil {
		t.Fatalf("reading what was saved: %v", err)
	}
	compare(t, s, twin.(*State))
	checkState(t, twin.(*State))
	return twin.(*State)
}

// compare holds the twin against the state.
func (j *testJournal) compare() {
	j.t.Helper()
	if j.twin != nil {
		compare(j.t, j.state, j.twin)
	}
}

func compare(t fataler, s, twin *State) {
	t.Helper()
	if s.Digest() != twin.Digest() {
		var a, b bytes.Buffer
		s.dump(&a)
		twin.dump(&b)
		t.Fatalf("the state was read back otherwise:\n%s\n---\n%s", a.String(), b.String())
	}
	if !bytes.Equal(Codec().Append(nil, s), Codec().Append([]byte{1}, twin)[1:]) {
		t.Fatalf("what was read back is saved as other bytes")
	}
}

// checkTwin checks that the twin decides the same.
func (j *testJournal) checkTwin(d decide.Decision, err error, decideAgain func(*State) (decide.Decision, error)) {
	j.t.Helper()
	if j.twin == nil {
		return
	}
	again, errAgain := decideAgain(j.twin)
	if !reflect.DeepEqual(err, errAgain) {
		j.t.Fatalf("one state says %v, the one that was saved %v", err, errAgain)
	}
	a, errA := json.Marshal(d.Events)
	b, errB := json.Marshal(again.Events)
	d.Events, again.Events = nil, nil
	if err := errors.Join(errA, errB); err != nil || !bytes.Equal(a, b) || !reflect.DeepEqual(d, again) {
		j.t.Fatalf("one state decides %+v %s\nthe one that was saved %+v %s\n%v", d, a, again, b, err)
	}
}

// TestSavedStatesGoOn saves states amid random commands, and has what was read back decide everything that follows.
func TestSavedStatesGoOn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &randomVenue{T: t, testJournal: newTestJournal(t)}
		if rapid.Bool().Draw(t, "small records") {
			r.state.limit.fills = rapid.IntRange(1, 4).Draw(t, "fills")
			r.state.limit.others = rapid.IntRange(1, 4).Draw(t, "other changes")
			r.state.limit.charges = rapid.IntRange(0, 3).Draw(t, "debts")
			r.single = rapid.Bool().Draw(t, "single steps")
			r.pause = scalar.Time(rapid.Int64Range(0, 1_000_000).Draw(t, "pause"))
		}
		r.open()
		r.keyed = true
		r.amid = func() {
			if rapid.Bool().Draw(t, "save amid a sweep") {
				r.save()
			}
		}
		for range rapid.IntRange(1, 60).Draw(t, "commands") {
			switch rapid.IntRange(0, 7).Draw(t, "what else") {
			case 0:
				r.save()
			case 1:
				r.setSomethingAside()
			case 2:
				r.now += scalar.Time(rapid.Int64Range(0, int64(30*scalar.Hour)).Draw(t, "long pause"))
			}
			r.command()
		}
		r.compare()
		if again := r.replay(); r.twin != nil {
			again.limit = r.twin.limit
			compare(t, again, r.twin)
		}
	})
}

// setSomethingAside sets the next due work aside, or puts back what was.
func (r *randomVenue) setSomethingAside() {
	if aside := r.state.SetAsideEntries(); len(aside) > 0 {
		r.give(decide.Command{Type: decide.CommandPutBackDue, Payload: &decide.PutBackDue{Entry: aside[0].Entry}})
		return
	}
	if d := r.state.SetAside(r.stamp(), "test"); len(d.Events) > 0 {
		r.append(decide.Recorded{ID: scalar.ID{0xe}, Type: "engine.step", Actor: decide.Engine}, d)
	}
}

// saveOften is save before each line of a scenario; in a long one, now and then. The twin decides every line with it.
func (j *testJournal) saveOften() {
	if len(j.records) < 50 || len(j.records)%16 == 0 {
		j.save()
	}
}

// TestSavedScenarios runs every scenario with a state that is saved and read back before each of its first lines, and
// now and then later.
func TestSavedScenarios(t *testing.T) {
	for _, file := range scenarioFiles(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		runScenario(t, file, string(text), (*testJournal).saveOften)
	}
}

// golden is a state with something of everything in it.
func golden(t fataler) *State {
	j := testJournalOf(t, rulesOfClients) // the rules of the saved form
	give := func(actor decide.Actor, kept decide.Metadata, payload any) decide.Decision {
		t.Helper()
		j.now += 1_000_003
		decision, err := j.do(decide.Command{Actor: actor, Metadata: kept, Payload: payload})
		if err != nil {
			t.Fatalf("%T: %v", payload, err)
		}
		return decision
	}
	key := func(k string) decide.Metadata { return decide.Metadata{Key: k, Fingerprint: "f" + k} }
	other := btc()
	other.Symbol, other.Underlying, other.IndexStaleSeconds = "ETHUSDC_PERP", "ETH", 10
	give(operator, key("list"), &ListInstrument{Instrument: btc()})
	give(operator, decide.Metadata{}, &ListInstrument{Instrument: other})
	give(operator, decide.Metadata{}, &SetIndexPrice{Symbol: "BTCUSDC_PERP", Price: number("65000")})
	for _, code := range []string{"ann", "ben"} {
		give(operator, decide.Metadata{Source: &decide.Source{Journal: "onboarding", Sequence: int64(len(j.records))}}, &RegisterCustomer{CustomerCode: code, Broker: "alpha", Name: "Name of " + code})
		give(operator, decide.Metadata{Fingerprint: "0d"}, &MakeDeposit{CustomerCode: code, Currency: currency, Amount: 1_000_000 * fixed.Unit, ReferenceID: "deposit-" + code})
	}
	payload := func(customer string, a order.Action, ticks, steps int64, change func(*PlaceOrder)) *PlaceOrder {
		p := limitOrder(customer, a, ticks, steps)
		if change != nil {
			change(p)
		}
		return p
	}
	alpha := trader("alpha")
	for n := range byte(2) {
		give(ofNodes, decide.Metadata{}, &OpenSession{Session: scalar.ID{1 + n}, Gateway: scalar.ID{9}, Username: "u", Broker: "alpha"})
		for range 2 {
			give(alpha, decide.Metadata{Session: scalar.ID{1 + n}}, payload("ann", order.Buy, 600_000, 1, nil))
		}
	}
	j.state.limit.others = 1
	give(ofNodes, decide.Metadata{}, &EndSession{Session: scalar.ID{2}}) // and one of its orders is still to be canceled
	j.state.limit.others = recordBounds().others
	give(alpha, key("k1"), payload("ann", order.Sell, 650_000, 30, func(p *PlaceOrder) { p.ReferenceID = "resting" }))
	give(alpha, decide.Metadata{Fingerprint: "0e"}, payload("ben", order.Buy, 650_000, 10, func(p *PlaceOrder) { p.ReferenceID = "filled" }))
	give(alpha, decide.Metadata{}, payload("ben", order.Buy, 640_000, 5, func(p *PlaceOrder) { p.PostOnly = true }))
	give(alpha, decide.Metadata{}, payload("ben", order.Buy, 640_000, 7, func(p *PlaceOrder) {
		p.TimeInForce, p.ExpireTime = order.GTD, j.now+scalar.Hour
	}))
	give(alpha, decide.Metadata{}, payload("ben", order.Sell, 660_000, 4, func(p *PlaceOrder) { p.ReduceOnly = true }))
	for n, price := range []string{"64999.9", "64998", "64997"} {
		give(alpha, decide.Metadata{}, payload("ann", order.Sell, 600_000, 5, func(p *PlaceOrder) {
			p.Type, p.TriggerPrice, p.TimeInForce = order.StopLossLimit, number(price), order.GTC
			if n == 2 {
				p.Type, p.TriggerPrice, p.LimitPrice, p.TimeInForce = order.TakeProfitStopLoss, fixed.Decimal{}, fixed.Decimal{}, order.IOC
				p.StopLossPrice, p.TakeProfitPrice = number(price), number("66000")
			}
		}))
	}
	give(alpha, decide.Metadata{}, &SetCancelAllAfter{CustomerCode: "ann", TimeoutSeconds: 3000})
	give(operator, decide.Metadata{Key: "fees", Fingerprint: decide.OfRoute("PUT /fees", strings.Repeat("0", 32))}, &SetFeeProfile{CustomerCode: "ben", Symbol: "ETHUSDC_PERP", MakerFee: number("1"), TakerFee: number("3"), Operator: true})
	give(operator, decide.Metadata{}, &SetMarginProfile{CustomerCode: "ann", Leverage: 5})
	give(operator, decide.Metadata{}, &RequestWithdrawal{CustomerCode: "ann", Currency: currency, Amount: 10 * fixed.Unit, ReferenceID: "out"})
	j.now += 2 * scalar.Hour // the order with a time and the switch are due
	j.append(decide.Recorded{Type: "engine.step", Actor: decide.Engine}, j.state.SetAside(j.stamp(), "a cause"))
	j.state.limit.fills = 1
	decision, err := j.state.Decide(j.stamp(), decide.Command{ID: scalar.ID{7}, Type: CommandPlaceOrder, Actor: alpha, Metadata: key("sweep"), Payload: payload("ben", order.Buy, 661_000, 25, nil)})
	if err != nil {
		t.Fatalf("%v", err)
	}
	j.append(decide.Recorded{ID: scalar.ID{7}, Type: CommandPlaceOrder, Actor: alpha, Metadata: key("sweep")}, decision)
	return j.state
}

// TestTheFormIsThatOfItsVersion fails when what is saved, or what there is to be saved, is no longer what codecVersion
// stands for.
func TestTheFormIsThatOfItsVersion(t *testing.T) {
	state := golden(t)
	packtest.Held(t, codecVersion, "state", Codec().Append(nil, state))
	packtest.Held(t, codecVersion, "shape", packtest.Shape(reflect.TypeFor[State]()))
	text, err := os.ReadFile(fmt.Sprintf("testdata/saved/v%d.state", codecVersion))
	if err != nil {
		t.Fatal(err)
	}
	read, err := Codec().Read(text)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, state, read.(*State))
}

// TestEveryFieldIsSaved fails for a field of the state that the codec forgets.
func TestEveryFieldIsSaved(t *testing.T) {
	f := packtest.NewFields(func(s *State) []byte { return Codec().Append(nil, s) }, derivedFields)
	f.Try(golden(t))
	f.Try(rarities(t))
	for _, name := range []string{"funding", "insurance", "liquidation_waits", "stale_index", "trigger_set_aside", "opening"} {
		file := "testdata/" + name + ".scenario"
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		runScenario(t, file, string(text), func(j *testJournal) { f.Try(j.state) })
	}
	f.Report(t)
}

// rarities is a state with values that few states have. No records lead to this one.
func rarities(t fataler) *State {
	s := golden(t)
	a, i := s.accounts["ann"], s.listing[0]
	a.deleveraging = a.positions[0]
	for _, name := range []string{"final", "later"} {
		r := &reference{name: name, final: true}
		a.references.hold(r)
		a.references.finals.push(r)
	}
	s.running.command.Metadata.Source = &decide.Source{Journal: "onboarding", Sequence: 7}
	s.core.Evolve(decide.Stamp{Sequence: 9}, decide.Recorded{}, append(decidetest.FourEyes(), &decide.CommitmentRotated{Generation: 1, Secret: "an id"},
		&decide.CheckpointKeyRotated{Generation: 2, Previous: "log+1+a", Key: "log+2+b", Until: 5}))
	s.core.Evolve(decide.Stamp{Sequence: 10, Time: 5}, decide.Recorded{}, nil)
	over := &session{id: scalar.ID{77}, due: &dueEntry{Slot: schedule.Slot{Kind: dueSession}}}
	s.sessions[over.id] = over
	i.fundMoves = &dueEntry{Slot: schedule.Slot{Kind: dueInsurance}, instrument: i}
	x := &charge{instrument: i, posting: &dueEntry{Slot: schedule.Slot{Kind: duePosting}}}
	x.posting.instant = x
	s.aside = append(s.aside, asideEntry{dueEntry: x.posting})
	return s
}

// derivedFields are the fields that are not saved.
var derivedFields = packtest.Derived{
	"decide.Core.numbers":  "the build's",
	"decide.fourEyes.open": "counts the open proposals",

	"trading.customers.accounts":      "the registered accounts by code",
	"trading.customers.registeredOf":  "the registered accounts by broker",
	"trading.markets.instruments":     "the listing by symbol",
	"trading.State.orders":            "the orders of the accounts by code",
	"trading.customers.solvent":       "follows from the fund's balance",
	"trading.customers.waiting":       "follows from the accounts to liquidate",
	"trading.customers.balances":      "sums up the accounts",
	"trading.openings.bySHA":          "the imports by hash",
	"trading.pendingWork.outstanding": "counts the charges",
	"trading.markets.firing":          "follows from the stops",
	"trading.State.limit":             "the build's",
	"trading.State.sheet":             "the calculations of a decision",

	"trading.instrument.book":              "the orders by price",
	"trading.instrument.costs":             "sums up the positions",
	"trading.instrument.open":              "follows from the status",
	"trading.instrument.bounds":            "follow from the accounts' slack",
	"trading.instrument.rankings":          "a cache",
	"trading.instrument.cumulativeFunding": "counts from 0 again, as the thresholds then do",
	"trading.triggerIndex.legs":            "the stops by price",
	"trading.charge.instrument":            "the instrument that has the charge",
	"trading.charge.owing":                 "follows from what the holders have posted",

	"market.Contract.Unit":      "follows from the instrument",
	"market.Contract.MinSteps":  "follows from the instrument",
	"market.Contract.MaxSteps":  "follows from the instrument",
	"market.Contract.Maker":     "follows from the instrument",
	"market.Contract.Taker":     "follows from the instrument",
	"market.Contract.markScale": "follows from the instrument",
	"market.Contract.tickMarks": "follows from the instrument",
	"market.Contract.markNum":   "follows from the instrument",
	"market.Contract.MarkDen":   "follows from the instrument",
	"market.Contract.brackets":  "follow from the instrument",
	"market.Contract.band":      "follows from the instrument",
	"market.Contract.limit":     "follows from the instrument",
	"market.Window.next":        "where the ring begins does not matter",

	"trading.account.initial":     "follows from the percentages or the leverage",
	"trading.account.maintenance": "follows from the percentages or the leverage",
	"trading.account.waits":       "whether the account is in State.waiting",
	"trading.account.affected":    "whether the account is in State.affected",
	"trading.withdrawal.account":  "saved as a number, which a missing account has too",
	"trading.references.names":    "the names of live orders, and those of the list of final ones",
	"trading.reference.order":     "the live order that has the name",
	"trading.reference.final":     "whether the name is in the list",

	"trading.position.account":    "the account that has the position",
	"trading.position.thresholds": "follow from the account's slack",
	"trading.position.rank":       "a cache",

	"trading.live.session":                     "the session that has the order",
	"trading.stop.order":                       "the order that has the stop",
	"book.Order[trading.live].prev":            "the place in the book",
	"book.Order[trading.live].level":           "the place in the book",
	"book.Order[trading.live].slot":            "the place among the codes",
	"book.Order[trading.stop].Code":            "legs have none",
	"book.Order[trading.stop].Remaining":       "always 1",
	"book.Order[trading.stop].Side":            "follows from the order",
	"book.Order[trading.stop].Value":           "the stop that has the leg",
	"book.Order[trading.stop].prev":            "the place in the lists of stops",
	"book.Order[trading.stop].next":            "the place in the lists of stops",
	"book.Order[trading.stop].level":           "the place in the lists of stops",
	"book.Order[trading.stop].handle":          "legs have none",
	"book.Order[trading.stop].slot":            "legs have none",
	"trading.session.live":                     "counts the orders that are live",
	"trading.session.full":                     "when to drop final orders, which does not change what is canceled",
	"trading.recent.codes":                     "the places in the ring by code",
	"trading.chain[trading.finalLinks].last":   "the end of the list",
	"trading.chain[trading.holderLinks].last":  "the end of the list",
	"trading.chain[trading.orderLinks].last":   "the end of the list",
	"trading.chain[trading.orderLinks].length": "counts the list",
	"trading.links[trading.live]].before":      "the list backwards",
	"trading.links[trading.position].before":   "the list backwards",
	"trading.links[trading.reference].before":  "the list backwards",
	"trading.State.lastRecord":                 "what Evolve collects for the record that it applies",
	"trading.agenda.tasks":                     "the running task",
	"trading.agenda.blocking":                  "the entries of instruments and accounts",
	"trading.agenda.alternating":               "the entries of accounts, gateways, sessions and instants",
	"trading.agenda.expiries":                  "the entries of orders",
	"schedule.Slot.number":                     "follows from the order of the entries",
	"trading.dueEntry.account":                 "the account that has the entry",
	"trading.dueEntry.session":                 "the session that has the entry",
	"trading.dueEntry.gateway":                 "the gateway that has the entry",
}

// TestDamagedStates checks that a saved state of which any byte is another is read as an error or as a state that can
// be read and stepped, and that one that is cut off is never read.
func TestDamagedStates(t *testing.T) {
	saved := Codec().Append(nil, golden(t))
	for n := range saved {
		if _, err := Codec().Read(saved[:n]); err == nil {
			t.Fatalf("cut off after %d of %d bytes it is read", n, len(saved))
		}
		for _, bit := range []byte{1, 0x80, 0xff} {
			damaged := bytes.Clone(saved)
			damaged[n] ^= bit
			lookAt(t, damaged)
		}
	}
}

func lookAt(t *testing.T, saved []byte) {
	s, err := Codec().Read(saved)
	if err != nil {
		return
	}
	if again, err := Codec().Read(Codec().Append(nil, s)); err != nil {
		t.Fatalf("what was read can't be read again: %v", err)
	} else {
		Codec().Append(nil, again)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(Codec().Append(nil, NewState()))
	f.Add(Codec().Append(nil, golden(f)))
	f.Fuzz(func(t *testing.T, saved []byte) { lookAt(t, saved) })
}

// TestManyRestingOrdersAreSavedAndRead checks what a large book takes in bytes.
func TestManyRestingOrdersAreSavedAndRead(t *testing.T) {
	const orders = 20_000 // as many as the race detector's patience is worth: what an order takes does not depend on it
	e := manyResting(t, orders)
	saved := Codec().Append(nil, e.state)
	compare(t, e.state, reread(t, e.state))
	if each := len(saved) / orders; each > 40 {
		t.Errorf("a resting order takes %d bytes", each)
	}
	if size := Codec().Size(e.state); size < len(saved) || size > 2*len(saved) {
		t.Errorf("%d bytes were told to be about %d", len(saved), size)
	}
}

// BenchmarkSave and BenchmarkLoad tell what a resting order costs, in a book of 100,000.
func BenchmarkSave(b *testing.B) {
	e, saved := manyResting(b, 100_000), []byte(nil)
	b.ReportAllocs()
	for b.Loop() {
		saved = Codec().Append(nil, e.state)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100_000, "ns/order")
	runtime.KeepAlive(saved)
}

// BenchmarkLoad is the other way.
func BenchmarkLoad(b *testing.B) {
	saved := Codec().Append(nil, manyResting(b, 100_000).state)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Codec().Read(saved); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100_000, "ns/order")
}

func manyResting(b testing.TB, orders int64) *engine {
	e := newEngine(b, 10)
	for n := range orders {
		e.do(decide.Command{Actor: trader("alpha"), Payload: limitOrder(fmt.Sprint("c", n%10), order.Buy, 600_000+(n*7919)%5000, 1)})
	}
	return e
}
