package history

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/past"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// moment is a state at a position. Its state does not change after the moment was returned.
type moment struct {
	state decide.State
	at    record.Position
	passed
	next     record.Entry // the record that follows, or zero
	deciding sync.Mutex   // held while something is decided on the state
}

// passed holds the facts about a position that a snapshot's header needs.
type passed struct {
	id    scalar.ID // of the journal
	time  scalar.Time
	term  int64
	url   string // of the node that opened the term
	build string // of that node; "" if unknown
}

func (p *passed) pass(e record.Entry) {
	p.id, p.time = e.Journal, e.Record.Time
	if taken, ok := e.Record.Events[0].(*record.TermStarted); ok {
		p.term, p.url, p.build = taken.Term, taken.URL, taken.Build
	}
}

// momentOf returns the moment of a seed, or the one before the genesis for nil.
func momentOf(j Journal, seed *record.Seed) *moment {
	if seed == nil {
		return &moment{state: j.Rules.NewState(), at: record.Before}
	}
	return &moment{state: seed.State, at: seed.Position, passed: passed{id: seed.Journal, time: seed.Time, term: seed.Term, url: seed.URL}}
}

// start returns a private moment at or before a key: from the nearest snapshot, a copy of the nearest cached moment, or the
// beginning of the journal.
func (s *States) start(ctx context.Context, k key, j Journal) (*moment, error) {
	s.mu.Lock()
	found := s.cache.below(k)
	s.mu.Unlock()
	least := record.Before.Sequence
	if found != nil {
		least = found.at.Sequence
	}
	seed, err := nearest(ctx, s.cfg.Stores, j, k.sequence, least)
	switch {
	case err != nil:
		return nil, err
	case seed != nil || found == nil:
		return momentOf(j, seed), nil
	}
	return found.copy(j)
}

// copy returns a moment with a separate state.
func (m *moment) copy(j Journal) (*moment, error) {
	state, err := j.Codec.Read(j.Codec.Append(make([]byte, 0, j.Codec.Size(m.state)), m.state))
	if err != nil {
		return nil, fmt.Errorf("history: copying the state at %v: %w", m.at, err)
	}
	return &moment{state: state, at: m.at, passed: m.passed}, nil
}

// advance applies the records up to a key to a private moment. It also reads the next record if the key asks for it. Without
// that record, the position must be the tip.
func (s *States) advance(ctx context.Context, j Journal, m *moment, k key, tip record.Position) (*moment, error) {
	to := k.sequence
	if k.next {
		to++
	}
	err := apply(ctx, s.cfg, j, m, k.sequence, to)
	switch {
	case err != nil:
		return nil, err
	case !k.next && !m.at.Equal(tip):
		return nil, &record.DivergedError{Journal: k.Journal, Partition: k.Partition, Have: tip, Found: m.at,
			Reason: "the records lead to another position"}
	}
	return m, nil
}

// apply reads the records after a moment up to one sequence, and applies those up to another. The record between the two
// becomes the next one of the moment.
func apply(ctx context.Context, cfg Config, j Journal, m *moment, last, read int64) error {
	if m.at.Sequence >= read {
		return nil
	}
	err := applyRecords(ctx, cfg, j, m, last, read)
	if broken := (*record.BrokenRecordError)(nil); errors.As(err, &broken) {
		return &past.ForeignError{Build: m.build, Err: err}
	}
	return err
}

// applyRecords is apply without the name of the build in its errors.
func applyRecords(ctx context.Context, cfg Config, j Journal, m *moment, last, read int64) error {
	name := j.Rules.Journal()
	records := cfg.Source.After(j.Rules, j.Partition, m.at)
	defer records.Close()
	for {
		entries, err := records.PollFor(ctx, read)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if e.Position.Sequence > last {
				m.next = e
				return nil
			}
			if err := follows(name, j.Partition, m, e); err != nil {
				return err
			}
			if err := cfg.Client.Apply(name, j.Partition, m.state, e); err != nil {
				return err
			}
			m.pass(e)
			if m.at = e.Position; m.at.Sequence == read {
				return nil
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// follows checks that a record opens the next term, if it opens one. A source checks everything else.
func follows(name string, partition int32, m *moment, e record.Entry) error {
	taken, ok := e.Record.Events[0].(*record.TermStarted)
	if ok && m.term != record.UnknownTerm && m.at.Sequence >= 0 && taken.Term != m.term+1 {
		return &record.BrokenRecordError{Journal: name, Partition: partition, Offset: e.Position.Offset, Sequence: e.Position.Sequence,
			Reason: fmt.Sprintf("it opens term %d after term %d", taken.Term, m.term)}
	}
	return nil
}

var _ Records = (*journal.Reader)(nil)
