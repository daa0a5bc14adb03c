package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/schedule"
)

// staleGuardWork sets the guard on instruments when their index price becomes too old. Until the next index price, a
// guarded instrument accepts only orders that rest, like an instrument that never had an index price.
type staleGuardWork struct{ aboutInstrument }

func (staleGuardWork) step(_ *State, _ decide.Stamp, entries []*dueEntry, _ bool) decide.Decision {
	events := make([]decide.Event, 0, len(entries)+1)
	for _, e := range entries {
		c := e.instrument.contract
		events = append(events, &GuardSet{Symbol: c.Symbol, Stale: true, Status: c.Status.Stricter(market.PostOnly)})
	}
	return stepped(WorkStaleGuard, events...)
}

// guarded reports whether an automatic guard is in force: the index price is missing or stale.
func (i *instrument) guarded() bool { return i.mark == 0 || i.stale }

// status returns the status in force: the stricter of the operator's setting and the automatic guard.
func (i *instrument) status() market.Status {
	if i.guarded() {
		return i.contract.Status.Stricter(market.PostOnly)
	}
	return i.contract.Status
}

// freshUntil returns when the index price becomes too old under an instrument's parameters, or zero for never.
func (i *instrument) freshUntil(p *market.Instrument) scalar.Time {
	if i.indexPrice == 0 || p.IndexStaleSeconds == 0 {
		return 0
	}
	return i.indexTime + scalar.Time(p.IndexStaleSeconds)*scalar.Second
}

// guardLifted returns the event that lifts the guard if a change of parameters makes the index price fresh again, or
// nil.
func (i *instrument) guardLifted(at decide.Stamp, after *market.Instrument) decide.Event {
	if until := i.freshUntil(after); i.stale && (until == 0 || until > at.Time) {
		return &GuardSet{Symbol: after.Symbol, Status: after.Status}
	}
	return nil
}

// guardSet applies the event.
func (f *fold) guardSet(e *GuardSet) {
	i := f.instrument(e.Symbol)
	i.stale = e.Stale
	f.armGuard(i)
}

// armGuard puts the guard on the due list for the time at which the index price becomes too old.
func (f *fold) armGuard(i *instrument) {
	f.cancelEntry(i.guard)
	i.guard = nil
	if until := i.freshUntil(&i.contract.Instrument); until != 0 && !i.stale && i.contract.Status != market.Withdrawn {
		i.guard = &dueEntry{Slot: schedule.At(until, dueStaleGuard), instrument: i}
		f.due.push(i.guard)
	}
}
