package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/market"
)

// Limits of the absolute balance, of an account or of the venue, that a settlement or funding charge may lead to. A
// posting must never fail, because its account could do nothing else. Money can count to 92 billion; the room between
// these limits and that is for trades that are booked before the postings.
const (
	maxSettled = fixed.Money(5e18) // 50 billion, for settlement
	maxFunded  = fixed.Money(8e18) // 80 billion, for funding
)

// reach is the range of balances through which an account may move while its unpaid charges are posted, in any order.
type reach struct{ low, high fixed.Wide }

func reachOf(balance fixed.Money) reach { return reach{balance.Wide(), balance.Wide()} }

// after returns the reach after one more posting.
func (r reach) after(amount fixed.Money) reach {
	if amount < 0 {
		r.low = r.low.Add(amount.Wide())
	} else {
		r.high = r.high.Add(amount.Wide())
	}
	return r
}

// within reports whether the absolute balance stays at or below most.
func (r reach) within(most fixed.Money) bool {
	return r.high.Cmp(most.Wide()) <= 0 && r.low.Cmp((-most).Wide()) >= 0
}

// booking projects the balances of all accounts and of the venue after all postings that are owed, including those of
// the charges that the record is about to fix.
type booking struct {
	state *State
	// magnitude is an upper bound of the sum of all absolute balances and all absolute amounts. While it is below the
	// limit, accounts need not be checked one by one. There may be very many accounts.
	magnitude fixed.Wide
	admitted  []*charge

	accounts          map[*account]reach // reaches of the accounts that owe or will owe; nil while the magnitude suffices
	clearing, funding reach
}

// newBooking starts with the current balances and everything that is owed already. A settlement moves the difference
// between the value of a position at its mark and the position's cost; for the next settlement, the cost is the value
// at the last one.
func (s *State) newBooking() *booking {
	b := &booking{state: s, magnitude: s.balances}
	for _, m := range [...]fixed.Money{s.fund.balance, s.venue[ledger.Clearing], s.venue[ledger.Funding]} {
		b.magnitude = b.magnitude.Add(m.Wide().Abs())
	}
	for _, i := range s.listing {
		b.magnitude = b.magnitude.Add(i.costs)
		for _, x := range i.charges {
			b.magnitude = b.magnitude.Add(x.magnitude())
		}
	}
	return b
}

// magnitude returns an upper bound of the absolute amounts that a charge moves plus the costs that it gives to
// positions. Rounding adds less than a unit per position.
func (x *charge) magnitude() fixed.Wide {
	i := x.instrument
	worth, units := i.contract.Worth(i.openInterest, x.mark).Wide(), fixed.WideOf(int64(i.holders.length)+2)
	if x.kind == fundingCharge {
		return worth.Add(units).Mul(2*fixed.Abs(x.rate)).Div(market.RateUnit, fixed.Ceiling).Add(units)
	}
	return worth.Add(units).Mul(4)
}

// admit adds a charge that is about to be fixed for all holders. It adds nothing and returns false if the charge
// would bring any absolute balance above most.
func (b *booking) admit(x *charge, most fixed.Money) bool {
	after := b.magnitude.Add(x.magnitude())
	if (b.accounts != nil || after.Cmp(most.Wide()) > 0) && !b.admitEach(x, most) {
		return false
	}
	b.magnitude, b.admitted = after, append(b.admitted, x)
	return true
}

// eachCharge calls take with every unpaid charge of every account.
func (s *State) eachCharge(take func(unpaidCharge)) {
	for _, i := range s.listing {
		if len(i.charges) == 0 {
			continue
		}
		last := i.charges[len(i.charges)-1].number
		for h := i.holders.first; h != nil && h.posted < last; h = h.inHolders.after {
			for _, d := range h.unpaidCharges(nil) {
				take(d)
			}
		}
	}
}

// admitEach is admit with a check of every account.
func (b *booking) admitEach(x *charge, most fixed.Money) bool {
	b.part()
	venue := *b.venue(x.kind)
	for h := x.instrument.holders.first; h != nil; h = h.inHolders.after {
		amount := h.owing(x).amount
		if venue = venue.after(-amount); !b.of(h.account).after(amount).within(most) || !venue.within(most) {
			return false
		}
	}
	b.take(x)
	return true
}

// part starts to track the accounts one by one.
func (b *booking) part() {
	if b.accounts != nil {
		return
	}
	b.accounts = make(map[*account]reach)
	b.clearing, b.funding = reachOf(b.state.venue[ledger.Clearing]), reachOf(b.state.venue[ledger.Funding])
	b.state.eachCharge(b.add)
	for _, x := range b.admitted {
		b.take(x)
	}
}

// take adds the unpaid charges of all holders for a charge that is about to be fixed.
func (b *booking) take(x *charge) {
	for h := x.instrument.holders.first; h != nil; h = h.inHolders.after {
		b.add(h.owing(x))
	}
}

func (b *booking) add(d unpaidCharge) {
	on := b.venue(d.charge.kind)
	b.accounts[d.position.account] = b.of(d.position.account).after(d.amount)
	*on = on.after(-d.amount)
}

func (b *booking) of(a *account) reach {
	if r, ok := b.accounts[a]; ok {
		return r
	}
	return reachOf(a.balance)
}

// venue returns the reach of the venue's account on the other side of a charge's postings.
func (b *booking) venue(kind chargeKind) *reach {
	if kind == fundingCharge {
		return &b.funding
	}
	return &b.clearing
}
