package journal

import (
	"context"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Standing describes a valid term.
type Standing struct {
	Term    int64
	Taken   record.Hash // of the record that opened the term
	Journal scalar.ID   // the journal's identity
}

// Standing asks the goroutine of the current term to describe the term. An answer proves that the goroutine is running.
// Standing returns false without waiting if this node has no valid term, and the context's error if the goroutine does
// not answer.
func (o *Owner) Standing(ctx context.Context) (s Standing, serving bool, err error) {
	if _, serving := o.Serving(); !serving {
		return Standing{}, false, nil
	}
	reply := make(chan Standing, 1) // has a buffer, so that the term never waits for a caller that has left
	select {
	case o.probes <- reply:
	case <-ctx.Done():
		return Standing{}, true, ctx.Err()
	}
	select {
	case s := <-reply:
		return s, true, nil
	case <-ctx.Done():
		return Standing{}, true, ctx.Err()
	}
}

// maxAskers is how many calls of Standing may wait for a term's goroutine.
const maxAskers = 16

// standing describes the term.
func (t *term) standing() Standing {
	return Standing{Term: t.number, Taken: t.taken, Journal: t.id}
}
