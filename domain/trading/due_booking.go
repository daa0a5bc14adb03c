package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/market"
)

// How far from zero what is fixed may bring a balance, of an account or of the venue. A posting must never be what fails:
// whoever owes it could do nothing else. Money ends at 92 billion; what lies between is for what trades book meanwhile.
const (
	maxSettled = fixed.Money(5e18) // 50 billion, by settlement
	maxFunded  = fixed.Money(8e18) // 80 billion, by funding
)

// reach is between which balances one may move while what is owed is posted, in whatever order.
type reach struct{ low, high fixed.Wide }

func reachOf(balance fixed.Money) reach { return reach{balance.Wide(), balance.Wide()} }

// after returns the reach with one more amount.
func (r reach) after(amount fixed.Money) reach {
	if amount < 0 {
		r.low = r.low.Add(amount.Wide())
	} else {
		r.high = r.high.Add(amount.Wide())
	}
	return r
}

// within reports whether the balance stays that near to zero.
func (r reach) within(most fixed.Money) bool {
	return r.high.Cmp(most.Wide()) <= 0 && r.low.Cmp((-most).Wide()) >= 0
}

// booking is what all accounts and the venue will have posted, with what a record is about to fix.
type booking struct {
	state *State
	// magnitude is no less than all balances and all amounts together, without their signs. While that is small enough no
	// account need be looked at, of which there may be very many.
	magnitude fixed.Wide
	admitted  []*instant

	accounts          map[*account]reach // of whom something is owed, or will be; nil while the magnitude is small enough
	clearing, funding reach
}

// newBooking begins with what there is and what is owed already. Settlement moves what positions are worth at its mark, and
// what they cost: for the next one that is what they were worth at the last.
func (s *State) newBooking() *booking {
	b := &booking{state: s, magnitude: s.balances}
	for _, m := range [...]fixed.Money{s.fund.balance, s.venue[ledger.Clearing], s.venue[ledger.Funding]} {
		b.magnitude = b.magnitude.Add(m.Wide().Abs())
	}
	for _, i := range s.listing {
		b.magnitude = b.magnitude.Add(i.costs)
		for _, x := range i.instants {
			b.magnitude = b.magnitude.Add(x.magnitude())
		}
	}
	return b
}

// magnitude is no less than what an instant moves, without signs, and what it makes positions cost. Each position's part is
// rounded by less than a unit.
func (x *instant) magnitude() fixed.Wide {
	i := x.instrument
	worth, units := i.contract.Worth(i.openInterest, x.mark).Wide(), fixed.WideOf(int64(i.holders.length)+2)
	if x.kind == instantFunding {
		return worth.Add(units).Mul(2*fixed.Abs(x.rate)).Div(market.RateUnit, fixed.Ceiling).Add(units)
	}
	return worth.Add(units).Mul(4)
}

// admit takes an instant in that is about to be fixed, for all who hold a position. If it would bring any balance further
// from zero than that, nothing of it is taken in.
func (b *booking) admit(x *instant, most fixed.Money) bool {
	after := b.magnitude.Add(x.magnitude())
	if (b.accounts != nil || after.Cmp(most.Wide()) > 0) && !b.admitEach(x, most) {
		return false
	}
	b.magnitude, b.admitted = after, append(b.admitted, x)
	return true
}

// eachDebt passes all that is owed.
func (s *State) eachDebt(take func(debt)) {
	for _, i := range s.listing {
		if len(i.instants) == 0 {
			continue
		}
		last := i.instants[len(i.instants)-1].number
		for h := i.holders.first; h != nil && h.posted < last; h = h.behind {
			for _, d := range h.debts(nil) {
				take(d)
			}
		}
	}
}

// admitEach does that account by account.
func (b *booking) admitEach(x *instant, most fixed.Money) bool {
	b.part()
	venue := *b.venue(x.kind)
	for h := x.instrument.holders.first; h != nil; h = h.behind {
		amount := h.owing(x).amount
		if venue = venue.after(-amount); !b.of(h.account).after(amount).within(most) || !venue.within(most) {
			return false
		}
	}
	b.take(x)
	return true
}

// part begins to look at the accounts by themselves.
func (b *booking) part() {
	if b.accounts != nil {
		return
	}
	b.accounts = make(map[*account]reach)
	b.clearing, b.funding = reachOf(b.state.venue[ledger.Clearing]), reachOf(b.state.venue[ledger.Funding])
	b.state.eachDebt(b.add)
	for _, x := range b.admitted {
		b.take(x)
	}
}

// take adds what all owe of an instant that is about to be fixed.
func (b *booking) take(x *instant) {
	for h := x.instrument.holders.first; h != nil; h = h.behind {
		b.add(h.owing(x))
	}
}

func (b *booking) add(d debt) {
	on := b.venue(d.instant.kind)
	b.accounts[d.position.account] = b.of(d.position.account).after(d.amount)
	*on = on.after(-d.amount)
}

func (b *booking) of(a *account) reach {
	if r, ok := b.accounts[a]; ok {
		return r
	}
	return reachOf(a.balance)
}

// venue returns the other side of what an instant moves.
func (b *booking) venue(kind instantKind) *reach {
	if kind == instantFunding {
		return &b.funding
	}
	return &b.clearing
}
