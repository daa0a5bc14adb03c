package trading

import (
	"cmp"
	"math"
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/margin"
)

// boundKind is what a bound is one of.
type boundKind uint8

const (
	ofMark    boundKind = iota // the instrument's mark
	ofFunding                  // its levy: what a step of a long position has had to pay of funding so far
	boundKinds
)

// boundList is positions on one instrument by the figure beyond which their accounts are to be looked at, as a binary
// heap in which every position knows its place. Every open position of a customer is, for each kind of bound, on one of
// two lists: one has the bounds below the figure, the other those above.
type boundList struct {
	kind  boundKind
	above bool // the least bound comes first, else the greatest
	heap  []*position
}

// bound is where a position stands on such a list.
type bound struct {
	list  *boundList
	place int
	last  int64 // that does not pass it
}

// boundLists are those of an instrument: below and above, for each kind.
type boundLists [boundKinds][2]boundList

func newBoundLists() (l boundLists) {
	for kind := range l {
		for side := range l[kind] {
			l[kind][side].kind, l[kind][side].above = boundKind(kind), side == 1
		}
	}
	return l
}

func (w *boundList) before(a, b *position) bool {
	if w.above {
		return a.bounds[w.kind].last < b.bounds[w.kind].last
	}
	return a.bounds[w.kind].last > b.bounds[w.kind].last
}

// passed returns a position whose bound a figure has passed, or nil.
func (w *boundList) passed(figure int64) *position {
	if len(w.heap) == 0 {
		return nil
	}
	first := w.heap[0]
	if last := first.bounds[w.kind].last; w.above && figure > last || !w.above && figure < last {
		return first
	}
	return nil
}

// put sets a position's bound, on this list.
func (w *boundList) put(h *position, last int64) {
	b := &h.bounds[w.kind]
	if b.list != w {
		h.unbind(w.kind)
		*b = bound{w, len(w.heap), last}
		w.heap = append(w.heap, h)
	}
	b.last = last
	w.settle(b.place)
}

// unbind takes a position off its list of a kind, if it is on one.
func (h *position) unbind(kind boundKind) {
	w, i := h.bounds[kind].list, h.bounds[kind].place
	if w == nil {
		return
	}
	last := len(w.heap) - 1
	moved := w.heap[last]
	w.heap[last] = nil
	w.heap = w.heap[:last]
	h.bounds[kind] = bound{}
	if moved != h {
		w.heap[i] = moved
		moved.bounds[kind].place = i
		w.settle(i)
	}
}

// settle moves the position at a place to where it belongs.
func (w *boundList) settle(i int) {
	for i > 0 && w.before(w.heap[i], w.heap[(i-1)/2]) {
		w.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
	for {
		first := i
		for _, child := range [2]int{2*i + 1, 2*i + 2} {
			if child < len(w.heap) && w.before(w.heap[child], w.heap[first]) {
				first = child
			}
		}
		if first == i {
			return
		}
		w.swap(i, first)
		i = first
	}
}

func (w *boundList) swap(i, j int) {
	w.heap[i], w.heap[j] = w.heap[j], w.heap[i]
	w.heap[i].bounds[w.kind].place, w.heap[j].bounds[w.kind].place = i, j
}

// affect remembers that the record may have changed an account's equity or maintenance margin.
func (f *fold) affect(a *account) {
	if !a.affected && !a.isFund() {
		a.affected = true
		f.affected = append(f.affected, a)
	}
}

// affectHolders is affect for everybody with a position on an instrument.
func (f *fold) affectHolders(i *instrument) {
	for h := i.holders.first; h != nil; h = h.behind {
		f.affect(h.account)
	}
}

// marked affects the accounts for which an instrument's new mark is one to be looked at. All others have slack, or lack
// it, as before: what they can lose or gain on this instrument up to their bound here, with the same on all others, is
// not enough to change that.
func (f *fold) marked(i *instrument) { f.pass(i, ofMark, i.mark) }

// levied does the same for a funding instant that was fixed, by what it adds to the instrument's levy: from here on the
// equity of all holders counts it, though it is posted account by account.
func (f *fold) levied(i *instrument, mark, rate int64) {
	add, countable := fixed.MulInt64(mark, rate)
	levy, fits := fixed.AddInt64(i.levy, add)
	if !countable || !fits { // it begins anew, and so do all bounds
		i.levy = 0
		f.affectHolders(i)
		return
	}
	i.levy = levy
	f.pass(i, ofFunding, levy)
}

func (f *fold) pass(i *instrument, kind boundKind, figure int64) {
	f.unrank()
	for side := range i.bounds[kind] {
		list := &i.bounds[kind][side]
		for h := list.passed(figure); h != nil; h = list.passed(figure) {
			h.unbind(kind) // looking at its account puts it back
			f.affect(h.account)
		}
	}
}

// lookAround looks at every account that the record affected, and puts those with less equity than maintenance margin on
// the due list: by the record that made them due, then by their codes.
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

// look computes an account's slack and shares it out over its positions, as bounds of their instruments' figures. It
// reports whether the account has less equity than maintenance margin.
func (s *State) look(a *account) bool {
	var room [8]fixed.Money
	notionals := room[:0]
	// The sums are counted wide: each instrument's part fits, but not what an account may have on all of them.
	var total fixed.Wide
	surplus := a.balance.Wide()
	for _, h := range a.positions {
		notional := fixed.Money(0)
		if h.size != 0 {
			var unrealised, needed fixed.Money
			notional, unrealised, needed = h.exposure().Health()
			_, funding, settled := h.afterDebts()
			for _, part := range [...]fixed.Money{unrealised, funding, settled, -needed} {
				surplus = surplus.Add(part.Wide())
			}
			total = total.Add(notional.Wide())
		}
		notionals = append(notionals, notional)
	}
	slack, fits := surplus.Money()
	if !fits { // less than there is only brings the bounds nearer
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

// watch sets how far the mark and the levy of the position's instrument may go, on a share of its account's slack.
func (h *position) watch(share fixed.Money, lacking bool) {
	// A sixteenth is for funding, which is some thousandths of the notional at the most: a mark moves by as much in a minute.
	e, funding := h.exposure(), share/16
	for kind := range boundKinds {
		last, above := e.Bound(share-funding, lacking)
		if kind == ofFunding {
			last, above = e.FundingBound(h.instrument.levy, funding, lacking)
		}
		side := 0
		if above {
			side = 1
		}
		h.instrument.bounds[kind][side].put(h, last)
	}
}
