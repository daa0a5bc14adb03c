package journal

import (
	"context"

	"github.com/perpetua-exchange/perpetua/streams/term"
)

// Standing asks the goroutine of the current term to describe the term. An answer proves that the goroutine is running.
// Standing returns false without waiting if this node has no valid term, and the context's error if the goroutine does
// not answer.
func (o *Owner) Standing(ctx context.Context) (s term.Standing, serving bool, err error) {
	if _, serving := o.Serving(); !serving {
		return term.Standing{}, false, nil
	}
	reply := make(chan term.Standing, 1) // has a buffer, so that the owner never waits for a caller that has left
	select {
	case o.probes <- reply:
	case <-ctx.Done():
		return term.Standing{}, true, ctx.Err()
	}
	select {
	case s := <-reply:
		return s, true, nil
	case <-ctx.Done():
		return term.Standing{}, true, ctx.Err()
	}
}

// maxAskers is how many calls of Standing may wait for the owner's goroutine.
const maxAskers = 16

// standing describes the term.
func (o *Owner) standing() term.Standing {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.machine.Standing()
}
