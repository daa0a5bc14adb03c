package trading

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/pack"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/schedule"
)

// codecVersion is the version of the format that the visit of a State defines. It must be raised with every change of
// the format, and of the content or meaning of a State: TestTheFormIsThatOfItsVersion says when (an optional part of an order is an exception, see savedInstruction). A snapshot of another
// version is ignored and the state is made from the log, so there are no migrations.
const codecVersion = 19

// Codec returns the codec for states of the trading journal.
func Codec() decide.StateCodec {
	return stateCodec{decide.VisitCodec[*State]{Journal: "trading", Number: codecVersion, New: NewState, Visit: visitState}}
}

type stateCodec struct{ decide.VisitCodec[*State] }

// Read implements decide.StateCodec.
//
// Read checks numbers, lengths and references between parts as it reads them. Other contradictions, for example an
// instrument that cannot be counted or a level without a price, make the packages that they belong to panic. Read
// returns these panics as errors: a caller can do without a snapshot that it cannot read.
func (v stateCodec) Read(b []byte) (_ decide.State, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("trading: the saved state contradicts itself: %v", p)
		}
	}()
	read, err := v.VisitCodec.Read(b)
	if err != nil {
		return nil, err
	}
	s := read.(*State)
	for _, l := range s.due.lists() {
		l.Restore()
	}
	if !s.lookAgain() {
		return nil, fmt.Errorf("trading: %w", errContradiction)
	}
	return s, nil
}

var errContradiction = errors.New("the saved state contradicts itself")

// lookAgain computes the parts of the state that are not saved because they follow from the rest: the bounds of all
// accounts, and which accounts to liquidate wait. It returns false if the saved liquidations contradict the margins.
func (s *State) lookAgain() bool {
	s.fund.balance = s.venue[ledger.Insurance]
	s.solvent = s.fund.balance > 0
	for _, i := range s.listing {
		i.open = i.status() == market.Open
	}
	for _, a := range s.holders() {
		for _, h := range a.positions {
			h.instrument.costs = h.instrument.costs.Add(h.cost.Wide().Abs())
		}
	}
	f := &fold{State: s}
	for _, a := range s.registered {
		s.balances = s.balances.Add(a.balance.Wide().Abs())
		if s.look(a) != (a.failing != nil) {
			return false
		}
		if a.failing != nil {
			f.schedule(a)
		}
	}
	return true
}

// visit visits one state: it writes the state, estimates its size, or fills a new one. Parts that are referred to come
// first and are numbered. While reading, each part is added to the state as soon as its fields were read.
//
// The format, in this order: the instruments; the accounts with their positions; the orders of the books in order of
// priority, then all other live orders; the lists that refer to orders by their numbers in that order (each account's
// orders in order of arrival, reduce-only orders, due work); everything else. So a reader builds the books from front
// to back and needs no lookup by code.
type visit struct {
	*State
	*pack.Coder
	accounts  pack.Table[account] // the customers, then the insurance fund
	positions pack.Table[position]
	orders    orderNumbers
	stops     []*stop // read so far, waiting
	// last is the order before, to which times and sequences are differences.
	last struct {
		created  scalar.Time
		sequence int64
	}
}

// Approximate sizes in bytes, of parts that Size does not visit.
const (
	orderSize    = 36
	recentSize   = 18
	nameSize     = 50 // of a reference
	transferSize = 120
	holderSize   = 4
)

func visitState(s *State, c *pack.Coder) {
	v := &visit{State: s, Coder: c}
	v.positions.Expect(c, 2*len(s.registered))
	pack.Int(c, &s.time)
	pack.Int(c, &s.due.arrived)
	v.entry(&s.settlement, dueEntry{Slot: schedule.Slot{Kind: dueSettlement}})
	pack.List(c, &s.listing, v.instrument)
	pack.List(c, &s.registered, v.account)
	v.numberAccounts()
	pack.Int(c, &s.fund.updated)
	v.holdings(s.fund)
	if c.Sizing() {
		c.Add(v.roughly())
		return
	}
	c.Bool(&s.fund.opened)
	v.transfers(s.fund)
	v.liveOrders()
	v.lists()
	v.visitSessions()
	v.instants()
	v.dueWork()
	v.recentOrders()
	v.visitWithdrawals()
	pack.Map(c, &s.venue, cmp.Compare[ledger.Account], func(name ledger.Account, balance fixed.Money) (ledger.Account, fixed.Money) {
		pack.Word(c, &name)
		pack.Int(c, &balance)
		return name, balance
	})
	v.statements()
	v.imported()
	s.core.Visit(c)
}

// imported visits the imports of opening balances and positions.
func (v *visit) imported() {
	pack.List(v.Coder, &v.imports, func(x *OpeningImport) {
		c := v.Coder
		for _, text := range [...]*string{&x.Source, &x.SHA256, &x.ImportedBy} {
			pack.String(c, text)
		}
		pack.Small(c, &x.Balances)
		pack.Int(c, &x.BalanceTotal)
		pack.Small(c, &x.Positions)
		pack.Int(c, &x.Created)
		pack.Int(c, &x.Sequence)
	})
	if v.Reading() {
		for _, x := range v.imports {
			v.bySHA[x.SHA256] = x
		}
		v.check(len(v.bySHA) == len(v.imports))
	}
}

// statements visits the last instant of funding, and the last statement of liabilities.
func (v *visit) statements() {
	c, s := v.Coder, &v.State.statements
	pack.Int(c, &s.instant.Sequence)
	pack.Int(c, &s.instant.Time)
	c.Raw(s.instant.Hash[:])
	pack.Int(c, &s.external)
	pack.Int(c, &s.fees)
	pack.Int(c, &s.stated.sequence)
	pack.Int(c, &s.stated.position)
	c.Raw(s.stated.digest[:])
}

// roughly returns about how many bytes the parts take that a visit for the size leaves out. Some are long lists of equal
// parts, and others differ too much between accounts for a sample.
func (v *visit) roughly() int {
	size := v.State.orders.Len()*orderSize + len(v.recent.ring)*recentSize + len(v.withdrawals)*transferSize + pack.Size(v.core.Visit)
	for _, i := range v.listing {
		size += i.holders.length * holderSize
	}
	for _, a := range v.registered {
		size += len(a.references.names)*nameSize + len(a.transfers)*transferSize
	}
	return size
}

// check makes reading fail unless what was read can be.
func (v *visit) check(valid bool) {
	if !valid {
		v.Fail(errContradiction)
	}
}

// entry visits the time and the arrival number of a due entry, which may be set aside, or that there is none. The entry
// that is read is otherwise like one.
func (v *visit) entry(p **dueEntry, like dueEntry) {
	exists := *p != nil
	if v.Bool(&exists); !exists {
		return
	}
	if v.Reading() {
		*p = new(dueEntry)
		**p = like
		v.due.list(*p).Append(*p)
	}
	pack.Int(v.Coder, &(*p).Time)
	pack.Int(v.Coder, &(*p).arrival)
}

func (v *visit) instrument(i *instrument) {
	c := v.Coder
	if c.Reading() {
		i.contract = new(market.Contract)
	}
	visitInstrument(&i.contract.Instrument, c)
	if c.Reading() {
		if c.Err() != nil {
			return
		}
		*i = *newInstrument(market.NewContract(i.contract.Instrument), len(v.listing))
		v.check(v.instruments[i.contract.Symbol] == nil)
		v.instruments[i.contract.Symbol] = i
	}
	pack.Int(c, &i.created)
	pack.Int(c, &i.mark)
	v.prices(i)
	pack.Int(c, &i.last)
	pack.Int(c, &i.openInterest)
	pack.Int(c, &i.clearing)
	for n := range i.triggerIndexes {
		pack.Int(c, &i.triggerIndexes[n].low)
		pack.Int(c, &i.triggerIndexes[n].high)
	}
	pack.Int(c, &i.stops)
	v.entry(&i.triggers, dueEntry{Slot: schedule.Slot{Kind: dueTrigger}, instrument: i})
	v.entry(&i.fundMoves, dueEntry{Slot: schedule.Slot{Kind: dueInsurance}, instrument: i})
}

// prices visits the inputs of an instrument's mark price.
func (v *visit) prices(i *instrument) {
	c, p := v.Coder, &i.prices
	pack.Int(c, &p.indexPrice)
	pack.Int(c, &p.indexTime)
	p.window.Visit(c)
	c.Bool(&p.stale)
	p.premiums.Visit(c)
	pack.Int(c, &p.minute)
	pack.Int(c, &p.rate)
	v.entry(&p.guard, dueEntry{Slot: schedule.Slot{Kind: dueStaleGuard}, instrument: i})
	v.entry(&p.funding, dueEntry{Slot: schedule.Slot{Kind: dueFunding}, instrument: i})
}

func visitInstrument(i *market.Instrument, c *pack.Coder) {
	for _, text := range [...]*string{&i.Symbol, &i.Underlying, &i.QuoteCurrency, &i.SettlementCurrency, (*string)(&i.Status)} {
		pack.Word(c, text)
	}
	for _, d := range [...]*fixed.Decimal{&i.PriceTick, &i.AmountStep, &i.MinAmount, &i.MaxAmount, &i.ContractSize, &i.InitMarginReq,
		&i.MaintMarginReq, &i.PriceBand, &i.LimitBand, &i.MakerFee, &i.TakerFee} {
		visitDecimal(d, c)
	}
	for _, n := range [...]*int{&i.MaxLeverage, &i.FundingIntervalSeconds, &i.IndexStaleSeconds} {
		pack.Small(c, n)
	}
	pack.Slice(c, &i.Tiers, func(t *market.Tier, c *pack.Coder) {
		pack.Int(c, &t.NotionalFrom)
		visitDecimal(&t.InitMarginReq, c)
		visitDecimal(&t.MaintMarginReq, c)
		pack.Small(c, &t.MaxLeverage)
	})
}

func visitDecimal(d *fixed.Decimal, c *pack.Coder) {
	pack.Int(c, &d.Coef)
	pack.Byte(c, &d.Scale)
	if d.Scale > fixed.MaxDigits {
		c.Fail(errContradiction)
	}
}

func (v *visit) account(a *account) {
	c := v.Coder
	pack.String(c, &a.code)
	pack.Word(c, &a.broker)
	pack.String(c, &a.name)
	pack.Int(c, &a.created)
	pack.Delta(c, &a.updated, a.created)
	pack.Int(c, &a.balance)
	pack.Int(c, &a.pending)
	pack.Small(c, &a.leverage)
	visitDecimal(&a.initialMargin, c)
	visitDecimal(&a.maintenanceMargin, c)
	if c.Reading() {
		if c.Err() != nil {
			return
		}
		a.setMargins(&MarginProfileSet{Leverage: a.leverage, InitialMargin: a.initialMargin, MaintenanceMargin: a.maintenanceMargin})
	}
	pack.Small(c, &a.cancelAllAfterSeconds)
	v.entry(&a.cancelAllAfter, dueEntry{Slot: schedule.Slot{Kind: dueCancelAllAfter}, account: a})
	v.entry(&a.failing, dueEntry{Slot: schedule.Slot{Kind: dueLiquidation}, account: a})
	v.holdings(a)
	if c.Sizing() {
		return
	}
	c.Bool(&a.opened)
	v.transfers(a)
	v.finalNames(a)
}

// numberAccounts makes it possible to refer to the accounts. Reading registers them.
func (v *visit) numberAccounts() {
	if v.Sizing() || v.Err() != nil {
		return
	}
	all := v.registered
	if v.Reading() {
		v.State.accounts, v.registered = make(map[string]*account, len(all)), all[:0]
	}
	v.accounts.Expect(v.Coder, len(all)+1)
	for _, a := range all {
		v.accounts.Add(v.Coder, a)
		if v.Reading() {
			v.check(v.State.accounts[a.code] == nil)
			v.register(a)
		}
	}
	v.accounts.Add(v.Coder, v.fund)
}

// holdings visits an account's positions, and which of them is being deleveraged.
func (v *visit) holdings(a *account) {
	pack.List(v.Coder, &a.positions, func(h *position) { v.position(a, h) })
	deleveraging := 0
	for n, h := range a.positions {
		if h == a.deleveraging {
			deleveraging = n + 1
		}
	}
	if n := v.Index(deleveraging, len(a.positions)+1); v.Reading() && n > 0 {
		a.deleveraging = a.positions[n-1]
	}
}

func (v *visit) position(a *account, h *position) {
	c := v.Coder
	if v.instrumentRef(&h.instrument); c.Reading() {
		if n := len(a.positions); h.instrument == nil || n > 0 && a.positions[n-1].instrument.index >= h.instrument.index {
			v.Fail(errContradiction)
			return
		}
		h.account = a
	}
	v.positions.Add(c, h)
	pack.Int(c, &h.size)
	pack.Int(c, &h.cost)
	pack.Int(c, &h.bids)
	pack.Int(c, &h.asks)
	pack.Small(c, &h.leverage)
	c.Bool(&h.ownFees)
	pack.Int(c, &h.maker)
	pack.Int(c, &h.taker)
	pack.Int(c, &h.updated)
	pack.Int(c, &h.began)
	pack.Int(c, &h.lots)
}

// instrumentRef visits a pointer to an instrument, as its index. If reading fails, the pointer stays nil.
func (v *visit) instrumentRef(p **instrument) {
	if !v.Reading() {
		v.Index((*p).index, len(v.listing))
	} else if n := v.Index(0, len(v.listing)); v.Err() == nil {
		*p = v.listing[n]
	}
}

// customerRef visits a pointer to a customer's account, which is not the insurance fund. If reading fails, the pointer
// stays nil.
func (v *visit) customerRef(p **account) {
	pack.Ref(v.Coder, p, &v.accounts)
	if v.Reading() && *p == v.fund {
		v.Fail(errContradiction)
		*p = nil
	}
}

func (v *visit) transfers(a *account) {
	if v.Reading() {
		a.transfers = nil
	}
	pack.Map(v.Coder, &a.transfers, strings.Compare, func(name string, t transfer) (string, transfer) {
		pack.String(v.Coder, &name)
		pack.String(v.Coder, &t.fingerprint)
		pack.Int(v.Coder, &t.sequence)
		return name, t
	})
}

// finalNames visits the remembered names of an account's final orders, in the order in which these became final.
func (v *visit) finalNames(a *account) {
	r := a.references.finals.first
	for range v.Len(a.references.finals.length) {
		if v.Reading() {
			r = new(reference)
		}
		pack.String(v.Coder, &r.name)
		v.reference(r)
		if v.Reading() {
			r.final = true
			a.references.hold(r)
			a.references.finals.push(r)
			if v.Err() != nil {
				return
			}
		} else {
			r = r.inFinals.after
		}
	}
}

func (v *visit) reference(r *reference) {
	pack.String(v.Coder, &r.fingerprint)
	pack.Int(v.Coder, &r.sequence)
	pack.Int(v.Coder, &r.time)
}

// recentOrders visits the final orders that are remembered by code.
func (v *visit) recentOrders() {
	ring := v.recent.ring
	n := v.Len(len(ring))
	next := v.Index(v.recent.next, max(n, 1))
	if v.Reading() {
		if v.check(n <= recentOrders); v.Err() != nil {
			return
		}
		if n > 0 {
			ring = make([]finalOrder, n)
		}
		v.recent.ring, v.recent.next = ring, next
	}
	for i := range ring {
		o := &ring[i]
		v.Raw(o.code[:])
		if pack.OptionalRef(v.Coder, &o.owner, &v.accounts); v.Reading() {
			if o.owner == nil {
				v.Fail(errContradiction)
				return
			}
			v.recent.codes.Put(o.code, uint32(i+1), v.recent.code)
		}
	}
}

func (v *visit) visitWithdrawals() {
	pack.Map(v.Coder, &v.withdrawals, compareIDs, func(_ scalar.ID, w *withdrawal) (scalar.ID, *withdrawal) {
		if v.Reading() {
			w = new(withdrawal)
		}
		v.customerRef(&w.account)
		visitTransaction(&w.transaction, v.Coder)
		return w.transaction.Code, w
	})
}

func visitTransaction(t *ledger.Transaction, c *pack.Coder) {
	c.Raw(t.Code[:])
	for _, text := range [...]*string{&t.CustomerCode, &t.Broker, (*string)(&t.Type), &t.Currency, (*string)(&t.Status)} {
		pack.Word(c, text)
	}
	pack.Int(c, &t.Amount)
	pack.Int(c, &t.Balance)
	pack.String(c, &t.ReferenceID)
	pack.Int(c, &t.Created)
	pack.Delta(c, &t.Updated, t.Created)
}

func compareIDs(a, b scalar.ID) int { return slices.Compare(a[:], b[:]) }
