package blob

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

const (
	// Patience is how long an operation waits for a store without progress: the next listed blobs, or the next part of
	// a blob.
	Patience = 4 * time.Second
	// Rest is the time after a failure to answer during which callers that can do without the store should not use it.
	Rest = 30 * time.Second
	// Pending is the maximum number of concurrent questions, including those that hang forever.
	Pending = 16
)

// ErrSilent reports that the store did not answer in time.
var ErrSilent = errors.New("the blob store does not answer")

// line limits the concurrent questions to a store that may hang. A hanging folder does not observe a context, so a
// question to it is abandoned, and the limit keeps abandoned questions from piling up. It is safe for concurrent use.
type line struct {
	free   chan struct{}             // holds one token for each pending question
	silent atomic.Pointer[time.Time] // time of the last failure to answer; nil if the store has answered since
}

// newLine returns a line without pending questions.
func newLine() *line { return &line{free: make(chan struct{}, Pending)} }

// resting returns an error if the store failed to answer less than Rest ago.
func (l *line) resting() error {
	if at := l.silent.Load(); at != nil && time.Since(*at) < Rest {
		return fmt.Errorf("%w: it did not at %s, and is asked again %v after that", ErrSilent, at.UTC().Format(time.TimeOnly), Rest)
	}
	return nil
}

// failed records that the store did not answer just now. It keeps the monotonic clock's reading: the wall clock may be set.
func (l *line) failed() {
	now := time.Now()
	l.silent.Store(&now)
}

// ask runs a question to the store and returns its result, or ErrSilent after quietFor without progress. It then
// abandons the question without waiting for it, so the caller must not own data that the question uses. The question
// calls alive when it makes progress, and observes its context if the store can.
func ask[T any](ctx context.Context, l *line, quietFor time.Duration, question func(ctx context.Context, alive func()) (T, error)) (T, error) {
	return open(ctx, l, quietFor, question, func(T) {})
}

// open is ask for a question that returns a resource to be closed. If an abandoned question succeeds after all, open
// passes its result to unwanted, which closes it.
func open[T any](ctx context.Context, l *line, quietFor time.Duration, question func(ctx context.Context, alive func()) (T, error), unwanted func(T)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	var none T
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	quiet := startCountdown(quietFor, func() {
		l.failed()
		cancel(fmt.Errorf("%w within %v", ErrSilent, quietFor))
	})
	defer quiet.stop()
	select {
	case l.free <- struct{}{}:
	case <-ctx.Done(): // Pending questions hang
		return none, context.Cause(ctx)
	}
	answered := make(chan answer, 1) // buffered, so that an abandoned question can end
	// Either the question ends first and the caller takes the answer, or the caller leaves first and the answer is
	// discarded.
	var settled atomic.Bool
	go func() {
		defer func() { <-l.free }() // the question counts as pending until it ends
		value, err := question(ctx, func() {
			// Progress of an abandoned question must not restart the timer: when it fired, the store would look silent
			// again.
			if ctx.Err() == nil {
				quiet.restart()
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
		l.silent.Store(nil)
		return a.value, a.err
	}
	select {
	case a := <-answered:
		return take(a)
	case <-ctx.Done():
		if !settled.CompareAndSwap(false, true) {
			return take(<-answered) // the answer came at the same moment
		}
		return none, context.Cause(ctx)
	}
}
