package trading

import (
	"cmp"
	"math"
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/heap"
	"github.com/perpetua-exchange/perpetua/domain/margin"
)

// thresholdKind is the figure of an instrument that a bound limits.
type thresholdKind uint8

const (
	ofMark    thresholdKind = iota // the mark price
	ofFunding                      // the cumulative funding: the funding that a step of a long position has paid so far
	thresholdKinds
)

// thresholdHeap holds the positions on one instrument by their bounds. When the instrument's figure passes the bound of a
// position, the position's account must be looked at. For each kind, every open position of a customer is on one of two
// lists: the bounds below the figure, or those above it.
type thresholdHeap = heap.Heap[*position, nextThreshold]

// nextThreshold is the order of a thresholdHeap.
type nextThreshold struct {
	kind  thresholdKind
	above bool // the least bound comes first; otherwise the greatest
}

// Before implements heap.Order.
func (n nextThreshold) Before(a, b *position) bool {
	if n.above {
		return a.thresholds[n.kind].last < b.thresholds[n.kind].last
	}
	return a.thresholds[n.kind].last > b.thresholds[n.kind].last
}

// Moved implements heap.Order.
func (n nextThreshold) Moved(h *position, index int) { h.thresholds[n.kind].index = index }

// threshold is the bound of a position, and its location in a list.
type threshold struct {
	list  *thresholdHeap
	index int   // index in the heap
	last  int64 // the last figure that does not pass the bound
}

// thresholdHeaps are the lists of an instrument for each kind: the bounds below and the bounds above.
type thresholdHeaps [thresholdKinds][2]thresholdHeap

func newThresholdHeaps() (l thresholdHeaps) {
	for kind := range l {
		for side := range l[kind] {
			l[kind][side].Order = nextThreshold{thresholdKind(kind), side == 1}
		}
	}
	return l
}

// passed returns a position with a bound that the figure has passed, or nil.
func passed(w *thresholdHeap, figure int64) *position {
	first, ok := w.First()
	if !ok {
		return nil
	}
	if last := first.thresholds[w.Order.kind].last; w.Order.above && figure > last || !w.Order.above && figure < last {
		return first
	}
	return nil
}

// bind sets the bound of a position and moves it to a list.
func (h *position) bind(w *thresholdHeap, last int64) {
	b := &h.thresholds[w.Order.kind]
	if b.list == w {
		b.last = last
		w.Fix(b.index)
		return
	}
	h.unbind(w.Order.kind)
	b.list, b.last = w, last
	w.Push(h)
}

// unbind removes a position from its list of a kind, if it is on one.
func (h *position) unbind(kind thresholdKind) {
	if b := &h.thresholds[kind]; b.list != nil {
		b.list.Remove(b.index)
		*b = threshold{}
	}
}

// affect notes that the record may have changed an account's equity or maintenance margin.
func (f *fold) affect(a *account) {
	if !a.affected && !a.isFund() {
		a.affected = true
		f.affected = append(f.affected, a)
	}
}

// affectHolders affects all accounts that hold a position on an instrument.
func (f *fold) affectHolders(i *instrument) {
	for h := i.holders.first; h != nil; h = h.inHolders.after {
		f.affect(h.account)
	}
}

// marked affects the accounts with a bound that the new mark has passed. No other account can have gained or lost all
// its slack: not even the largest changes within its bounds, on this and all other instruments together, suffice for
// that.
func (f *fold) marked(i *instrument) { f.pass(i, ofMark, i.mark) }

// advanceFunding does the same for a funding charge that was fixed, with the instrument's cumulative funding as the
// figure. The equity of all holders counts the funding from now on, although it is posted account by account.
func (f *fold) advanceFunding(i *instrument, mark, rate int64) {
	add, countable := fixed.MulInt64(mark, rate)
	levy, fits := fixed.AddInt64(i.cumulativeFunding, add)
	if !countable || !fits { // the cumulative funding restarts at 0, and all bounds with it
		i.cumulativeFunding = 0
		f.affectHolders(i)
		return
	}
	i.cumulativeFunding = levy
	f.pass(i, ofFunding, levy)
}

func (f *fold) pass(i *instrument, kind thresholdKind, figure int64) {
	f.unrank()
	for side := range i.bounds[kind] {
		list := &i.bounds[kind][side]
		for h := passed(list, figure); h != nil; h = passed(list, figure) {
			h.unbind(kind) // lookAround adds it again
			f.affect(h.account)
		}
	}
}

// lookAround computes the margin of every account that the record affected, and puts those with less equity than
// maintenance margin on the due list: by the record that made them due, then by code.
func (f *fold) lookAround() {
	var begun []*account
	for _, a := range f.affected {
		a.affected = false
		a.rerank()
		f.looks++
		switch lacking := f.look(a); {
		case lacking && a.failing == nil:
			begun = append(begun, a)
		case lacking:
			f.schedule(a)
		case a.failing != nil:
			f.recover(a)
		}
	}
	slices.SortFunc(begun, func(a, b *account) int { return cmp.Compare(a.code, b.code) })
	for _, a := range begun {
		f.fail(a)
	}
}

// look computes an account's slack and distributes it over its positions, as bounds of their instruments' figures. It
// reports whether the account has less equity than maintenance margin.
func (s *State) look(a *account) bool {
	var room [8]fixed.Money
	notionals := room[:0]
	// Each instrument's part fits Money, but the sum over all instruments may not.
	var total fixed.Wide
	surplus := a.balance.Wide()
	for _, h := range a.positions {
		notional := fixed.Money(0)
		if h.size != 0 {
			var unrealized, needed fixed.Money
			notional, unrealized, needed = h.exposure().Health()
			_, funding, settled := h.afterCharges()
			for _, part := range [...]fixed.Money{unrealized, funding, settled, -needed} {
				surplus = surplus.Add(part.Wide())
			}
			total = total.Add(notional.Wide())
		}
		notionals = append(notionals, notional)
	}
	slack, fits := surplus.Money()
	if !fits { // a smaller slack only makes the bounds tighter
		slack = math.MaxInt64 * fixed.Money(surplus.Sign())
	}
	for n, h := range a.positions {
		if h.size == 0 {
			h.unbind(ofMark)
			h.unbind(ofFunding)
			continue
		}
		h.watch(margin.Share(slack, notionals[n], total), slack < 0)
	}
	return slack < 0
}

// watch sets how far the mark and the cumulative funding of the position's instrument may move, given a share of the
// account's slack.
func (h *position) watch(share fixed.Money, lacking bool) {
	// A sixteenth is for funding, which is a few thousandths of the notional at most; the mark moves that far in a
	// minute.
	e, funding := h.exposure(), share/16
	for kind := range thresholdKinds {
		last, above := e.Bound(share-funding, lacking)
		if kind == ofFunding {
			last, above = e.FundingBound(h.instrument.cumulativeFunding, funding, lacking)
		}
		side := 0
		if above {
			side = 1
		}
		h.bind(&h.instrument.bounds[kind][side], last)
	}
}
