package trading

import (
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// StepOf decides on s the record that a step of other would make now: the work of the same entries, even if s would do other work
// first. It stops at the first entry that is not due in s. If that is the first of all, the decision has no events.
func (s *State) StepOf(other *State, at decide.Stamp, single bool) decide.Decision {
	var entries []*dueEntry
	for _, e := range other.nextDue(other.most(single), at.Time) {
		mine := s.counterpart(e, at.Time)
		if mine == nil {
			break
		}
		entries = append(entries, mine)
	}
	return s.stepOn(entries, at, single)
}

// counterpart returns the entry of s with the kind and the name of an entry of another state, if it is due, or nil.
func (s *State) counterpart(e *dueEntry, now scalar.Time) *dueEntry {
	name := e.name()
	entries := s.due.list(e).Entries()
	n := slices.IndexFunc(entries, func(o *dueEntry) bool { return o.Kind == e.Kind && o.Time <= now && o.name() == name })
	if n < 0 {
		return nil
	}
	return entries[n]
}

// Liquidating returns the codes of the accounts with less equity than maintenance margin, in no particular order.
func (s *State) Liquidating() []string {
	var codes []string
	for _, e := range s.due.blocking.Entries() {
		if e.Kind == dueLiquidation {
			codes = append(codes, e.account.code)
		}
	}
	for _, e := range s.aside {
		if e.Kind == dueLiquidation {
			codes = append(codes, e.account.code)
		}
	}
	for _, a := range s.waiting {
		codes = append(codes, a.code)
	}
	return codes
}
