package onboarding

import "github.com/perpetua-exchange/perpetua/domain/scalar"

const (
	// rulesThatForget is the first number of rules that forget closed deliveries. Without it, the state would grow with
	// every delivery.
	rulesThatForget = 2
	// keptClosed is the number of closed deliveries that the state keeps, so that replays rarely need a database row
	// that is up to date. It is part of the rules: a change needs a new number of rules.
	keptClosed = 4096
)

// closedDeliveries lists the closed deliveries in the state, in the order in which they closed.
type closedDeliveries struct {
	queue []closing
	head  int // the beginning of the queue; earlier elements are processed
	n     int // of deliveries; the queue also holds obsolete closings, of deliveries that were replayed
	keep  int // how many closed deliveries are kept under rules that forget
	// forgotten is the sequence of the last record that closed a delivery which is now forgotten, or 0.
	forgotten int64
}

type closing struct {
	id       scalar.ID
	sequence int64
}

// forgets reports whether the rules in force forget closed deliveries.
func (s *State) forgets() bool { return s.core.ActiveRules() >= rulesThatForget }

// addClosed marks a delivery as closed by the record with sequence at.
func (s *State) addClosed(at int64, v *Delivery) {
	v.Closed = at
	s.closed.queue = append(s.closed.queue, closing{v.ID, at})
	s.closed.n++
}

// forget removes the deliveries that closed first, except for the last keptClosed ones. Evolve calls it at the end of
// every record.
func (s *State) forget() {
	c := &s.closed
	for s.forgets() && c.n > c.keep {
		first := c.queue[c.head]
		c.head++
		if s.isCurrent(first) {
			delete(s.deliveries, first.id)
			c.n--
			c.forgotten = first.sequence
		}
	}
	if len(c.queue) > 2*c.n+1024 { // amortized: each closing is copied about once
		s.compactClosed()
	}
}

// isCurrent reports whether a delivery is still closed by this closing.
func (s *State) isCurrent(c closing) bool {
	v, known := s.deliveries[c.id]
	return known && v.Closed == c.sequence
}

// compactClosed removes obsolete closings from the queue.
func (s *State) compactClosed() {
	left := make([]closing, 0, s.closed.n)
	for _, one := range s.closed.queue[s.closed.head:] {
		if s.isCurrent(one) {
			left = append(left, one)
		}
	}
	s.closed.queue, s.closed.head = left, 0
}

// closedInOrder returns the closed deliveries in the order in which they closed.
func (s *State) closedInOrder() []*Delivery {
	out := make([]*Delivery, 0, s.closed.n)
	for _, one := range s.closed.queue[s.closed.head:] {
		if s.isCurrent(one) {
			out = append(out, s.deliveries[one.id])
		}
	}
	return out
}

// Forgotten returns the sequence of the last record that closed a delivery which the state has forgotten, or 0. A
// delivery that the state does not contain was closed by that record or earlier, or never existed.
func (s *State) Forgotten() int64 { return s.closed.forgotten }
