package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/heap"
	"github.com/perpetua-exchange/perpetua/domain/margin"
)

// deleverage closes the rest of a account's position against the holders of the opposite side, in the order of
// margin.Score: first those with the most profit at the highest leverage. Each takes at most the amount that leaves its
// equity at or above zero. deleverage reports whether something is left that no holder can take. If the record is full
// before that, something is left, but the result is false: the next record continues.
func (d *recordBuilder) deleverage(p *accountView, price int64) (nobody bool) {
	each, full, rank := d.eachAt(price, p.size), false, 0
	for next := range d.instrument.ranked(p.size < 0).InOrder() {
		rank++
		steps := margin.Bearable(next.equity, each, min(fixed.Abs(p.size), fixed.Abs(next.position.size)))
		if steps == 0 {
			continue
		}
		if full = d.crowded(len(next.position.reduceOnly), next.position.account, d.limit); full {
			break
		}
		d.explainCounterparty(next, rank, each)
		if d.handOver(p, d.viewOf(next.position.account), price, steps, AutoDeleveraging); p.size == 0 {
			break
		}
	}
	return p.size != 0 && !full
}

// eachAt returns how much the equity of an account changes if it takes one step of a position of that size at a price: the
// advantage of the price over the mark. It is rounded down if the mark is between ticks.
func (d *recordBuilder) eachAt(price, size int64) fixed.Money {
	c, i := d.instrument.contract, d.instrument
	paid := c.MustNotional(price, 1)
	if size > 0 { // the account buys
		worth, _ := c.Value(1, i.mark).Div(c.MarkDen, fixed.Floor).Money()
		return worth.Sub(paid)
	}
	worth, _ := c.Value(1, i.mark).Div(c.MarkDen, fixed.Ceiling).Money()
	return paid.Sub(worth)
}

// counterparty is a holder of the opposite side, with the figures that decide its rank.
type counterparty struct {
	position *position
	equity   fixed.Money
	score    fixed.Wide
}

// ranking is a heap of the holders of one side of an instrument, without the insurance fund. It is a heap because a
// deleveraging needs only the first few. A wave of liquidations needs the same ranking again and again, so it is cached
// from its first use until a price or a charge changes the rank of every holder. In between, the accounts that a record
// affects are ranked again. The cache is not part of the state: it always follows from the state.
type ranking = heap.Heap[*counterparty, rankOrder]

// rankOrder is the order of a ranking: by higher score, then by code.
type rankOrder struct{}

// Before implements heap.Order.
func (rankOrder) Before(a, b *counterparty) bool {
	if order := a.score.Cmp(b.score); order != 0 {
		return order > 0
	}
	return a.position.account.code < b.position.account.code
}

// Moved implements heap.Order.
func (rankOrder) Moved(c *counterparty, index int) { c.position.rank.index = index }

// rank is the location of a position in a ranking, which may no longer be cached.
type rank struct {
	in    *ranking
	index int
}

// ranked returns the ranking of the long or the short holders. It makes it if it is not cached.
func (i *instrument) ranked(long bool) *ranking {
	cached := &i.rankings[sideOfSize(long)]
	if *cached != nil {
		return *cached
	}
	r := &ranking{}
	for _, list := range i.bounds[ofMark] {
		for _, h := range list.Entries() {
			if (h.size > 0) == long {
				h.rank.in = r
				r.Append(h.asCounterparty())
			}
		}
	}
	r.Restore()
	*cached = r
	return r
}

func sideOfSize(long bool) int {
	if long {
		return 0
	}
	return 1
}

func (h *position) asCounterparty() *counterparty {
	e, equity := h.exposure(), h.account.equity().Capped()
	notional, unrealized := e.Worth()
	return &counterparty{h, equity, margin.Score(unrealized, e.Cost, notional, equity)}
}

// rerank updates the ranks of an account's positions in the cached rankings.
func (a *account) rerank() {
	for _, h := range a.positions {
		cached := &h.instrument.rankings
		if r := h.rank.in; r != nil && (r == cached[0] || r == cached[1]) {
			r.Remove(h.rank.index)
			h.rank = rank{}
		}
		if r := cached[sideOfSize(h.size > 0)]; r != nil && h.size != 0 {
			h.rank.in = r
			r.Push(h.asCounterparty())
		}
	}
}

// unrank drops all cached rankings: a change of a price or a charge may have changed every rank.
func (f *fold) unrank() {
	for _, i := range f.listing {
		i.rankings = [2]*ranking{}
	}
}
