package blob

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

const (
	// Patience is how long a store is waited for without a sign of life: what lists blobs, or the next piece of one.
	Patience = 4 * time.Second
	// Rest is for how long a store that has not answered is left alone by those who would only be spared work.
	Rest = 30 * time.Second
	// Pending is how many questions may be under way; those that hang for ever count.
	Pending = 16
)

// ErrSilent says that the store did not answer in time.
var ErrSilent = errors.New("the blob store does not answer")

// line is a way to a store that may hang. A hanging folder knows of no context, so a question to it is left behind, and the
// number of questions is limited so that these don't add up. It is safe for concurrent use.
type line struct {
	free   chan struct{} // a token for each question that may be asked
	silent atomic.Int64  // when it last did not answer, in Unix nanoseconds
}

// newLine returns a line on which nothing was asked.
func newLine() *line { return &line{free: make(chan struct{}, Pending)} }

// resting returns an error if the store did not answer a short while ago.
func (l *line) resting() error {
	if at := l.silent.Load(); at != 0 && time.Since(time.Unix(0, at)) < Rest {
		return fmt.Errorf("%w: it did not at %s, and is asked again %v after that", ErrSilent, time.Unix(0, at).UTC().Format(time.TimeOnly), Rest)
	}
	return nil
}

// ask returns what a question to the store returns, or ErrSilent once the store has given no sign of life for so long. It
// does not wait for the question then: who asks owns nothing that the question still uses. The question calls alive at each
// sign of life, and observes its context where the store can.
func ask[T any](ctx context.Context, l *line, quietFor time.Duration, question func(ctx context.Context, alive func()) (T, error)) (T, error) {
	return open(ctx, l, quietFor, question, func(T) {})
}

// open is ask for what has to be closed: unwanted closes what a question that was left behind opens after all.
func open[T any](ctx context.Context, l *line, quietFor time.Duration, question func(ctx context.Context, alive func()) (T, error), unwanted func(T)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	var none T
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	quiet := time.AfterFunc(quietFor, func() {
		l.silent.Store(time.Now().UnixNano())
		cancel(fmt.Errorf("%w within %v", ErrSilent, quietFor))
	})
	defer quiet.Stop()
	select {
	case l.free <- struct{}{}:
	case <-ctx.Done(): // as many questions as there may be hang
		return none, context.Cause(ctx)
	}
	answered := make(chan answer, 1) // with room, so that a question that is left behind can end
	// Either the question is over first, and who asks takes the answer; or who asks leaves first, and nobody takes it.
	var settled atomic.Bool
	go func() {
		defer func() { <-l.free }() // whenever that is: until then it counts
		value, err := question(ctx, func() {
			// What comes after it was given up must not start the clock again: it would be taken for another silence.
			if ctx.Err() == nil {
				quiet.Reset(quietFor)
			}
		})
		if settled.CompareAndSwap(false, true) {
			answered <- answer{value, err}
		} else if err == nil {
			unwanted(value)
		}
	}()
	take := func(a answer) (T, error) {
		if a.err != nil && ctx.Err() != nil {
			return none, context.Cause(ctx)
		}
		l.silent.Store(0)
		return a.value, a.err
	}
	select {
	case a := <-answered:
		return take(a)
	case <-ctx.Done():
		if !settled.CompareAndSwap(false, true) {
			return take(<-answered) // it came at the same moment
		}
		return none, context.Cause(ctx)
	}
}
