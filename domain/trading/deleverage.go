package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/margin"
)

// deleverage closes the rest of a account's position against the holders of the opposite side, in the order of
// margin.Score: first those with the most profit at the highest leverage. Each takes at most the amount that leaves its
// equity at or above zero. deleverage reports whether something is left that no holder can take. If the record is full
// before that, something is left, but the result is false: the next record continues.
func (d *recordBuilder) deleverage(p *accountView, price int64) (nobody bool) {
	each, full := d.eachAt(price, p.size), false
	d.instrument.ranked(p.size < 0).inOrder(func(next *counterparty) bool {
		steps := margin.Bearable(next.equity, each, min(fixed.Abs(p.size), fixed.Abs(next.position.size)))
		if steps == 0 {
			return true
		}
		if full = d.crowded(len(next.position.reduceOnly), next.position.account, d.limit); !full {
			d.handOver(p, d.viewOf(next.position.account), price, steps, AutoDeleveraging)
		}
		return !full && p.size != 0
	})
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

// ranking is a binary heap of the holders of one side of an instrument, without the insurance fund. It is a heap because a
// deleveraging needs only the first few. A wave of liquidations needs the same ranking again and again, so it is cached
// from its first use until a price or a charge changes the rank of every holder. In between, the accounts that a record
// affects are ranked again. The cache is not part of the state: it always follows from the state.
type ranking struct{ heap []counterparty }

// rank is the location of a position in a ranking, which may no longer be cached.
type rank struct {
	in    *ranking
	place int
}

// ranked returns the ranking of the long or the short holders. It makes it if it is not cached.
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

// before reports whether a counterparty ranks before another: by higher score, then by code.
func (c *counterparty) before(o *counterparty) bool {
	if order := c.score.Cmp(o.score); order != 0 {
		return order > 0
	}
	return c.position.account.code < o.position.account.code
}

// inOrder calls yield with the counterparties in the order of the ranking, until yield returns false.
func (r *ranking) inOrder(yield func(*counterparty) bool) {
	var next []int // indexes in the heap; the next counterparty of the ranking is among them
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

// settle restores the heap order for the counterparty at index n.
func (r *ranking) settle(n int) {
	for n > 0 && r.heap[n].before(&r.heap[(n-1)/2]) {
		r.swap(n, (n-1)/2)
		n = (n - 1) / 2
	}
	r.down(n)
}

// down moves the counterparty at index n down to its place in the heap.
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

// rerank updates the ranks of an account's positions in the cached rankings.
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

// unrank drops all cached rankings: a change of a price or a charge may have changed every rank.
func (f *fold) unrank() {
	for _, i := range f.listing {
		i.rankings = [2]*ranking{}
	}
}
