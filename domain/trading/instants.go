package trading

import (
	"cmp"
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// instantKind is what an instant is of. Where several fall on one time they count in this order.
type instantKind uint8

const (
	instantFunding instantKind = iota
	instantSettlement
	instantKinds // how many there are
)

// instant is one of funding or settlement that was fixed for an instrument and is not posted by all. Whoever held a
// position then owes what follows from it, and their equity counts it. A position does not change before it has posted
// what it owes, so that its size now is still that of the instant.
type instant struct {
	number     int64 // among all instants of the venue, in the order in which they were fixed
	kind       instantKind
	instrument *instrument
	time       scalar.Time
	mark       int64 // marks
	rate       int64 // of funding, in parts of 10⁸
	owing      int   // positions that have not posted it
	// left is what those who posted funding put into the venue's account for it, less what they took out.
	left    fixed.Money
	posting *dueEntry
}

// owe adds an instant, which all who hold a position owe.
func (f *fold) owe(x *instant) {
	i := x.instrument
	if i.holders.length == 0 {
		return
	}
	f.unrank() // what is settled is no longer gained
	f.fixed++
	x.number, x.owing = f.fixed, i.holders.length
	i.instants = append(i.instants, x)
	f.outstanding++
	x.posting = &dueEntry{time: x.time, kind: duePosting, instant: x}
	f.due.push(x.posting)
}

// instantOf returns an instant that is not posted by all.
func (i *instrument) instantOf(kind instantKind, time scalar.Time) *instant {
	for _, x := range i.instants {
		if x.kind == kind && x.time == time {
			return x
		}
	}
	panic("trading: an event posts what nobody owes on " + i.contract.Symbol)
}

// posted takes over that a position has posted an instant, and what that left in the venue's account for funding.
func (f *fold) posted(h *position, x *instant, left fixed.Money) {
	i := h.instrument
	h.posted = x.number
	i.holders.remove(h)
	i.holders.push(h)
	x.left = x.left.Add(left)
	if x.owing--; x.owing > 0 {
		return
	}
	f.cancelEntry(x.posting)
	i.instants = slices.DeleteFunc(i.instants, func(o *instant) bool { return o == x })
	f.outstanding--
}

// fundingPosted takes over that a position posted a funding instant.
func (f *fold) fundingPosted(e *FundingPosted) {
	h := f.position(e.CustomerCode, e.Symbol)
	var left fixed.Money
	for i := range e.Entries {
		if p := &e.Entries[i]; p.CustomerCode != "" || p.Account == ledger.Insurance {
			left = left.Sub(p.Amount)
		}
	}
	f.posted(h, h.instrument.instantOf(instantFunding, e.Time), left)
}

// settlementPosted takes over that a position was settled; its cost is in the event's position.
func (f *fold) settlementPosted(e *SettlementPosted) {
	h := f.position(e.CustomerCode, e.Symbol)
	f.posted(h, h.instrument.instantOf(instantSettlement, e.Time), 0)
}

// debt is what a position owes of one instant.
type debt struct {
	position *position
	instant  *instant
	amount   fixed.Money // credited to the account; negative is paid
	cost     fixed.Money // of the position afterwards
}

// debts appends what a position owes, in the order of the instants.
func (h *position) debts(list []debt) []debt {
	cost := h.cost
	for _, x := range h.instrument.instants {
		if x.number <= h.posted || h.size == 0 {
			continue
		}
		d := h.debt(x, cost)
		list, cost = append(list, d), d.cost
	}
	return list
}

// debt is what the position owes of an instant that comes when it has that cost.
func (h *position) debt(x *instant, cost fixed.Money) debt {
	c := h.instrument.contract
	if x.kind == instantFunding {
		return debt{h, x, c.Funding(h.size, x.mark, x.rate), cost}
	}
	worth := c.Worth(h.size, x.mark)
	return debt{h, x, worth.Sub(cost), worth}
}

// owing is what the position would owe of an instant that is fixed now, behind what it owes already.
func (h *position) owing(x *instant) debt {
	cost, _, _ := h.afterDebts()
	return h.debt(x, cost)
}

// debts returns what an account owes, in the order of the instants: what was fixed first comes first, and of what was
// fixed at one time funding before settlement.
func (s *State) debts(a *account) []debt {
	if s.outstanding == 0 {
		return nil
	}
	var list []debt
	for _, h := range a.positions {
		list = h.debts(list)
	}
	sortDebts(list)
	return list
}

func sortDebts(list []debt) {
	slices.SortFunc(list, func(a, b debt) int { return cmp.Compare(a.instant.number, b.instant.number) })
}

// firstDebts returns what a record that touches an account posts before it does anything else to it, in the order of the
// instants: all that the touched position owes (nil for none), and of the account's other positions as many as go with
// about so many postings: one at least, unless a position is touched and none are allowed. A position posts all that it owes or nothing, so that whoever owes stands first among the
// holders of an instrument. rest is what the account is still credited afterwards: its equity counts that, and the steps
// post it. An account may owe on more instruments than a record could ever hold.
func (s *State) firstDebts(a *account, touched *position, most int) (list []debt, rest fixed.Wide) {
	if s.outstanding == 0 {
		return nil, rest
	}
	if touched != nil {
		list = touched.debts(nil)
	}
	for _, h := range a.positions {
		if h == touched {
			continue
		}
		n := len(list)
		if list = h.debts(list); len(list) > most && (n > 0 || touched != nil && most == 0) {
			for _, d := range list[n:] {
				rest = rest.Add(d.amount.Wide())
			}
			list = list[:n]
		}
	}
	sortDebts(list)
	return list, rest
}

// firstDebts is that of the draft's own bounds: a record that failed is tried again with as little as there can be in it.
func (d *draft) firstDebts(a *account) ([]debt, fixed.Wide) {
	return d.state.firstDebts(a, a.on(d.instrument), d.limit.debts)
}

// afterDebts returns what the position's cost will be once all is posted that it owes, what its account will be credited
// for funding, and what for settlement.
func (h *position) afterDebts() (cost, funding, settled fixed.Money) {
	cost = h.cost
	if len(h.instrument.instants) == 0 {
		return cost, 0, 0
	}
	var room [4]debt
	for _, d := range h.debts(room[:0]) {
		if d.instant.kind == instantFunding {
			funding = funding.Add(d.amount)
		} else {
			settled = settled.Add(d.amount)
		}
		cost = d.cost
	}
	return cost, funding, settled
}

// holders are the open positions on an instrument, as a list through them: those that posted last stand last, so that
// whoever owes stands first.
type holders struct {
	first, last *position
	length      int
}

// push puts a position at the end.
func (l *holders) push(h *position) {
	h.before = l.last
	if l.last == nil {
		l.first = h
	} else {
		l.last.behind = h
	}
	l.last = h
	l.length++
}

// remove takes a position out.
func (l *holders) remove(h *position) {
	if h.before == nil {
		l.first = h.behind
	} else {
		h.before.behind = h.behind
	}
	if h.behind == nil {
		l.last = h.before
	} else {
		h.behind.before = h.before
	}
	h.before, h.behind = nil, nil
	l.length--
}
