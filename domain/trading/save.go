package trading

import (
	"maps"
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/book"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/pack"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// codecVersion is the version of the format that this file writes and load.go reads. It must be raised with every
// change of the format, and of the content or meaning of a State: TestTheFormIsThatOfItsVersion says when. A snapshot
// of another version is ignored and the state is made from the log, so there are no migrations.
const codecVersion = 14

// Codec returns the codec for states of the trading journal.
func Codec() decide.StateCodec { return stateCodec{} }

type stateCodec struct{}

// Version implements decide.Codec.
func (stateCodec) Version() int { return codecVersion }

// Approximate sizes in bytes.
const (
	orderSize    = 36
	nameSize     = 50 // of a reference
	accountSize  = 150
	transferSize = 120
)

// Size implements decide.Codec.
func (stateCodec) Size(of decide.State) int {
	s := of.(*State)
	size := 4096 + s.orders.Len()*orderSize + len(s.recent.ring)*18 + len(s.withdrawals)*transferSize + pack.Size(s.core.Visit)
	for _, a := range s.registered {
		size += accountSize + len(a.references.names)*nameSize + len(a.transfers)*transferSize
	}
	return size
}

// Append implements decide.Codec.
//
// The format, in this order: the instruments; the accounts with their positions; the orders of the books in order of
// priority, then all other live orders; the lists that refer to orders by their numbers in that order (each account's
// orders in order of arrival, reduce-only orders, due work); everything else. So a reader builds the books from front
// to back and needs no lookup by code.
func (c stateCodec) Append(b []byte, s decide.State) []byte {
	v := &saver{State: s.(*State), Writer: pack.Writer{Bytes: slices.Grow(b, c.Size(s))}}
	v.Int(int64(v.time))
	v.Int(v.due.arrived)
	v.saveEntry(v.settlement)
	v.saveInstruments()
	v.saveAccounts()
	v.saveFund()
	v.saveOrders()
	v.saveLists()
	v.saveSessions()
	v.saveInstants()
	v.saveDue()
	v.saveRest()
	return v.Bytes
}

// saver writes one state.
type saver struct {
	*State
	pack.Writer
	accountNumbers  map[*account]int
	positionNumbers map[*position]uint64
	orderNumbers    []uint32 // by book.Order.Number: the order's number in the order of writing, from 1
	orders          uint32
	created         scalar.Time // of the last order
	sequence        int64       // of the last order
}

func (v *saver) saveInstruments() {
	v.Len(len(v.listing))
	for _, i := range v.listing {
		packInstrument(&v.Writer, &i.contract.Instrument)
		v.Int(int64(i.created))
		v.Int(i.mark)
		i.prices.save(v)
		v.Int(i.last)
		v.Int(i.openInterest)
		v.Int(int64(i.clearing))
		for n := range i.watches {
			v.Int(i.watches[n].low)
			v.Int(i.watches[n].high)
		}
		v.Int(i.stops)
		v.saveEntry(i.triggers)
		v.saveEntry(i.fundMoves)
	}
}

func packInstrument(w *pack.Writer, i *market.Instrument) {
	for _, text := range [...]string{i.Symbol, i.Underlying, i.QuoteCurrency, i.SettlementCurrency, string(i.Status)} {
		w.Word(text)
	}
	for _, d := range instrumentDecimals(i) {
		packDecimal(w, *d)
	}
	for _, n := range [...]int{i.MaxLeverage, i.FundingIntervalSeconds, i.IndexStaleSeconds} {
		w.Int(int64(n))
	}
	w.Len(len(i.Tiers))
	for _, t := range i.Tiers {
		w.Int(int64(t.NotionalFrom))
		packDecimal(w, t.InitMarginReq)
		packDecimal(w, t.MaintMarginReq)
		w.Int(int64(t.MaxLeverage))
	}
}

// instrumentDecimals lists the decimals among an instrument's parameters.
func instrumentDecimals(i *market.Instrument) [11]*fixed.Decimal {
	return [...]*fixed.Decimal{&i.PriceTick, &i.AmountStep, &i.MinAmount, &i.MaxAmount, &i.ContractSize, &i.InitMarginReq,
		&i.MaintMarginReq, &i.PriceBand, &i.LimitBand, &i.MakerFee, &i.TakerFee}
}

func packDecimal(w *pack.Writer, d fixed.Decimal) {
	w.Int(d.Coef)
	w.Byte(d.Scale)
}

func (v *saver) saveAccounts() {
	v.accountNumbers = make(map[*account]int, len(v.registered))
	v.positionNumbers = make(map[*position]uint64, 2*len(v.registered))
	v.Len(len(v.registered))
	for n, a := range v.registered {
		v.accountNumbers[a] = n
		v.String(a.code)
		v.Word(a.broker)
		v.String(a.name)
		v.Int(int64(a.created))
		v.Int(int64(a.updated - a.created))
		v.Int(int64(a.balance))
		v.Int(int64(a.pending))
		v.Int(int64(a.leverage))
		packDecimal(&v.Writer, a.initialMargin)
		packDecimal(&v.Writer, a.maintenanceMargin)
		v.Int(int64(a.deadManSeconds))
		v.saveEntry(a.deadMan)
		v.saveEntry(a.failing)
		v.savePositions(a)
		v.saveTransfers(a)
		v.Len(a.references.final)
		for r := a.references.oldest; r != nil; r = r.next {
			v.String(r.name)
			v.saveReference(r)
		}
	}
}

// savePositions writes an account's positions, and which of them is being deleveraged.
func (v *saver) savePositions(a *account) {
	v.Len(len(a.positions))
	deleveraging := 0
	for n, h := range a.positions {
		v.positionNumbers[h] = uint64(len(v.positionNumbers))
		v.savePosition(h)
		if h == a.deleveraging {
			deleveraging = n + 1
		}
	}
	v.Len(deleveraging)
}

func (v *saver) saveTransfers(a *account) {
	v.Len(len(a.transfers))
	for _, name := range slices.Sorted(maps.Keys(a.transfers)) {
		v.String(name)
		v.String(a.transfers[name].fingerprint)
		v.Int(a.transfers[name].sequence)
	}
}

// saveFund writes the insurance fund. Its account number follows those of the customers. Its money is among the venue's
// accounts.
func (v *saver) saveFund() {
	v.accountNumbers[v.fund] = len(v.registered)
	v.Int(int64(v.fund.updated))
	v.savePositions(v.fund)
	v.saveTransfers(v.fund)
}

// saveEntry writes the time and arrival number of a due entry, which may be set aside, or that there is none.
func (v *saver) saveEntry(e *dueEntry) {
	v.Bool(e != nil)
	if e != nil {
		v.Int(int64(e.time))
		v.Int(e.arrival)
	}
}

func (v *saver) savePosition(h *position) {
	v.Len(h.instrument.index)
	v.Int(h.size)
	v.Int(int64(h.cost))
	v.Int(int64(h.bids))
	v.Int(int64(h.asks))
	v.Int(int64(h.leverage))
	v.Bool(h.ownFees)
	v.Int(h.maker)
	v.Int(h.taker)
	v.Int(int64(h.updated))
	v.Int(h.began)
}

func (v *saver) saveReference(r *reference) {
	v.String(r.fingerprint)
	v.Int(r.sequence)
	v.Int(int64(r.time))
}

// saveOrders writes the orders in the books and then the live orders that do not rest: those that wait for a price, and
// those that sweep.
func (v *saver) saveOrders() {
	v.orderNumbers = make([]uint32, v.State.orders.Numbers()+1)
	v.Len(v.State.orders.Len())
	for _, i := range v.listing {
		for _, side := range [...]book.Side{book.Bid, book.Ask} {
			price := int64(0)
			for l := i.book.Best(side); l != nil; l = l.Worse() {
				v.Len(l.Orders)
				v.Int(l.Price - price)
				price = l.Price
				for o := l.Front(); o != nil; o = o.Next() {
					v.saveOrder(o)
				}
			}
			v.Len(0)
		}
	}
	for _, a := range v.holders() {
		for o := range a.orders(nil) {
			if v.orderNumbers[o.Number()] == 0 {
				v.Bool(true)
				v.Byte(byte(o.Side))
				v.Int(o.Price)
				v.saveOrder(o)
			}
		}
	}
	v.Bool(false)
}

// Flags for the optional parts of an order.
const (
	savedCash = 1 << iota
	savedQuote
	savedUpdated
	savedDue
	savedReference
	savedRemembered // the account remembers the reference, with this order's last record
	savedPostOnly
	savedReduceOnly
	savedStop
)

func (v *saver) saveOrder(o *resting) {
	l := &o.Value
	v.orders++
	v.orderNumbers[o.Number()] = v.orders
	flags := uint64(0)
	for bit, is := range [...]bool{l.cash != 0, l.filledQuote != 0, l.updated != l.created, l.due != nil, l.reference != "", l.remembered() != nil,
		l.postOnly, l.reduceOnly, l.stop != nil} {
		if is {
			flags |= 1 << bit
		}
	}
	v.Raw(o.Code[:])
	v.Uint(flags)
	v.Uint(v.positionNumbers[l.position])
	v.Int(o.Remaining)
	v.Int(l.amount - o.Remaining)
	v.Word(string(l.kind))
	v.Word(string(l.tif))
	v.Int(int64(l.created - v.created))
	v.created = l.created
	v.Int(l.sequence - v.sequence)
	v.sequence = l.sequence
	if flags&savedCash != 0 {
		v.Int(int64(l.cash))
	}
	if flags&savedQuote != 0 {
		v.Int(int64(l.filledQuote))
	}
	if flags&savedUpdated != 0 {
		v.Int(int64(l.updated - l.created))
	}
	if flags&savedDue != 0 {
		v.Int(int64(l.due.time - l.created))
		v.Int(l.due.arrival)
	}
	if flags&savedReference != 0 {
		v.String(l.reference)
	}
	if flags&savedRemembered != 0 {
		v.saveReference(l.remembered())
	}
	if flags&savedStop != 0 {
		v.saveStop(l.stop)
	}
}

// saveStop writes the stop of an order, fired or not.
func (v *saver) saveStop(s *stop) {
	v.Int(int64(s.fired))
	v.Word(string(s.held))
	v.Int(s.arrival)
	for _, price := range s.prices() {
		v.Int(price)
	}
}

// remembered returns the remembered reference of a live order's name, or nil.
func (l *live) remembered() *reference {
	if l.reference == "" {
		return nil
	}
	if r := l.position.account.references.names[l.reference]; r != nil && !r.final {
		return r
	}
	return nil
}

// saveNumber writes the number of an order, as the difference from last.
func (v *saver) saveNumber(o *resting, last uint32) uint32 {
	n := v.orderNumbers[o.Number()]
	v.Int(int64(n) - int64(last))
	return n
}

// saveLists writes the stops of each instrument that were returned to the due list, each account's orders in order of
// arrival, and each position's reduce-only orders.
func (v *saver) saveLists() {
	for _, i := range v.listing {
		v.Len(len(i.putBack))
		last := uint32(0)
		for _, s := range i.putBack {
			last = v.saveNumber(s.order, last)
		}
	}
	for _, a := range v.holders() {
		v.Len(a.liveOrders)
		last, held := uint32(0), 0
		for o := range a.orders(nil) {
			last = v.saveNumber(o, last)
			if o.Value.remembered() != nil {
				held++
			}
		}
		for _, h := range a.positions {
			v.Len(len(h.reduceOnly))
			last = 0
			for _, o := range h.reduceOnly {
				last = v.saveNumber(o, last)
			}
		}
		v.saveOtherNames(a, held)
	}
}

// saveOtherNames writes the names that belong neither to a final order nor to any live order. There should be none.
// held is the number of names of live orders.
func (v *saver) saveOtherNames(a *account, held int) {
	var other []string
	if a.references.final+held != len(a.references.names) {
		known := make(map[string]bool)
		for o := range a.orders(nil) {
			known[o.Value.reference] = true
		}
		for name, r := range a.references.names {
			if !r.final && !known[name] {
				other = append(other, name)
			}
		}
		slices.Sort(other)
	}
	v.Len(len(other))
	for _, name := range other {
		v.String(name)
		v.saveReference(a.references.names[name])
	}
}

// saveDue writes the entries that are set aside, and the running task. Other due work is saved with its orders and
// accounts.
func (v *saver) saveDue() {
	v.Len(len(v.aside))
	for _, e := range v.aside {
		v.Byte(byte(e.kind))
		dueTable[e.kind].save(v, e.dueEntry)
		v.Int(e.arrival)
		v.String(e.cause)
	}
	v.Bool(v.running != nil)
	for _, e := range v.due.blocking.heap {
		if e.task != nil { // there is only the running task
			v.saveTask(e.task)
			v.Int(e.arrival)
		}
	}
}

func (v *saver) saveTask(w *task) {
	v.Word(string(w.kind))
	v.Visit(w.command.Visit)
	v.Int(int64(w.started))
	v.saveAccount(w.account)
	symbol := 0
	if w.symbol != nil {
		symbol = w.symbol.index + 1
	}
	v.Len(symbol)
	v.Word(string(w.reason))
	v.Int(int64(w.canceled))
	v.Raw(w.order[:])
	v.Int(w.bound)
	v.Bool(w.protected)
}

// saveAccount writes the number of an account, or that it is nil.
func (v *saver) saveAccount(a *account) {
	n, ok := v.accountNumbers[a]
	if ok {
		n++
	}
	v.Len(n)
}

func (v *saver) saveRest() {
	v.Len(len(v.recent.ring))
	v.Len(v.recent.next)
	for _, o := range v.recent.ring {
		v.Raw(o.code[:])
		v.saveAccount(o.owner)
	}
	v.Len(len(v.withdrawals))
	for _, code := range slices.SortedFunc(maps.Keys(v.withdrawals), compareIDs) {
		w := v.withdrawals[code]
		v.Len(v.accountNumbers[w.account])
		v.saveTransaction(&w.transaction)
	}
	v.Len(len(v.venue))
	for _, name := range slices.Sorted(maps.Keys(v.venue)) {
		v.Word(string(name))
		v.Int(int64(v.venue[name]))
	}
	v.Visit(v.core.Visit)
}

func (v *saver) saveTransaction(t *ledger.Transaction) {
	v.Raw(t.Code[:])
	for _, text := range [...]string{t.CustomerCode, t.Broker, string(t.Type), t.Currency, string(t.Status)} {
		v.Word(text)
	}
	v.Int(int64(t.Amount))
	v.Int(int64(t.Balance))
	v.String(t.ReferenceID)
	v.Int(int64(t.Created))
	v.Int(int64(t.Updated - t.Created))
}
