package reference

import (
	"math/big"
	"slices"
)

// instant is a funding or settlement instant that was fixed and that at least one holder of a position has not posted.
type instant struct {
	instrument *instrument
	funding    bool
	time       moment
	mark       int64              // in ticks
	rate       int64              // in 10⁻⁸
	owing      map[*account]int64 // the accounts that have not posted it, with their position sizes at the instant
	left       int64
}

// amount returns the credit to a position of a given size and cost. For funding, payments are rounded up and receipts
// down.
func (x *instant) amount(size, cost int64) int64 {
	worth := x.instrument.worth(x.mark, size)
	if !x.funding {
		return worth - cost
	}
	return down(times(rat(-worth, 1), rat(x.rate, 1e8)))
}

// owes returns the cost of a position after its account has posted all instants that it owes, and the sum of these
// credits.
func (a *Auditor) owes(h *position) (cost, credit int64) {
	cost = h.cost
	for _, x := range a.instants {
		if size, owes := x.owing[h.account]; owes && x.instrument == h.instrument {
			credit += x.amount(size, cost)
			if !x.funding {
				cost = x.instrument.worth(x.mark, size)
			}
		}
	}
	return cost, credit
}

// unsettled returns the credit of the settlements that the account owes. Until they are posted, it counts as unrealized
// profit.
func (a *Auditor) unsettled(h *position) (credit int64) {
	cost := h.cost
	for _, x := range a.instants {
		if size, owes := x.owing[h.account]; owes && x.instrument == h.instrument && !x.funding {
			credit += x.amount(size, cost)
			cost = x.instrument.worth(x.mark, size)
		}
	}
	return credit
}

// mostFirst is the greatest number of owed instants that a record posts before its own work. An account may owe instants
// on more instruments than fit into a record.
const mostFirst = 32

// settled fails the audit if an account is touched that owes an instant which had to be posted first. These are all
// instants on the instrument; i is nil if only the account is touched. If the account owes at most mostFirst instants,
// they are the instants also on all other instruments.
func (a *Auditor) settled(c *account, i *instrument) {
	for _, x := range a.instants {
		if _, owes := x.owing[c]; owes {
			must(x.instrument != i && a.tooMany(c), "%s is touched and owes the instant of %d on %s", c.code, x.time, x.instrument.Symbol)
		}
	}
}

// tooMany reports whether an account owes more instants than a record posts first. It includes the instants that this
// record posted.
func (a *Auditor) tooMany(c *account) bool {
	n := a.r.posted[c]
	for _, x := range a.instants {
		if _, owes := x.owing[c]; owes {
			n++
		}
	}
	return n > mostFirst || a.Single
}

// fix makes all holders of a position on the instrument owe the instant.
func (a *Auditor) fix(x *instant) {
	x.owing = make(map[*account]int64)
	for _, h := range a.holders(x.instrument) {
		x.owing[h.account] = h.size
		a.touch(h.account)
	}
	if len(x.owing) > 0 {
		a.instants = append(a.instants, x)
	}
}

// fundingAfter returns the first funding time after t. Funding times are multiples of the interval since midnight UTC.
func (i *instrument) fundingAfter(t moment) moment {
	interval, midnight := moment(i.FundingIntervalSeconds)*second, t-t%day
	return midnight + ((t-midnight)/interval+1)*interval
}

func settlementAfter(t moment) moment {
	at := t - t%day + 8*60*minute
	if at <= t {
		at += day
	}
	return at
}

// fundingRate returns (P + clamp(0.01 % − P, ±0.05 %)) × interval ÷ 8 hours, limited to ±0.75 × (initial − maintenance
// margin rate) of the first tier. P is the mean of the premiums. The result is in 10⁻⁸.
func (i *instrument) fundingRate() int64 {
	if len(i.premiums) == 0 {
		return 0
	}
	p := new(big.Rat)
	for _, s := range i.premiums {
		p.Add(p, s)
	}
	p.Quo(p, rat(int64(len(i.premiums)), 1))
	to := limit(minus(rat(1, 10_000), p), rat(-5, 10_000), rat(5, 10_000))
	r := times(plus(p, to), rat(i.FundingIntervalSeconds, 28_800))
	most := times(rat(3, 4), minus(i.tiers[0].initial.rat(), i.tiers[0].maint.rat()))
	return even(scaled(limit(r, new(big.Rat).Neg(most), most)))
}

func (a *Auditor) fundingFixed(e *fundingShape) {
	i := a.instrument(e.Symbol)
	must(a.r.work == "funding" && i.next != 0 && e.Timestamp == i.next && e.Timestamp <= a.now, "funding of %s is fixed for %d, at %d, and is due at %d", i.Symbol, e.Timestamp, a.now, i.next)
	late := a.now-e.Timestamp > minute
	must(e.Missed == late, "funding of %s for %d, at %d, was missed: %t", i.Symbol, e.Timestamp, a.now, e.Missed)
	want := int64(0)
	if !late {
		want = i.fundingRate()
		a.Seen.Funding++
	} else {
		a.Seen.Missed++
	}
	must(e.FundingRate.v == want, "the funding rate of %s is %s, not %s", i.Symbol, text(want), text(e.FundingRate.v))
	must(i.ticks(e.MarkPrice) == i.mark && e.IndexPrice.v == i.indexed && e.IntervalSeconds == i.FundingIntervalSeconds, "funding of %s is fixed at other prices", i.Symbol)
	i.rate, i.premiums, i.next = want, nil, i.fundingAfter(e.Timestamp)
	if want != 0 {
		a.fix(&instant{instrument: i, funding: true, time: e.Timestamp, mark: i.mark, rate: want})
	}
}

func (a *Auditor) settlementFixed(e *settlementShape) {
	last := a.settlement
	for next := settlementAfter(last); next <= a.now; next = settlementAfter(next) {
		last = next
	}
	must(a.r.work == "settlement" && a.settlement != 0 && a.settlement <= a.now && e.Timestamp == last, "settlement is fixed for %d, at %d, and is due for %d", e.Timestamp, a.now, last)
	a.settlement = settlementAfter(e.Timestamp)
	a.Seen.Settlement++
	marks := make(map[*instrument]bool)
	for _, m := range e.Marks {
		i := a.instrument(m.Symbol)
		marks[i] = true
		must(i.ticks(m.MarkPrice) == i.mark, "%s is settled at %s", i.Symbol, text(m.MarkPrice.v))
		a.fix(&instant{instrument: i, time: e.Timestamp, mark: i.mark})
	}
	for _, i := range a.listing {
		must(marks[i] || len(a.holders(i)) == 0 || a.beyond(mostSettled), "%s is not settled, and has positions", i.Symbol)
	}
}

// mostSettled is the greatest absolute balance that a settlement may produce, in whole USDC.
const mostSettled = 50_000_000_000

// beyond reports whether the absolute values of all balances and all unrealized profits sum to more than most whole
// USDC. Otherwise, no settlement can produce a greater balance.
func (a *Auditor) beyond(most int64) bool {
	total := int64(0)
	add := func(amount int64) { total += max(amount, -amount)/100_000_000 + 1 }
	for _, c := range append(a.everybody[:len(a.everybody):len(a.everybody)], a.fund) {
		add(c.balance)
		for _, h := range c.positions {
			add(h.instrument.worth(h.instrument.mark, h.size) - h.cost)
		}
	}
	return total > most
}

// posted checks and applies the posting of an instant. An account posts its owed instants in order, or only those on one
// instrument if they are too many for one record.
func (a *Auditor) posted(funding bool, e *debtShape) {
	c, i := a.customer(e.CustomerCode), a.instrument(e.Symbol)
	n := slices.IndexFunc(a.instants, func(x *instant) bool {
		_, owes := x.owing[c]
		return owes && (x.instrument == i || !a.tooMany(c))
	})
	must(n >= 0, "%s posts an instant of %s, and owes none", c.code, i.Symbol)
	x, h := a.instants[n], c.on(i)
	must(x.instrument == i && x.funding == funding && x.time == e.Timestamp && i.ticks(e.MarkPrice) == x.mark,
		"%s posts the instant of %d on %s, and owes that of %d on %s first", c.code, e.Timestamp, i.Symbol, x.time, x.instrument.Symbol)
	must(h.size == x.owing[c], "%s held %d on %s, and posts with %d", c.code, x.owing[c], i.Symbol, h.size)
	amount := x.amount(h.size, h.cost)
	delete(x.owing, c)
	a.r.posted[c]++
	a.touch(c)
	kind, venue := "settlement", "clearing"
	if funding {
		kind, venue = "funding", "funding"
		must(i.steps(e.PositionAmount) == h.size && e.FundingRate.v == x.rate, "%s pays funding on %s, at %s", c.code, text(e.PositionAmount.v), text(e.FundingRate.v))
		x.left -= amount
		a.funding -= amount
	}
	want := []movement{{c, "", kind, amount}, {nil, venue, kind, -amount}}
	if funding && len(x.owing) == 0 {
		want = append(want, movement{nil, "funding", kind, -x.left}, movement{nil, "rounding", kind, x.left})
		a.funding -= x.left
	}
	a.post(e.Postings, want)
	if !funding {
		must(len(e.Positions) == 1 && i.steps(e.Positions[0].Amount) == h.size, "the settlement of %s on %s changes its size", c.code, i.Symbol)
		h.cost = i.worth(x.mark, h.size)
		must(e.Positions[0].Cost.v == h.cost, "after settlement %s has cost %s, not %s", c.code, text(h.cost), text(e.Positions[0].Cost.v))
	}
	if len(x.owing) == 0 {
		a.instants = slices.Delete(a.instants, n, n+1)
	}
}
