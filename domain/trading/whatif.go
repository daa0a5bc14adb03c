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
		same := s.counterpart(e, at.Time)
		if same == nil {
			break
		}
		entries = append(entries, same)
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

// InLiquidation reports whether a customer has less equity than maintenance margin.
func (s *State) InLiquidation(customer string) bool {
	a := s.accounts[customer]
	return a != nil && a.failing != nil
}

// InLiquidations returns the customers in liquidation, unsorted.
func (s *State) InLiquidations() (customers []string) {
	for code, a := range s.accounts {
		if a.failing != nil {
			customers = append(customers, code)
		}
	}
	return customers
}

// LastAffected returns the customers of the accounts that the last record affected. No other account can have begun or ended its
// liquidation in that record.
func (s *State) LastAffected() []string {
	codes := make([]string, len(s.affected))
	for n, a := range s.affected {
		codes[n] = a.code
	}
	return codes
}
