package trading

import (
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/book"
	"github.com/perpetua-exchange/perpetua/domain/pack"
	"github.com/perpetua-exchange/perpetua/domain/schedule"
)

// Digest returns a SHA-256 of everything that decisions depend on, in a fixed order, to compare the results of two
// replays of the same records. Unlike the saved form, it has what follows from other parts.
func (s *State) Digest() [32]byte {
	h := sha256.New()
	s.dump(h)
	return [32]byte(h.Sum(nil))
}

// dump writes the state as text.
func (s *State) dump(w io.Writer) {
	fmt.Fprintf(w, "rules %d time %s keys %d due %d fixed %d outstanding %d\n", s.core.ActiveRules(), s.time, s.core.Len(), s.due.arrived, s.fixed, s.outstanding)
	fmt.Fprintf(w, "statements %+v\n", s.statements)
	for _, i := range s.listing {
		fmt.Fprintf(w, "instrument %+v mark %d index %d %s last %d open %d %t clearing %d\n", i.contract.Instrument,
			i.mark, i.indexPrice, i.indexTime, i.last, i.openInterest, i.open, i.clearing)
		i.dumpStops(w)
		i.dump(w)
		for _, side := range [2]book.Side{book.Bid, book.Ask} {
			for l := i.book.Best(side); l != nil; l = l.Worse() {
				fmt.Fprintf(w, "level %d %d %d %d:", side, l.Price, l.Amount, l.Orders)
				for o := l.Front(); o != nil; o = o.Next() {
					fmt.Fprintf(w, " %s", o.Code)
				}
				fmt.Fprintln(w)
			}
		}
	}
	for _, a := range s.holders() {
		a.dump(w)
	}
	fmt.Fprintf(w, "solvent %t\n", s.solvent)
	for _, account := range slices.Sorted(maps.Keys(s.venue)) {
		fmt.Fprintf(w, "venue %s %d\n", account, s.venue[account])
	}
	for _, code := range slices.SortedFunc(maps.Keys(s.withdrawals), compareIDs) {
		fmt.Fprintf(w, "withdrawal %+v\n", s.withdrawals[code].transaction)
	}
	for _, e := range slices.SortedFunc(slices.Values(s.due.all()), schedule.Compare) {
		fmt.Fprintf(w, "due %s %s %d\n", e.name(), e.Time, e.arrival)
	}
	for _, e := range s.aside {
		fmt.Fprintf(w, "aside %s %s %d %q\n", e.name(), e.Time, e.arrival, e.cause)
	}
	if r := s.running; r != nil {
		c := r.command
		fmt.Fprintf(w, "running %s %s %s %+v %q %s %s %s %s %s %d %d %t\n", r.kind, c.ID, c.Type, c.Actor, c.Metadata.Key, c.Metadata.Fingerprint, r.started, r.customer(), r.onSymbol(), r.reason, r.canceled, r.bound, r.protected)
	}
	for _, id := range slices.SortedFunc(maps.Keys(s.sessions), compareIDs) {
		c := s.sessions[id]
		fmt.Fprintf(w, "session %s of %s %s ended %t orders %s\n", id, c.username, c.broker, c.gateway == nil, s.live(c))
	}
	for _, g := range s.gateways {
		fmt.Fprintf(w, "gateway %s of %d\n", g.id, len(g.sessions))
	}
	fmt.Fprintf(w, "recent %d", s.recent.next)
	for _, o := range s.recent.ring {
		fmt.Fprintf(w, " %s of %s", o.code, o.owner.code)
	}
	fmt.Fprintln(w)
}

// dump writes the inputs of the instrument's mark price, its charges that some position has not posted, and its
// holders.
func (i *instrument) dump(w io.Writer) {
	fmt.Fprintf(w, "prices %x stale %t premiums %s of %d minute %d rate %d\n", pack.Append(nil, i.window.Visit), i.stale, i.premiums.Sum.Big(), i.premiums.Count, i.minute, i.rate)
	for _, x := range i.charges {
		fmt.Fprintf(w, "instant %d %s %s mark %d rate %d owing %d left %d\n", x.number, x.kind, x.time, x.mark, x.rate, x.owing, x.left)
	}
	for h := i.holders.first; h != nil; h = h.inHolders.after {
		fmt.Fprintf(w, "holder %s posted %d\n", h.account.code, h.posted)
	}
}

func (a *account) dump(w io.Writer) {
	fmt.Fprintf(w, "account %s %s %q %s %s balance %d pending %d margins %d %v %v dead man %d\n", a.code, a.broker, a.name,
		a.created, a.updated, a.balance, a.pending, a.leverage, a.initial, a.maintenance, a.cancelAllAfterSeconds)
	if e := a.failing; e != nil {
		fmt.Fprintf(w, "to be liquidated since %s %d waits %t\n", e.Time, e.arrival, a.waits)
	}
	for _, h := range a.positions {
		maker, taker := h.fees()
		fmt.Fprintf(w, "position %s %d %d %d %d leverage %d fees %t %d %d %s began %d %t reduce-only", h.instrument.contract.Symbol, h.size, h.cost,
			h.bids, h.asks, h.leverage, h.ownFees, maker, taker, h.updated, h.began, h == a.deleveraging)
		for _, o := range h.reduceOnly {
			fmt.Fprintf(w, " %s", o.Code)
		}
		fmt.Fprintln(w)
	}
	for o := range a.orders(nil) {
		fmt.Fprintf(w, "order %+v resting %t untriggered %t waiting %t\n", orderView(o), o.Resting(), o.Value.untriggered(), o.Value.stop.waiting())
	}
	for _, name := range slices.Sorted(maps.Keys(a.references.names)) {
		r := a.references.names[name]
		fmt.Fprintf(w, "reference %s %s %d %s %s %t\n", name, r.fingerprint, r.sequence, r.time, r.order, r.final)
	}
	for r := a.references.finals.first; r != nil; r = r.inFinals.after {
		fmt.Fprintf(w, "remembered %s\n", r.name)
	}
	for _, name := range slices.Sorted(maps.Keys(a.transfers)) {
		fmt.Fprintf(w, "transfer %s %+v\n", name, a.transfers[name])
	}
}

// dumpStops writes the stops of the instrument and the bounds of the prices reached.
func (i *instrument) dumpStops(w io.Writer) {
	for n := range i.triggerIndexes {
		bound := &i.triggerIndexes[n]
		fmt.Fprintf(w, "watch %s %d %d:", watched[n], bound.low, bound.high)
		for l := range bound.each() {
			fmt.Fprintf(w, " %s %s %d %d", l.Value.order.Code, l.Value.legOf(l), l.Price, l.Value.arrival)
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "stops %d due %t", i.stops, i.triggers != nil)
	for _, s := range i.putBack {
		fmt.Fprintf(w, " %s %s", s.order.Code, s.held)
	}
	fmt.Fprintln(w)
}
