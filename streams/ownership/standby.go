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
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// standby folds a partition while this node does not own it, so that a term of this node starts with a state at the
// tip. take hands the state over to the owner. After the node has lost the partition, the standby folds again from the
// start, or from where the owner's replay was interrupted.
type standby struct {
	client    *journal.Client
	rules     decide.Rules
	partition int32
	from      func(context.Context) (*record.Seed, error) // returns where to start; genesis if it is nil or returns nil

	mu       sync.Mutex
	stop     context.CancelFunc // nil while it does not fold
	done     chan struct{}
	seed     *record.Seed    // used only by the fold until done is closed
	resume   *record.Seed    // of an interrupted replay of the owner; nil while the standby folds
	observed int64           // offset after the last record that the fold has read
	time     scalar.Time     // time of the last valid record, of this fold or earlier ones
	anchors  *record.Anchors // of the positions that the fold has passed
	met      atomic.Bool     // another source knows a position that the fold has passed
	seeks    *record.Anchors // anchors of the owner, which must find old records as if it had folded them
}

// begin starts the fold unless it is running.
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
		if s.done == done { // otherwise the seed was taken in the meantime, and another fold may have begun
			s.seed = seed
			if seed == nil { // without a seed, the positions passed prove nothing
				s.anchors = nil
			}
		}
	}()
}

// fold folds until the context ends and returns the result. It returns nil if the log is invalid or the rules fail on
// it: the next fold meets and reports the same error.
func (s *standby) fold(ctx context.Context, anchors *record.Anchors) *record.Seed {
	seed, err := s.start(ctx)
	if err != nil {
		return nil
	}
	if seed == nil {
		seed = &record.Seed{State: s.rules.NewState(), Position: record.Before}
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

// keep keeps what an interrupted replay of the owner has applied.
func (s *standby) keep(seed *record.Seed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stop == nil {
		s.resume = seed
	}
}

// start returns the seed of a fold or a replay, which is the later of the kept one and that of from. nil means genesis.
func (s *standby) start(ctx context.Context) (given *record.Seed, err error) {
	s.mu.Lock()
	resume := s.resume
	s.resume = nil
	s.mu.Unlock()
	if s.from != nil {
		given, err = s.from(ctx)
	}
	if resume != nil && (given == nil || given.Position.Sequence < resume.Position.Sequence) {
		return resume, nil // an error of from does not matter
	}
	return given, err
}

func (s *standby) reached(next int64, time scalar.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.observed, s.time = next, max(s.time, time)
}

// lastTime returns the time of the last record read.
func (s *standby) lastTime() scalar.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.time
}

// atTip returns once the fold has reached the current end of the log or has ended, or if the brokers do not answer.
func (s *standby) atTip(ctx context.Context) {
	s.mu.Lock()
	done := s.done
	s.mu.Unlock()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	// An error only means that the node does not wait.
	_ = s.client.ToTip(ctx, s.rules.Journal(), s.partition, func(ctx context.Context, end int64) error {
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

// take ends the fold and returns its result, or nil if it is not running.
func (s *standby) take() *record.Seed {
	s.mu.Lock()
	stop, done := s.stop, s.done
	s.mu.Unlock()
	if stop == nil {
		return nil
	}
	// The lock is not held here: the fold takes it to report its progress. The state must not be used before the fold
	// has ended, because the fold may still apply a record to it.
	stop()
	<-done
	s.mu.Lock()
	defer s.mu.Unlock()
	seed := s.seed
	s.stop, s.done, s.seed, s.anchors = nil, nil, nil, nil
	return seed
}

// passed reports whether the running fold has passed a position, so that the seed it hands over includes that record.
func (s *standby) passed(p record.Position) bool {
	s.mu.Lock()
	anchors := s.anchors
	s.mu.Unlock()
	return anchors != nil && anchors.Below(p.Sequence+1).Equal(p)
}

// unverified returns the known positions of a partition, except those that the standby has passed: they need not be
// checked again.
type unverified struct {
	journal.Known
	shard   submit.Shard
	standby *standby
}

// Positions returns the known positions that must still be found in the log.
func (u unverified) Positions(ctx context.Context, name string, partition int32) ([]record.Position, error) {
	positions, err := u.Known.Positions(ctx, name, partition)
	if err != nil || name != u.shard.Journal || partition != u.shard.Partition {
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
