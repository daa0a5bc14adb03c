package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/margin"
)

// deleverage closes the rest of a party's position against those who hold the other side: who has gained most with the
// highest leverage first. Each takes at most what leaves its equity at or above zero. It reports whether something is
// left that none of them can take; if the record was full before that, something is left too, and the next goes on.
func (d *draft) deleverage(p *party, price int64) (nobody bool) {
	each, full := d.eachAt(price, p.size), false
	d.instrument.ranked(p.size < 0).inOrder(func(next *counterparty) bool {
		steps := margin.Bearable(next.equity, each, min(fixed.Abs(p.size), fixed.Abs(next.position.size)))
		if steps == 0 {
			return true
		}
		if full = d.crowded(len(next.position.reduceOnly), next.position.account, d.limit); !full {
			d.handOver(p, d.party(next.position.account), price, steps, AutoDeleveraging)
		}
		return !full && p.size != 0
	})
	return p.size != 0 && !full
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

// counterparty is one who holds the other side, with what its place in the ranking follows from.
type counterparty struct {
	position *position
	equity   fixed.Money
	score    fixed.Wide
}

// ranking is those who hold one side of an instrument, the insurance fund apart, as a binary heap: of a whole ranking only
// the first few are needed. A wave of liquidations asks for the same ranking again and again, so it is kept from the first
// time that it is asked for until a price or an instant changes everybody's place; in between the accounts that a record
// affects are ranked anew. It is no part of the state: whoever has none makes the same.
type ranking struct{ heap []counterparty }

// rank is where a position stands in a ranking, which may be one that is no longer kept.
type rank struct {
	in    *ranking
	place int
}

// ranked returns the ranking of those who are long, or short.
func (i *instrument) ranked(long bool) *ranking {
	kept := &i.rankings[sideOfSize(long)]
	if *kept != nil {
		return *kept
	}
	r := &ranking{}
	for _, list := range i.bounds[ofMark] {
		for _, h := range list.heap {
			if (h.size > 0) == long {
				h.rank = rank{r, len(r.heap)}
				r.heap = append(r.heap, h.asCounterparty())
			}
		}
	}
	for n := len(r.heap)/2 - 1; n >= 0; n-- {
		r.down(n)
	}
	*kept = r
	return r
}

func sideOfSize(long bool) int {
	if long {
		return 0
	}
	return 1
}

func (h *position) asCounterparty() counterparty {
	e, equity := h.exposure(), h.account.equity().Capped()
	notional, unrealised := e.Worth()
	return counterparty{h, equity, margin.Score(unrealised, e.Cost, notional, equity)}
}

// before reports whether a counterparty comes before another: the higher score first, of one score the first code.
func (c *counterparty) before(o *counterparty) bool {
	if order := c.score.Cmp(o.score); order != 0 {
		return order > 0
	}
	return c.position.account.code < o.position.account.code
}

// inOrder passes the counterparties in the order of the ranking, until it is told that this is enough.
func (r *ranking) inOrder(yield func(*counterparty) bool) {
	var next []int // places in the heap, the next one of the ranking among them
	if len(r.heap) > 0 {
		next = append(next, 0)
	}
	for len(next) > 0 {
		first := 0
		for n := range next {
			if r.heap[next[n]].before(&r.heap[next[first]]) {
				first = n
			}
		}
		at := next[first]
		next[first] = next[len(next)-1]
		next = next[:len(next)-1]
		if !yield(&r.heap[at]) {
			return
		}
		for _, child := range [2]int{2*at + 1, 2*at + 2} {
			if child < len(r.heap) {
				next = append(next, child)
			}
		}
	}
}

// settle moves the counterparty at a place to where it belongs.
func (r *ranking) settle(n int) {
	for n > 0 && r.heap[n].before(&r.heap[(n-1)/2]) {
		r.swap(n, (n-1)/2)
		n = (n - 1) / 2
	}
	r.down(n)
}

// down moves it away from the top.
func (r *ranking) down(n int) {
	for {
		first := n
		for _, child := range [2]int{2*n + 1, 2*n + 2} {
			if child < len(r.heap) && r.heap[child].before(&r.heap[first]) {
				first = child
			}
		}
		if first == n {
			return
		}
		r.swap(n, first)
		n = first
	}
}

func (r *ranking) swap(i, j int) {
	r.heap[i], r.heap[j] = r.heap[j], r.heap[i]
	r.heap[i].position.rank.place, r.heap[j].position.rank.place = i, j
}

// rerank puts the positions of an account at their new places in the rankings that are kept.
func (a *account) rerank() {
	for _, h := range a.positions {
		kept := &h.instrument.rankings
		if r := h.rank.in; r != nil && (r == kept[0] || r == kept[1]) {
			r.remove(h)
		}
		if r := kept[sideOfSize(h.size > 0)]; r != nil && h.size != 0 {
			h.rank = rank{r, len(r.heap)}
			r.heap = append(r.heap, h.asCounterparty())
			r.settle(h.rank.place)
		}
	}
}

func (r *ranking) remove(h *position) {
	n, last := h.rank.place, len(r.heap)-1
	r.swap(n, last)
	r.heap[last] = counterparty{}
	r.heap = r.heap[:last]
	h.rank = rank{}
	if n < last {
		r.settle(n)
	}
}

// unrank forgets all rankings: what moved has moved everybody.
func (f *fold) unrank() {
	for _, i := range f.listing {
		i.rankings = [2]*ranking{}
	}
}
