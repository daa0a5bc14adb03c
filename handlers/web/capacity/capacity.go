// Package capacity answers requests for which a node has no capacity: it limits how many operations of a kind run
// concurrently (see package slots), and how long a request waits.
package capacity

import (
	"context"
	"time"

	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/web/slots"
)

// Limiter is a limit of concurrent operations. It is safe for concurrent use.
type Limiter struct {
	slots *slots.Slots
	wait  time.Duration // maximum wait for capacity
	busy  Busy
}

// Busy is the error code and message for a lack of capacity.
type Busy struct{ Code, Message string }

// New returns a limit of all operations and of each operations of one user. Take waits up to wait.
func New(all, each int, wait time.Duration, busy Busy) *Limiter {
	return &Limiter{slots.New(all, each), wait, busy}
}

// Take waits for capacity, which leave releases. Its error is the context's error, or a 503 with Retry-After.
func (p *Limiter) Take(ctx context.Context, user string) (leave func(), err error) {
	soon, cancel := context.WithTimeout(ctx, p.wait)
	defer cancel()
	leave, ok := p.slots.Take(soon, user)
	switch {
	case ok:
		return leave, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return nil, problem.Unavailable(p.busy.Code, p.busy.Message, time.Second)
}
