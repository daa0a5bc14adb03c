package trading

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/book"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/pack"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Read implements decide.Codec.
//
// Read checks numbers, lengths and references between parts as it reads them. Other contradictions, for example an
// instrument that cannot be counted or a level without a price, make the packages that they belong to panic. Read
// returns these panics as errors: a caller can do without a snapshot that it cannot read.
func (stateCodec) Read(b []byte) (_ decide.State, err error) {
	v := &loader{State: NewState(), Reader: pack.NewReader(b)}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("trading: the saved state contradicts itself: %v", p)
		}
	}()
	v.time = scalar.Time(v.Int())
	v.due.arrived = v.Int()
	v.settlement = v.blockingEntry(dueSettlement, nil)
	v.loadInstruments()
	v.loadAccounts()
	v.loadFund()
	v.loadOrders()
	v.loadLists()
	v.loadSessions()
	v.loadInstants()
	v.loadDue()
	v.loadRest()
	if err := v.Done(); err != nil {
		return nil, fmt.Errorf("trading: %w", err)
	}
	for _, l := range v.due.lists() {
		l.order()
	}
	if !v.lookAgain() {
		return nil, fmt.Errorf("trading: %w", errContradiction)
	}
	return v.State, nil
}

// lookAgain computes the parts of the state that are not saved because they follow from the rest: the bounds of all
// accounts, and which accounts to liquidate wait. It returns false if the saved liquidations contradict the margins.
func (v *loader) lookAgain() bool {
	v.fund.balance = v.venue[ledger.Insurance]
	v.solvent = v.fund.balance > 0
	for _, i := range v.listing {
		i.open = i.status() == market.Open
	}
	for _, a := range v.holders() {
		for _, h := range a.positions {
			h.instrument.costs = h.instrument.costs.Add(h.cost.Wide().Abs())
		}
	}
	for _, a := range v.registered {
		v.balances = v.balances.Add(a.balance.Wide().Abs())
		if v.look(a) != (a.failing != nil) {
			return false
		}
		if a.failing != nil {
			v.schedule(a)
		}
	}
	return true
}

var errContradiction = errors.New("the saved state contradicts itself")

// loader reads one state.
type loader struct {
	*State
	*pack.Reader
	positions []*position
	byNumber  []*resting // index 1 is the first order
	stops     []*stop    // stops that wait
	created   scalar.Time
	sequence  int64
}

func (v *loader) when() scalar.Time  { return scalar.Time(v.Int()) }
func (v *loader) money() fixed.Money { return fixed.Money(v.Int()) }

func (v *loader) decimal() fixed.Decimal {
	d := fixed.Decimal{Coef: v.Int(), Scale: v.Byte()}
	if d.Scale > fixed.MaxDigits {
		v.Fail(errContradiction)
		return fixed.Decimal{}
	}
	return d
}

func (v *loader) loadInstruments() {
	for range v.Len(30) {
		parameters := v.instrument()
		if v.Err() != nil {
			return
		}
		i := newInstrument(market.NewContract(parameters), len(v.listing))
		i.created = v.when()
		i.mark = v.Int()
		i.prices.load(v, i)
		i.last, i.openInterest, i.clearing = v.Int(), v.Int(), v.money()
		v.loadWatches(i)
		if i.fundMoves = v.loadEntry(); i.fundMoves != nil {
			i.fundMoves.kind, i.fundMoves.instrument = dueInsurance, i
			v.due.blocking.heap = append(v.due.blocking.heap, i.fundMoves)
		}
		if v.instruments[parameters.Symbol] != nil {
			v.Fail(errContradiction)
		}
		v.instruments[parameters.Symbol] = i
		v.listing = append(v.listing, i)
	}
}

// loadWatches reads the bounds of the prices reached on an instrument. The stops follow with the orders.
func (v *loader) loadWatches(i *instrument) {
	for n := range i.watches {
		i.watches[n].low, i.watches[n].high = v.Int(), v.Int()
	}
	i.stops = v.Int()
	if i.triggers = v.loadEntry(); i.triggers != nil {
		i.triggers.kind, i.triggers.instrument = dueTrigger, i
		v.due.blocking.heap = append(v.due.blocking.heap, i.triggers)
	}
}

func (v *loader) instrument() market.Instrument {
	i := market.Instrument{Symbol: v.Word(), Underlying: v.Word(), QuoteCurrency: v.Word(), SettlementCurrency: v.Word(), Status: market.Status(v.Word())}
	for _, d := range instrumentDecimals(&i) {
		*d = v.decimal()
	}
	i.MaxLeverage, i.FundingIntervalSeconds, i.IndexStaleSeconds = v.Small(), v.Small(), v.Small()
	for range v.Len(6) {
		i.Tiers = append(i.Tiers, market.Tier{NotionalFrom: v.money(), InitMarginReq: v.decimal(), MaintMarginReq: v.decimal(), MaxLeverage: v.Small()})
	}
	return i
}

func (v *loader) loadAccounts() {
	n := v.Len(20)
	v.accounts, v.registered = make(map[string]*account, n), make([]*account, 0, n)
	for range n {
		a := &account{code: v.String(), broker: v.Word(), name: v.String(), created: v.when()}
		a.updated = a.created + v.when()
		a.balance, a.pending = v.money(), v.money()
		margins := MarginProfileSet{Leverage: v.Small(), InitialMargin: v.decimal(), MaintenanceMargin: v.decimal()}
		if v.Err() != nil {
			return
		}
		a.setMargins(&margins)
		a.deadManSeconds = v.Small()
		if a.deadMan = v.loadEntry(); a.deadMan != nil {
			a.deadMan.kind, a.deadMan.account = dueCancelAllAfter, a
			v.due.alternating.heap = append(v.due.alternating.heap, a.deadMan)
		}
		if a.failing = v.loadEntry(); a.failing != nil {
			a.failing.kind, a.failing.account = dueLiquidation, a
			v.due.blocking.heap = append(v.due.blocking.heap, a.failing)
		}
		v.loadPositions(a)
		v.loadTransfers(a)
		for range v.Len(4) {
			a.references.saved(v.loadReference(v.String()))
		}
		if v.accounts[a.code] != nil {
			v.Fail(errContradiction)
		}
		v.register(a)
	}
}

func (v *loader) loadPositions(a *account) {
	for range v.Len(10) {
		v.loadPosition(a)
	}
	if n := v.Index(len(a.positions) + 1); n > 0 {
		a.deleveraging = a.positions[n-1]
	}
}

func (v *loader) loadTransfers(a *account) {
	transfers := v.Len(3)
	a.transfers = make(map[string]transfer, transfers)
	for range transfers {
		name := v.String()
		a.transfers[name] = transfer{v.String(), v.Int()}
	}
}

func (v *loader) loadFund() {
	v.fund.updated = v.when()
	v.loadPositions(v.fund)
	v.loadTransfers(v.fund)
}

// loadEntry reads the time and arrival number of a due entry, or nil.
func (v *loader) loadEntry() *dueEntry {
	if !v.Bool() {
		return nil
	}
	return &dueEntry{time: v.when(), arrival: v.Int()}
}

func (v *loader) loadPosition(a *account) {
	n := v.Index(len(v.listing))
	if v.Err() != nil || len(a.positions) > 0 && a.positions[len(a.positions)-1].instrument.index >= n {
		v.Fail(errContradiction)
		return
	}
	h := &position{account: a, instrument: v.listing[n], size: v.Int(), cost: v.money(), bids: v.money(), asks: v.money(),
		leverage: v.Small(), ownFees: v.Bool(), maker: v.Int(), taker: v.Int(), updated: v.when(), began: v.Int()}
	a.positions = append(a.positions, h)
	v.positions = append(v.positions, h)
}

func (v *loader) loadReference(name string) *reference {
	return &reference{name: name, fingerprint: v.String(), sequence: v.Int(), time: v.when()}
}

// saved adds the remembered name of a final order, after those of all orders that became final before it.
func (r *references) saved(ref *reference) {
	ref.final = true
	r.hold(ref)
	ref.prev = r.newest
	if r.newest == nil {
		r.oldest = ref
	} else {
		r.newest.next = ref
	}
	r.newest = ref
	r.final++
}

// hold adds a name to the map.
func (r *references) hold(ref *reference) {
	if r.names == nil {
		r.names = make(map[string]*reference)
	}
	r.names[ref.name] = ref
}

func (v *loader) loadOrders() {
	v.byNumber = make([]*resting, 1, v.Len(24)+1)
	for _, i := range v.listing {
		for _, side := range [...]book.Side{book.Bid, book.Ask} {
			price := int64(0)
			for n := v.Len(24); n > 0; n = v.Len(24) {
				price += v.Int()
				for range n {
					if o := v.loadOrder(side, price); o != nil {
						v.place(i, o)
					}
				}
			}
		}
	}
	for v.Bool() {
		side := v.Byte()
		if side > byte(book.Ask) {
			v.Fail(errContradiction)
		}
		v.loadOrder(book.Side(side), v.Int())
	}
	v.listStops()
}

// listStops adds the waiting stops to their lists, in the order of arrival.
func (v *loader) listStops() {
	slices.SortFunc(v.stops, func(a, b *stop) int { return cmp.Compare(a.arrival, b.arrival) })
	for _, s := range v.stops {
		s.list()
	}
}

// place adds an order to the book with which it was saved.
func (v *loader) place(i *instrument, o *resting) {
	if o.Value.position.instrument != i || o.Value.untriggered() {
		v.Fail(errContradiction)
		return
	}
	i.book.Add(o)
}

// loadOrder reads a live order and makes it findable by its code. It returns nil if the reader fails.
func (v *loader) loadOrder(side book.Side, price int64) *resting {
	var code scalar.ID
	v.Raw(code[:])
	flags, n := v.Uint(), v.Index(len(v.positions))
	if v.Err() != nil {
		return nil
	}
	o := v.orders.New(code)
	o.Side, o.Price, o.Remaining = side, price, v.Int()
	l := &o.Value
	l.position = v.positions[n]
	l.amount = o.Remaining + v.Int()
	l.kind, l.tif = order.Type(v.Word()), order.TimeInForce(v.Word())
	v.created += v.when() // times and sequences are saved as differences from the previous order's
	l.created, l.updated = v.created, v.created
	v.sequence += v.Int()
	l.sequence = v.sequence
	l.postOnly, l.reduceOnly = flags&savedPostOnly != 0, flags&savedReduceOnly != 0
	v.loadSaved(o, flags)
	if l.kind.Conditional() != (flags&savedStop != 0) {
		v.Fail(errContradiction)
		return nil
	}
	if flags&savedStop != 0 {
		v.loadStop(o)
	}
	v.byNumber = append(v.byNumber, o)
	return o
}

// loadSaved reads the optional parts of an order that the flags announce, in the order in which they are saved.
func (v *loader) loadSaved(o *resting, flags uint64) {
	l := &o.Value
	if flags&savedCash != 0 {
		l.cash = v.money()
	}
	if flags&savedQuote != 0 {
		l.filledQuote = v.money()
	}
	if flags&savedUpdated != 0 {
		l.updated += v.when()
	}
	if flags&savedDue != 0 {
		l.due = &dueEntry{time: l.created + v.when(), kind: dueExpiry, arrival: v.Int(), order: o}
		v.due.expiries.heap = append(v.due.expiries.heap, l.due)
	}
	if flags&savedReference != 0 {
		l.reference = v.String()
	}
	if flags&savedRemembered != 0 {
		ref := v.loadReference(l.reference)
		ref.order = o.Code
		l.position.account.references.hold(ref)
	}
}

// loadStop reads the stop of an order, fired or not.
func (v *loader) loadStop(o *resting) {
	fired, held, arrival := v.when(), order.Leg(v.Word()), v.Int()
	s := newStop(o, [len(legs)]int64{v.Int(), v.Int()})
	s.fired, s.held, s.arrival = fired, held, arrival
	if o.Value.stop = s; s.untold() {
		v.Fail(errContradiction)
	} else if fired.IsZero() && held == "" {
		v.stops = append(v.stops, s)
	}
}

// untold reports whether the stop has a combination of values that cannot exist.
func (s *stop) untold() bool {
	for n, of := range legs {
		if of.Of(s.order.Value.kind) != (s.legs[n].Price > 0) || s.legs[n].Price < 0 {
			return true
		}
	}
	return s.arrival < 1 || s.held != "" && (!s.fired.IsZero() || !s.held.Of(s.order.Value.kind))
}

// number reads the number of an order, saved as the difference from last. It returns nil if there is no such order.
func (v *loader) number(last *int64) *resting {
	*last += v.Int()
	if *last < 1 || *last >= int64(len(v.byNumber)) {
		v.Fail(errContradiction)
		return nil
	}
	return v.byNumber[*last]
}

func (v *loader) loadLists() {
	v.loadPutBack()
	listed := 0
	for _, a := range v.holders() {
		last := int64(0)
		for range v.Len(1) {
			o := v.number(&last)
			if o == nil || o.Value.position.account != a || o.Value.prev != nil || o == o.Value.position.first {
				v.Fail(errContradiction)
				return
			}
			o.Value.position.enlist(o)
			listed++
		}
		for _, h := range a.positions {
			last = 0
			for range v.Len(1) {
				o := v.number(&last)
				if o == nil || o.Value.position != h {
					v.Fail(errContradiction)
					return
				}
				h.reduceOnly = append(h.reduceOnly, o)
			}
		}
		for range v.Len(4) {
			a.references.hold(v.loadReference(v.String()))
		}
	}
	if listed != v.orders.Len() {
		v.Fail(errContradiction)
	}
}

// loadPutBack reads the stops that were returned to the due list and have not fired.
func (v *loader) loadPutBack() {
	for _, i := range v.listing {
		last := int64(0)
		for range v.Len(1) {
			o := v.number(&last)
			if o == nil || o.Value.position.instrument != i || o.Value.stop == nil || o.Value.stop.held == "" {
				v.Fail(errContradiction)
				return
			}
			i.putBack = append(i.putBack, o.Value.stop)
		}
		if i.isDue() {
			v.noteFiring(i)
		}
	}
}

func (v *loader) loadDue() {
	for range v.Len(4) {
		kind := v.Byte()
		if kind >= byte(dueKinds) {
			v.Fail(errContradiction)
			return
		}
		e := dueTable[kind].load(v)
		if e == nil || e.place < 0 {
			v.Fail(errContradiction)
			return
		}
		e.place = -1
		e.arrival = v.Int()
		v.aside = append(v.aside, asideEntry{e, v.String()})
	}
	if v.Bool() {
		v.running = v.loadTask()
		e := &dueEntry{kind: dueTask, task: v.running, time: v.running.started, arrival: v.Int()}
		v.due.blocking.heap = append(v.due.blocking.heap, e)
	}
}

// order restores the heap from entries that were appended in any order. It leaves out entries that are set aside.
func (l *dueList) order() {
	heap := l.heap[:0]
	for _, e := range l.heap {
		if e.place >= 0 { // otherwise it is set aside
			e.place = len(heap)
			heap = append(heap, e)
		}
	}
	clear(l.heap[len(heap):])
	l.heap = heap
	for i := len(heap)/2 - 1; i >= 0; i-- {
		l.down(i)
	}
}

func (v *loader) loadTask() *task {
	w := &task{kind: Work(v.Word())}
	v.Visit(w.command.Visit)
	w.started = v.when()
	w.account = v.account()
	if n := v.Index(len(v.listing) + 1); n > 0 {
		w.symbol = v.listing[n-1]
	}
	w.reason, w.canceled = order.Reason(v.Word()), v.Small()
	v.Raw(w.order[:])
	w.bound, w.protected = v.Int(), v.Bool()
	switch {
	case w.kind == WorkSweep && w.symbol != nil && w.account != nil:
	case w.kind == WorkMassCancel && w.account != nil, w.kind == WorkDelisting && w.symbol != nil:
	default:
		v.Fail(errContradiction)
	}
	return w
}

// account reads which account it is; nil for none.
func (v *loader) account() *account {
	switch n := v.Index(len(v.registered) + 2); {
	case n > len(v.registered):
		return v.fund
	case n > 0:
		return v.registered[n-1]
	}
	return nil
}

func (v *loader) loadRest() {
	n := v.Len(17)
	v.recent.next = v.Index(max(n, 1))
	if n > recentOrders {
		v.Fail(errContradiction)
		return
	}
	if n > 0 {
		v.recent.ring = make([]finalOrder, n)
	}
	for i := range v.recent.ring {
		o := &v.recent.ring[i]
		v.Raw(o.code[:])
		if o.owner = v.account(); o.owner == nil {
			v.Fail(errContradiction)
			return
		}
		v.recent.codes.Put(o.code, uint32(i+1), v.recent.code)
	}
	for range v.Len(27) {
		n := v.Index(len(v.registered))
		t := v.transaction()
		if v.Err() != nil {
			return
		}
		v.withdrawals[t.Code] = &withdrawal{t, v.registered[n]}
	}
	for range v.Len(2) {
		name := ledger.Account(v.Word())
		v.venue[name] = v.money()
	}
	v.Visit(v.core.Visit)
}

func (v *loader) transaction() ledger.Transaction {
	t := ledger.Transaction{}
	v.Raw(t.Code[:])
	t.CustomerCode, t.Broker, t.Type = v.Word(), v.Word(), ledger.Type(v.Word())
	t.Currency, t.Status = v.Word(), ledger.Status(v.Word())
	t.Amount, t.Balance, t.ReferenceID, t.Created = v.money(), v.money(), v.String(), v.when()
	t.Updated = t.Created + v.when()
	return t
}
