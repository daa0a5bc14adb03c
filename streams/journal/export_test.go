package journal

import (
	"context"
	"time"

	"github.com/perpetua-exchange/perpetua/streams/term"
)

// Patient gives an owner limits that a busy machine does not exceed: for the wait of a command for its decision, and for that of a
// record for its acknowledgement.
func (c OwnerConfig) Patient() OwnerConfig {
	c.limits = func(l *term.Limits) { l.DecideTimeout, l.Stall = time.Minute, time.Minute }
	return c
}

// Impatient gives an owner the limits of a node.
func (c OwnerConfig) Impatient() OwnerConfig {
	c.limits = nil
	return c
}

// CheckAgain returns the function by which WatchTopics checks the topic of a journal at each interval.
func (c *Client) CheckAgain(journal string) func(context.Context) error {
	return (&topicWatch{client: c, journal: journal}).check
}
