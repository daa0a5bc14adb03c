// Package logclock estimates the clock of a journal's owner from the times of the records.
//
// The log may be ahead of a node's clock: by up to a minute, or by days with --accept-clock after a wrong clock was
// corrected. The owner stamps records with times that continue from the last one. A time in a record, such as that of a
// retry, must be compared with this clock and not with the node's.
package logclock

import (
	"sync/atomic"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Clock is a node's clock, set forward if the last record is ahead of it. Its methods may be called concurrently.
type Clock struct {
	node  func() scalar.Time
	ahead atomic.Int64 // a scalar.Time
}

// New returns a clock that equals the node's until Reach is called.
func New(node func() scalar.Time) *Clock { return &Clock{node: node} }

// Reach must be called with the time of each record when it is read.
func (c *Clock) Reach(record scalar.Time) { c.ahead.Store(int64(max(0, record-c.node()))) }

// Now returns the time. It is never behind the node's clock.
func (c *Clock) Now() scalar.Time { return c.node() + scalar.Time(c.ahead.Load()) }

// Node converts a time of the log to the node's clock.
func (c *Clock) Node(t scalar.Time) scalar.Time { return t - scalar.Time(c.ahead.Load()) }
