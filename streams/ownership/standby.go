package ownership

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// standby folds a partition for as long as this node does not own it, so that a term of its own begins with a state
// that is at the tip. What it hands over is no longer its own; it then folds again from the start, once the node owns
// the partition no more.
type standby struct {
	client    *journal.Client
	rules     decide.Rules
	partition int32
	from      func(context.Context) (*record.Seed, error) // where to start; nil, or a nil seed: genesis

	mu       sync.Mutex
	stop     context.CancelFunc // nil while it does not fold
	done     chan struct{}
	seed     *record.Seed    // its own until done is closed
	observed int64           // the offset after the last record that the fold has met
	time     scalar.Time     // of the last valid one, of this fold or those before it
	anchors  *record.Anchors // of the positions that it has passed
	met      atomic.Bool     // something else knows a position that the fold has passed
	seeks    *record.Anchors // of the owner, which is to find old records as if it had folded them itself
}

// begin starts to fold, unless it does.
func (s *standby) begin(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stop != nil {
		return
	}
	ctx, stop := context.WithCancel(ctx)
	done, anchors := make(chan struct{}), new(record.Anchors)
	s.met.Store(false)
	s.stop, s.done, s.seed, s.anchors, s.observed = stop, done, nil, anchors, 0
	go func() {
		defer close(done)
		seed := s.fold(ctx, anchors)
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.done == done { // else it was taken meanwhile, and perhaps another fold has begun
			s.seed = seed
			if seed == nil { // nothing is handed over that would stand on them
				s.anchors = nil
			}
		}
	}()
}

// fold returns what it has reached when the context ends, or nil if the log is at fault or the rules fail on it: the next
// fold meets the same and says so.
func (s *standby) fold(ctx context.Context, anchors *record.Anchors) *record.Seed {
	seed := &record.Seed{State: s.rules.NewState(), Position: record.Before}
	if s.from != nil {
		switch given, err := s.from(ctx); {
		case err != nil:
			return nil
		case given != nil:
			seed = given
		}
	}
	r := journal.NewTail(s.client, s.rules, s.partition, seed.Position)
	defer r.Close()
	if seed.Term > 0 {
		r.InTerm(seed.Term)
	}
	for {
		entries, next, err := r.Next(ctx)
		if err != nil {
			if record.Final(err) || seed.Position.IsBefore() {
				return nil
			}
			return seed
		}
		for _, e := range entries {
			if err := s.client.Apply(s.rules.Journal(), s.partition, seed.State, e); err != nil {
				return nil
			}
			seed.Position, seed.Time = e.Position, e.Record.Time
			if taken, ok := e.Record.Events[0].(*record.TermStarted); ok {
				seed.Term, seed.URL = taken.Term, taken.URL
			}
			anchors.Note(e.Position)
			s.seeks.Note(e.Position)
		}
		s.reached(next, seed.Time)
	}
}

func (s *standby) reached(next int64, time scalar.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.observed, s.time = next, max(s.time, time)
}

// lastTime returns the time of the last record that was met.
func (s *standby) lastTime() scalar.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.time
}

// atTip returns once the fold has reached the end that the log has now, or has ended, or if the brokers do not tell.
func (s *standby) atTip(ctx context.Context) {
	s.mu.Lock()
	done := s.done
	s.mu.Unlock()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	_ = s.client.ToTip(ctx, s.rules.Journal(), s.partition, func(ctx context.Context, end int64) error { // of no use, but nobody's fault
		for {
			s.mu.Lock()
			reached := s.observed >= end || s.done == nil
			s.mu.Unlock()
			if reached {
				return nil
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-done:
				return nil
			case <-ticker.C:
			}
		}
	})
}

// take ends the fold and hands over what it has reached: nil if it does not fold.
func (s *standby) take() *record.Seed {
	s.mu.Lock()
	stop, done := s.stop, s.done
	s.mu.Unlock()
	if stop == nil {
		return nil
	}
	// Without the lock, which the fold takes to say how far it is. It hands its state over only at its very end: until then it
	// may be about to apply a record to it.
	stop()
	<-done
	s.mu.Lock()
	defer s.mu.Unlock()
	seed := s.seed
	s.stop, s.done, s.seed, s.anchors = nil, nil, nil, nil
	return seed
}

// passed reports whether the fold that goes on has met a position: what it hands over then stands on it.
func (s *standby) passed(p record.Position) bool {
	s.mu.Lock()
	anchors := s.anchors
	s.mu.Unlock()
	return anchors != nil && anchors.Below(p.Sequence+1).Equal(p)
}

// unpassed is what something knows of a partition, less what the standby has met already: those positions need no
// reading again.
type unpassed struct {
	journal.Known
	place   place
	standby *standby
}

// Positions returns the known positions that are still to be looked for in the log.
func (u unpassed) Positions(ctx context.Context, name string, partition int32) ([]record.Position, error) {
	positions, err := u.Known.Positions(ctx, name, partition)
	if err != nil || name != u.place.journal || partition != u.place.partition {
		return positions, err
	}
	var left []record.Position
	for _, p := range positions {
		if u.standby.passed(p) {
			u.standby.met.Store(true)
		} else {
			left = append(left, p)
		}
	}
	return left, nil
}
