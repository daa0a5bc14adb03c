// Package logclock estimates the time that the owner of a journal gives to the next record.
//
// The log may be ahead of a node's clock: by up to a minute, or by days with --accept-clock after a wrong clock was
// corrected. The owner continues from the time of the last record then, at most one percent slower than the time that
// passes. So a Clock is the node's clock, but never behind the time of the last record and 99 percent of the time since
// the node read it. While the log is not ahead, it is exactly the node's clock.
//
// Within a term, the Clock does not go back unless the node's clock is set back; if the log is ahead, not even then. A
// new term may begin earlier than the Clock: an owner in another process does not know how long the log was quiet.
//
// A time in a record, such as that of a retry, must be compared with this clock and not with the node's.
package logclock

import (
	"sync"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// slower is by how much the owner's time may run slower than a monotonic clock: one part in slower. See package term.
const slower = 100

// Clock is a node's clock, set forward if the log is ahead of it. Its methods may be called concurrently.
type Clock struct {
	node func() reading

	mu      sync.Mutex
	begun   bool          // Start or Reach was called
	reached scalar.Time   // a lower bound of the time …
	since   time.Duration // … at this time of the monotonic clock
}

// reading is one reading of the node's clocks.
type reading struct {
	wall scalar.Time
	mono time.Duration // the monotonic clock, which nobody sets
}

// New returns a clock that equals the node's until Start or Reach is called. The monotonic clock is the one in the times
// of node. If they have none, it is the wall clock.
func New(node func() time.Time) *Clock {
	start := node()
	return &Clock{node: func() reading {
		now := node()
		return reading{scalar.TimeOf(now), now.Sub(start)}
	}}
}

// Of returns the clock of the journal that a follower follows, from the follower's present state on.
func Of(f record.Follower, node func() time.Time) *Clock {
	c := New(node)
	f.ListenFrom(func(s decide.State, _ record.Position) { c.Start(s) }, func(e record.Entry, _ decide.State) { c.Reach(&e) })
	return c
}

// Start begins with the last record of a state.
func (c *Clock) Start(s decide.State) {
	if facts, ok := s.(decide.Facts); ok {
		c.set(facts.Time(), true)
	}
}

// Reach must be called with each record when it is read, in order.
func (c *Clock) Reach(e *record.Entry) {
	c.set(e.Record.Time, e.Record.Command.Type == decide.TypeTaken)
}

// set makes t the lower bound if it is later than the present one, or in any case if it begins a term.
func (c *Clock) set(t scalar.Time, begins bool) {
	now := c.node()
	c.mu.Lock()
	defer c.mu.Unlock()
	if least, known := c.atLeast(now); begins || !known || t >= least {
		c.begun, c.reached, c.since = true, t, now.mono
	}
}

// atLeast returns the lower bound of the time at a reading. The caller holds the lock.
func (c *Clock) atLeast(now reading) (t scalar.Time, known bool) {
	passed := max(0, now.mono-c.since) // negative if a wall clock that stands for the monotonic one was set back
	return c.reached + scalar.Time((passed - passed/slower).Microseconds()), c.begun
}

// read returns a reading, and the time at it.
func (c *Clock) read() (node reading, log scalar.Time) {
	node = c.node()
	c.mu.Lock()
	defer c.mu.Unlock()
	if least, known := c.atLeast(node); known {
		return node, max(node.wall, least)
	}
	return node, node.wall
}

// Now returns the time. It is never behind the node's clock.
func (c *Clock) Now() scalar.Time {
	_, log := c.read()
	return log
}

// Node converts a time of the log to the node's clock. While the log is ahead, the result may be early, by one percent of
// the remaining time. So the caller must compare t with Now again.
func (c *Clock) Node(t scalar.Time) scalar.Time {
	node, log := c.read()
	return t - (log - node.wall)
}
