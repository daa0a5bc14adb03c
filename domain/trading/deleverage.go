package trading

import (
	"container/heap"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/margin"
)

// deleverage closes the rest of a party's position against those who hold the other side: who has gained most with the
// highest leverage first. Each takes at most what leaves its equity at or above zero. It reports whether something is
// left that none of them can take; if the record was full before that, something is left too, and the next goes on.
func (d *draft) deleverage(p *party, price int64, limit bounds) (nobody bool) {
	ranked := d.rank(p)
	each := d.eachAt(price, p.size)
	for p.size != 0 {
		if len(ranked) == 0 {
			return true
		}
		next := ranked[0]
		steps := margin.Bearable(next.equity, each, min(fixed.Abs(p.size), fixed.Abs(next.position.size)))
		if steps > 0 {
			if d.crowded(len(next.position.reduceOnly), next.position.account, limit) {
				return false
			}
			d.handOver(p, d.party(next.position.account), price, steps, AutoDeleveraging)
		}
		heap.Pop(&ranked)
	}
	return false
}

// eachAt is what a step changes the equity of whoever takes it at a price, from a position of a size: how much better than
// mark the price is. Where mark lies between ticks it is rounded down.
func (d *draft) eachAt(price, size int64) fixed.Money {
	c, i := d.instrument.contract, d.instrument
	paid := c.MustNotional(price, 1)
	if size > 0 { // it is bought
		worth, _ := c.Value(1, i.mark).Div(c.MarkDen, fixed.Floor).Money()
		return worth.Sub(paid)
	}
	worth, _ := c.Value(1, i.mark).Div(c.MarkDen, fixed.Ceiling).Money()
	return paid.Sub(worth)
}

// counterparty is one who holds the other side, as it was before the record.
type counterparty struct {
	position *position
	equity   fixed.Money
	score    fixed.Wide
}

// ranking is a heap of those who hold the other side, the first in the ranking on top: of a whole ranking only the
// first few are needed as a rule.
type ranking []counterparty

// rank returns those who hold the other side of the party's position. The insurance fund is not among them.
func (d *draft) rank(p *party) ranking {
	var out ranking
	for _, list := range d.instrument.bounds[ofMark] {
		for _, h := range list.heap {
			if (h.size > 0) == (p.size > 0) {
				continue
			}
			e, equity := h.exposure(), h.account.equity()
			notional, unrealised, _ := e.Health()
			out = append(out, counterparty{h, equity, margin.Score(unrealised, e.Cost, notional, equity)})
		}
	}
	heap.Init(&out)
	return out
}

// Len implements heap.Interface.
func (c *ranking) Len() int { return len(*c) }

// Less implements heap.Interface: the higher score first, of one score the first customer code.
func (c *ranking) Less(i, j int) bool {
	a, b := &(*c)[i], &(*c)[j]
	if order := a.score.Cmp(b.score); order != 0 {
		return order > 0
	}
	return a.position.account.code < b.position.account.code
}

// Swap implements heap.Interface.
func (c *ranking) Swap(i, j int) { (*c)[i], (*c)[j] = (*c)[j], (*c)[i] }

// Push implements heap.Interface. Nothing is ever pushed: a ranking is made at once.
func (c *ranking) Push(x any) { *c = append(*c, x.(counterparty)) }

// Pop implements heap.Interface.
func (c *ranking) Pop() any {
	last := len(*c) - 1
	x := (*c)[last]
	*c = (*c)[:last]
	return x
}
