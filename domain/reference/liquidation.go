package reference

import (
	"cmp"
	"math/big"
	"slices"
)

// heir is an account that must receive a part of a position which the book did not take.
type heir struct {
	kind  string
	to    *account
	steps int64
}

// heaviest returns the position to liquidate next: the one with the largest maintenance margin among those with an open
// instrument, and the first symbol among equals. A position in deleveraging comes first.
func (a *Auditor) heaviest(c *account) (heaviest *position) {
	if h := c.deleveraging; h != nil && h.instrument.open() {
		return h
	}
	most := int64(-1)
	for _, h := range c.positions {
		i := h.instrument
		if h.size == 0 || !i.open() {
			continue
		}
		m := i.margin(abs(i.worth(i.mark, h.size)), false, c.maintenance)
		if m > most || m == most && i.Symbol < heaviest.instrument.Symbol {
			heaviest, most = h, m
		}
	}
	return heaviest
}

// bankruptcy returns p = m − E × (Mᵢ ÷ M) ÷ (s × c) in ticks, rounded up for a long position and down for a short one.
func (a *Auditor) bankruptcy(h *position) int64 {
	i := h.instrument
	equity, total := a.health(h.account)
	needed := i.margin(abs(i.worth(i.mark, h.size)), false, h.account.maintenance)
	away := new(big.Rat).Quo(times(rat(equity, 1), rat(needed, total)), rat(product(h.size, i.unit), 1))
	p := minus(rat(i.mark, 1), away)
	price := up(p)
	if h.size < 0 {
		price = down(p)
	}
	highest := (10_000_000_000*one - 1) / i.PriceTick.v
	return max(1, min(price, highest))
}

// liquidates checks the event of an order in a liquidation step. The engine first cancels the account's open orders.
// Then it offers a part of the heaviest position at the bankruptcy price.
func (a *Auditor) liquidates(v *orderView, o *order) {
	c := a.customer(v.CustomerCode)
	due := a.firstFailing()
	if o != nil {
		if a.r.closing == "" && a.r.handed == 0 { // otherwise the step met the order in the book, or reduced it
			a.r.about = c
			must(c == due && (v.Status == "canceled" && v.Reason == "liquidation" || v.Status == "expired"), "the order %s of %s is %s: %s", v.Code, c.code, v.Status, v.Reason)
		}
		return
	}
	must(due == c, "%s is liquidated, and not %s", c.code, nameOf(due))
	must(a.r.closing == "" && len(c.orders) == 0, "%s is liquidated, and has %d orders", c.code, len(c.orders))
	h := a.heaviest(c)
	must(h != nil && h.instrument.Symbol == v.Symbol && c.deleveraging == nil, "%s is liquidated on %s", c.code, v.Symbol)
	i := h.instrument
	a.settled(c, i)
	price := a.bankruptcy(h)
	must(i.ticks(v.LimitPrice) == price, "%s is liquidated at %d ticks, not %s", c.code, price, text(v.LimitPrice.v))
	size := max(h.began, abs(h.size))
	step := min(max((size+4)/5, i.steps(i.MinAmount)), abs(h.size))
	must(i.steps(v.Amount) == step && (v.Action == "sell") == (h.size > 0), "%s sells %s of %d: a step is %d", c.code, text(v.Amount.v), h.size, step)
	must(v.Type == "limit" && v.TimeInForce == "IOC" && v.ReduceOnly && !v.PostOnly, "%s is liquidated by a %s order", c.code, v.Type)
	must(v.Status == "filled" || v.Status == "canceled" && v.Reason == "liquidation", "the order %s is %s: %s", v.Code, v.Status, v.Reason)
	a.r.about, a.r.price, a.r.closing = c, price, v.Code
	a.Seen.Liquidations++
}

func nameOf(c *account) string {
	if c == nil {
		return "anybody"
	}
	return c.code
}

// passes checks a trade without orders, which hands a position over. inherit determines the receivers, and
// finishLiquidation checks that each received its part.
func (a *Auditor) passes(e *tradeShape, i *instrument, from, to *account, price, steps int64) {
	must(a.r.work == "liquidation", "a trade without orders in a step of %s", a.r.work)
	h := from.on(i)
	must((e.Action == "sell") == (h.size > 0) && steps <= abs(h.size), "%s hands over %d of %d", from.code, steps, h.size)
	if a.r.handed == 0 {
		must(from == a.firstFailing() && h == a.heaviest(from) && len(from.orders) == 0, "%s hands over its position on %s", from.code, i.Symbol)
		found := a.r.fills[a.r.closing] != nil
		must(a.r.closing != "" && !found || a.r.closing == "" && from.deleveraging == h, "%s hands over what somebody in the book would take", from.code)
		a.r.about, a.r.on, a.r.price = from, h, a.bankruptcy(h)
		a.inherit(h)
	}
	must(price == a.r.price, "%s hands over at %d ticks, not %d", from.code, price, a.r.price)
	must(a.r.handed < len(a.r.heirs), "%s hands over to %s, and nobody is left to", from.code, to.code)
	next := a.r.heirs[a.r.handed]
	must(next == heir{e.Type, to, steps}, "%s hands %d to %s (%s): next is %s, with %d (%s)", from.code, steps, to.code, e.Type, next.to.code, next.steps, next.kind)
	a.r.handed++
	if e.Type == "liquidation" {
		must(to.isFund, "%s takes a position over", to.code)
		a.Seen.Takeovers++
	} else {
		a.Seen.Deleveraged++
	}
}

// inherit lists the accounts that must receive a position. If the fund can afford it, the fund takes everything.
// Otherwise it goes to the accounts on the other side by rank, to each at most the part that leaves its equity at or
// above zero; the fund takes the rest.
func (a *Auditor) inherit(h *position) {
	r, rest := a.r, abs(h.size)
	if a.affords(h, r.price) {
		r.heirs = []heir{{"liquidation", a.fund, rest}}
		return
	}
	i := h.instrument
	each := product(r.price-i.mark, i.unit) // the gain of a long position for each step sold
	if h.size > 0 {
		each = -each
	}
	for _, c := range a.ranked(i, h.size < 0) {
		if rest == 0 {
			return
		}
		equity, _ := a.health(c.account)
		steps := min(rest, abs(c.size))
		if equity+product(each, steps) < 0 {
			if each >= 0 || equity < 0 {
				continue
			}
			steps = equity / -each
		}
		if steps > 0 {
			r.heirs = append(r.heirs, heir{"auto_deleveraging", c.account, steps})
			rest -= steps
		}
	}
	if rest > 0 {
		r.heirs = append(r.heirs, heir{"liquidation", a.fund, rest})
	}
}

// affords reports whether the fund, after taking over a position, covers the first tier's initial margin of all its
// positions.
func (a *Auditor) affords(h *position, price int64) bool {
	i := h.instrument
	size, cost, realized := a.fund.on(i).after(price, h.size)
	equity, needed := a.fund.balance+realized, int64(0)
	for _, f := range a.fund.positions {
		at, size, cost := f.instrument, size, cost
		if at != i {
			var owed int64
			size = f.size
			cost, owed = a.owes(f)
			equity += owed
		}
		worth := at.worth(at.mark, size)
		equity += worth - cost
		needed += up(times(rat(abs(worth), 1), at.tiers[0].initial.rat()))
	}
	return equity >= needed
}

// ranked returns the long or the short positions in deleveraging order. The score is (U ÷ |cost|) × lev if U > 0 and (U
// ÷ |cost|) ÷ lev otherwise, with lev = notional ÷ max(E, 1), truncated to 8 decimals. Equal scores are ordered by
// customer code. The fund is not ranked.
func (a *Auditor) ranked(i *instrument, long bool) (out []*position) {
	scores := make(map[*position]*big.Int)
	for _, h := range a.holders(i) {
		if h.size > 0 != long || h.account.isFund {
			continue
		}
		out = append(out, h)
		worth := i.worth(i.mark, h.size)
		cost, _ := a.owes(h)
		score := new(big.Rat)
		if cost != 0 {
			equity, _ := a.health(h.account)
			score = rat(worth-cost, abs(cost))
			leverage := rat(abs(worth), max(equity, one))
			if worth > cost {
				score.Mul(score, leverage)
			} else {
				score.Quo(score, leverage)
			}
		}
		score = scaled(score)
		scores[h] = new(big.Int).Quo(score.Num(), score.Denom()) // toward zero
	}
	slices.SortFunc(out, func(x, y *position) int {
		return cmp.Or(scores[y].Cmp(scores[x]), cmp.Compare(x.account.code, y.account.code))
	})
	return out
}

// finishLiquidation checks a liquidation step as a whole.
func (a *Auditor) finishLiquidation() {
	r := a.r
	if r.work != "liquidation" {
		return
	}
	c := r.about
	must(c != nil, "a step of a liquidation of nobody")
	// The rest of a position may wait for the next record only if this record is full.
	full := a.full()
	must(r.handed == len(r.heirs) || full, "%s hands over to %d of %d, and the record was not full", c.code, r.handed, len(r.heirs))
	if r.handed < len(r.heirs) && r.on.size != 0 {
		c.deleveraging = r.on
	}
	must(r.closing == "" || r.handed > 0 || r.fills[r.closing] != nil || full, "%s found nobody in the book, and nobody got the rest", c.code)
}

// full reports whether the record may have had no room for more fills, other orders or bytes. The engine estimates bytes
// on the high side.
func (a *Auditor) full() bool {
	return len(a.r.fills) >= 100 || a.r.handed >= 100 || a.r.others >= 40 || a.r.bytes >= 100<<10 || a.Single
}

// madeUp checks a payment by the fund to an account with a negative balance and without positions.
func (a *Auditor) madeUp(e *accountShape) {
	c := a.customer(e.CustomerCode)
	must(a.r.work == "liquidation" && c == a.firstFailing(), "the fund pays %s, and not %s", c.code, nameOf(a.firstFailing()))
	a.settled(a.fund, nil)
	for _, h := range c.positions {
		must(h.size == 0, "the fund pays %s, who holds %d on %s", c.code, h.size, h.instrument.Symbol)
	}
	amount := min(-c.balance, a.fund.balance)
	must(len(c.orders) == 0 && amount > 0 && e.Amount.v == amount, "the fund pays %s %s, and has %s", c.code, text(e.Amount.v), text(a.fund.balance))
	a.post(e.Postings, []movement{{c, "", "insurance", amount}, {a.fund, "", "insurance", -amount}})
	a.r.about = c
	a.Seen.MadeUp++
}
