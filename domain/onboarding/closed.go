package onboarding

import "github.com/perpetua-exchange/perpetua/domain/scalar"

const (
	// rulesThatForget is the number of the first rules that forget deliveries which are over: without that a state would grow with
	// every one that was ever made.
	rulesThatForget = 2
	// keptClosed is how many of those a state keeps all the same, so that rows which are a little behind will mostly do. It is part
	// of the rules: another number takes another number of rules.
	keptClosed = 4096
)

// closedDeliveries are those of a state that are not to be tried any more, in the order in which they closed.
type closedDeliveries struct {
	queue []closing
	head  int // of the queue: those before it are done with
	n     int // how many there are. The queue may hold more: closings of what is open again, or closed again later
	keep  int // how many are kept under rules that forget
	// forgotten is the sequence of the last record that closed one which is forgotten; 0 while none is.
	forgotten int64
}

type closing struct {
	id       scalar.ID
	sequence int64
}

// forgets reports whether the rules in force have deliveries forgotten.
func (s *State) forgets() bool { return s.core.ActiveRules() >= rulesThatForget }

// addClosed has a delivery be closed since a record.
func (s *State) addClosed(at int64, v *Delivery) {
	v.Closed = at
	s.closed.queue = append(s.closed.queue, closing{v.ID, at})
	s.closed.n++
}

// forget takes the deliveries that closed first out of the state, beyond those that are kept. It is the last part of every record.
func (s *State) forget() {
	c := &s.closed
	for s.forgets() && c.n > c.keep {
		first := c.queue[c.head]
		c.head++
		if s.stands(first) {
			delete(s.deliveries, first.id)
			c.n--
			c.forgotten = first.sequence
		}
	}
	if len(c.queue) > 2*c.n+1024 { // so each closing is copied about once
		s.compactClosed()
	}
}

// stands reports whether a delivery is closed since that closing.
func (s *State) stands(c closing) bool {
	v, known := s.deliveries[c.id]
	return known && v.Closed == c.sequence
}

// compactClosed leaves the closings in the queue that stand.
func (s *State) compactClosed() {
	left := make([]closing, 0, s.closed.n)
	for _, one := range s.closed.queue[s.closed.head:] {
		if s.stands(one) {
			left = append(left, one)
		}
	}
	s.closed.queue, s.closed.head = left, 0
}

// closedInOrder returns the deliveries that are closed, the first that was first.
func (s *State) closedInOrder() []*Delivery {
	out := make([]*Delivery, 0, s.closed.n)
	for _, one := range s.closed.queue[s.closed.head:] {
		if s.stands(one) {
			out = append(out, s.deliveries[one.id])
		}
	}
	return out
}

// Forgotten returns the sequence of the last record that closed a delivery which the state has forgotten; 0 while there is none.
// What it does not know of was closed by then, or was never made.
func (s *State) Forgotten() int64 { return s.closed.forgotten }
