package trading

import (
	"cmp"
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/schedule"
)

// chargeKind is the kind of a charge. If several have the same time, they apply in this order.
type chargeKind uint8

const (
	fundingCharge chargeKind = iota
	settlementCharge
	chargeKinds // number of kinds
)

// charge is a funding or settlement charge that was fixed for an instrument and that not all its holders have posted.
// Every position that was open then owes the resulting payment, and the account's equity counts it. A position does not
// change before it has posted what it owes, so its size is still the size at the instant.
type charge struct {
	number     int64 // among all charges of the venue, in the order in which they were fixed
	kind       chargeKind
	instrument *instrument
	time       scalar.Time
	mark       int64 // marks
	rate       int64 // funding rate, in parts of 10⁸
	owing      int   // number of positions that have not posted it
	// left is the net amount that the funding postings so far have left in the venue's funding account.
	left    fixed.Money
	posting *dueEntry
}

// owe adds a charge that all present holders owe.
func (f *fold) owe(x *charge) {
	i := x.instrument
	if i.holders.length == 0 {
		return
	}
	f.unrank() // settlement changes unrealized profits, and funding equities
	f.fixed++
	x.number, x.owing = f.fixed, i.holders.length
	i.charges = append(i.charges, x)
	f.outstanding++
	x.posting = &dueEntry{Slot: schedule.At(x.time, duePosting), instant: x}
	f.due.push(x.posting)
}

// chargeOf returns an unfinished charge of the instrument. It panics if there is none.
func (i *instrument) chargeOf(kind chargeKind, time scalar.Time) *charge {
	for _, x := range i.charges {
		if x.kind == kind && x.time == time {
			return x
		}
	}
	panic("trading: an event posts what nobody owes on " + i.contract.Symbol)
}

// posted applies that a position has posted a charge. left is the amount that the posting left in the venue's funding
// account.
func (f *fold) posted(h *position, x *charge, left fixed.Money) {
	i := h.instrument
	h.posted = x.number
	i.holders.remove(h)
	i.holders.push(h)
	x.left = x.left.Add(left)
	if x.owing--; x.owing > 0 {
		return
	}
	f.cancelEntry(x.posting)
	i.charges = slices.DeleteFunc(i.charges, func(o *charge) bool { return o == x })
	f.outstanding--
}

// fundingPosted applies the event.
func (f *fold) fundingPosted(e *FundingPosted) {
	h := f.position(e.CustomerCode, e.Symbol)
	var left fixed.Money
	for i := range e.Entries {
		if p := &e.Entries[i]; p.CustomerCode != "" || p.Account == ledger.Insurance {
			left = left.Sub(p.Amount)
		}
	}
	f.posted(h, h.instrument.chargeOf(fundingCharge, e.Time), left)
}

// settlementPosted applies the event. The cost is set from the position in the event.
func (f *fold) settlementPosted(e *SettlementPosted) {
	h := f.position(e.CustomerCode, e.Symbol)
	f.posted(h, h.instrument.chargeOf(settlementCharge, e.Time), 0)
}

// unpaidCharge is the payment that a position owes for one charge.
type unpaidCharge struct {
	position *position
	charge   *charge
	amount   fixed.Money // credited to the account; negative if the account pays
	cost     fixed.Money // of the position afterwards
}

// unpaidCharges appends the unpaid charges of a position, in the order of the charges.
func (h *position) unpaidCharges(list []unpaidCharge) []unpaidCharge {
	cost := h.cost
	for _, x := range h.instrument.charges {
		if x.number <= h.posted || h.size == 0 {
			continue
		}
		d := h.unpaidCharge(x, cost)
		list, cost = append(list, d), d.cost
	}
	return list
}

// unpaidCharge returns the position's charge for a charge, if cost is its cost before it.
func (h *position) unpaidCharge(x *charge, cost fixed.Money) unpaidCharge {
	c := h.instrument.contract
	if x.kind == fundingCharge {
		return unpaidCharge{h, x, c.Funding(h.size, x.mark, x.rate), cost}
	}
	worth := c.Worth(h.size, x.mark)
	return unpaidCharge{h, x, worth.Sub(cost), worth}
}

// owing returns what the position would owe for a charge that is fixed now, after its present ones.
func (h *position) owing(x *charge) unpaidCharge {
	cost, _, _ := h.afterCharges()
	return h.unpaidCharge(x, cost)
}

func sortDebts(list []unpaidCharge) {
	slices.SortFunc(list, func(a, b unpaidCharge) int { return cmp.Compare(a.charge.number, b.charge.number) })
}

// firstCharges returns the unpaid charges that a record must post before it does anything else to an account, in the
// order of the charges. They are all unpaid charges of the touched position (nil for none), and those of as many other
// positions of the account as fit about most postings: of at least one position, unless touched is set and most is 0. A
// position posts all its unpaid charges or none, so that the positions that owe come first among the holders of an
// instrument. rest is the sum of the account's remaining unpaid charges: its equity counts them, and steps post them.
// An account may owe on more instruments than one record could hold.
func (s *State) firstCharges(a *account, touched *position, most int) (list []unpaidCharge, rest fixed.Wide) {
	if s.outstanding == 0 {
		return nil, rest
	}
	if touched != nil {
		list = touched.unpaidCharges(nil)
	}
	for _, h := range a.positions {
		if h == touched {
			continue
		}
		n := len(list)
		if list = h.unpaidCharges(list); len(list) > most && (n > 0 || touched != nil && most == 0) {
			for _, d := range list[n:] {
				rest = rest.Add(d.amount.Wide())
			}
			list = list[:n]
		}
	}
	sortDebts(list)
	return list, rest
}

// firstCharges calls State.firstCharges with the limit of the builder. The retry of a record that failed has the lowest
// limit.
func (d *recordBuilder) firstCharges(a *account) ([]unpaidCharge, fixed.Wide) {
	return d.state.firstCharges(a, a.on(d.instrument), d.limit.charges)
}

// afterCharges returns the position's cost after all its unpaid charges are posted, and the amounts that its account
// will be credited for funding and for settlement.
func (h *position) afterCharges() (cost, funding, settled fixed.Money) {
	cost = h.cost
	if len(h.instrument.charges) == 0 {
		return cost, 0, 0
	}
	var room [4]unpaidCharge
	for _, d := range h.unpaidCharges(room[:0]) {
		if d.charge.kind == fundingCharge {
			funding = funding.Add(d.amount)
		} else {
			settled = settled.Add(d.amount)
		}
		cost = d.cost
	}
	return cost, funding, settled
}

// holders is a linked list of the open positions on an instrument. A position moves to the end when it posts, so that
// those that owe come first.
type holders = chain[position, holderLinks]

type holderLinks struct{}

func (holderLinks) links(h *position) *links[position] { return &h.inHolders }
