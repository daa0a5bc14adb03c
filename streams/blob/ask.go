package blob

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

const (
	// Patience is how long a store is waited for without a word from it: what lists blobs, or the next piece of one.
	Patience = 4 * time.Second
	// Rest is for how long a store that has not answered is left alone by those who would only be spared work.
	Rest = 30 * time.Second
	// Pending is how many questions may be under way; those that hang for ever count.
	Pending = 16
)

// ErrSilent says that the store did not answer in time.
var ErrSilent = errors.New("the blob store does not answer")

// Line is a way to a store for those who don't wait for one that hangs, although a folder that does knows of no context:
// what asks it then is left behind, and so that those left behind don't add up they are limited. It is safe for concurrent
// use.
type Line struct {
	free   chan struct{} // a token for each question that may be asked
	silent atomic.Int64  // when it last did not answer, in Unix nanoseconds
}

// NewLine returns a line on which nothing was asked.
func NewLine() *Line { return &Line{free: make(chan struct{}, Pending)} }

// Resting returns an error if the store did not answer a short while ago.
func (l *Line) Resting() error {
	if at := l.silent.Load(); at != 0 && time.Since(time.Unix(0, at)) < Rest {
		return fmt.Errorf("%w: it did not at %s, and is asked again %v after that", ErrSilent, time.Unix(0, at).UTC().Format(time.TimeOnly), Rest)
	}
	return nil
}

// Ask returns what a question to the store returns, or ErrSilent as soon as that has heard nothing for so long. It does not
// wait for the question then: who asks owns nothing that the question still uses. The question calls heard at each sign of
// life, and observes its context where the store can.
func Ask[T any](ctx context.Context, l *Line, quietFor time.Duration, question func(ctx context.Context, heard func()) (T, error)) (T, error) {
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
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
	answered := make(chan answer, 1)
	go func() {
		defer func() { <-l.free }()
		value, err := question(ctx, func() {
			if ctx.Err() == nil {
				quiet.Reset(quietFor)
			}
		})
		answered <- answer{value, err}
	}()
	select {
	case a := <-answered:
		if a.err != nil && ctx.Err() != nil {
			return none, context.Cause(ctx)
		}
		l.silent.Store(0)
		return a.value, a.err
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
}
