package snapshot

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// How long the blob store is waited for. A snapshot only spares work, so nobody waits for one as long as it may take to
// fold the log; but one that is being read is waited for, since a large one takes its time from far away.
const (
	patience   = 4 * time.Second  // without a word from it: what lists them, or the next piece of one
	loadWithin = time.Minute      // for all that it takes to load one
	saveWithin = 5 * time.Minute  // for all that it takes to write one
	rest       = 30 * time.Second // after it has not answered, those who would only be spared work don't ask it
	askAtOnce  = 16               // questions under way; those that hang for ever count
	piece      = 256 << 10        // bytes read at a time
)

// errSilent says that the blob store did not answer in time.
var errSilent = errors.New("the blob store does not answer")

// line is the way to the blob store. Its users don't wait for one that hangs, although a folder that does knows of no
// context: what asks it then is left behind, and so that those left behind don't add up they are limited.
type line struct {
	patience time.Duration
	free     chan struct{} // a token for each question that may be asked
	silent   atomic.Int64  // when it last did not answer, in Unix nanoseconds
}

func newLine() *line { return &line{patience: patience, free: make(chan struct{}, askAtOnce)} }

// resting returns an error if the store did not answer a short while ago.
func (l *line) resting() error {
	if at := l.silent.Load(); at != 0 && time.Since(time.Unix(0, at)) < rest {
		return fmt.Errorf("%w: it did not at %s, and is asked again %v after that", errSilent, time.Unix(0, at).UTC().Format(time.TimeOnly), rest)
	}
	return nil
}

// ask returns what a question to the store returns, or errSilent as soon as that has heard nothing for so long. It does
// not wait for the question then.
func ask[T any](ctx context.Context, l *line, quietFor time.Duration, question func(ctx context.Context, heard func()) (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	var none T
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	quiet := time.AfterFunc(quietFor, func() {
		l.silent.Store(time.Now().UnixNano())
		cancel(fmt.Errorf("%w within %v", errSilent, quietFor))
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
