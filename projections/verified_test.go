package projections_test

import (
	"context"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/streams/follow"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// served is a log that serves entries in pieces of a size.
type served struct {
	entries []record.Entry
	piece   int
}

// entry returns a record of a history.
func entry(sequence int64, history byte) record.Entry {
	return record.Entry{Position: record.Position{Sequence: sequence, Hash: record.Hash{history, byte(sequence), byte(sequence >> 8)}}}
}

func (s *served) From(at record.Position) projections.Reader {
	rest := *s
	rest.entries = rest.entries[at.Sequence+1:]
	return &rest
}

func (s *served) Tip(context.Context) (int64, error) { return int64(len(s.entries)), nil }

func (s *served) Poll(ctx context.Context) ([]record.Entry, error) {
	if len(s.entries) == 0 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	n := min(s.piece, len(s.entries))
	next := s.entries[:n:n]
	s.entries = s.entries[n:]
	return next, nil
}

func (s *served) Close() {}

// TestVerifiedReleasesWhatWasNoted reads a log of which a part is verified, served in pieces of any size and forged from any record
// on. The reader gets the records up to the last one that was noted, in order, and none of the forged ones.
func TestVerifiedReleasesWhatWasNoted(t *testing.T) {
	wrong := errors.New("wrong")
	rapid.Check(t, func(t *rapid.T) {
		noted := rapid.Int64Range(0, 300).Draw(t, "noted")
		forgedFrom := rapid.Int64Range(0, 400).Draw(t, "forged from")
		log := &served{piece: rapid.IntRange(1, 50).Draw(t, "piece")}
		for i := range int64(350) {
			history := byte(1)
			if i >= forgedFrom {
				history = 2
			}
			log.entries = append(log.entries, entry(i, history))
		}
		marks := follow.NewMarks("trading")
		for i := range noted {
			marks.Note(entry(i, 1).Position)
		}
		marks.Stop(wrong)
		r := projections.Verified{Log: log, Marks: marks}.From(record.Before)
		defer r.Close()
		next := int64(0)
		for {
			entries, err := r.Poll(t.Context())
			for _, e := range entries {
				if e.Position.Sequence != next || e.Position.Hash != entry(next, 1).Position.Hash || next >= noted {
					t.Fatalf("record %d of history %d came as number %d", e.Position.Sequence, e.Position.Hash[0], next)
				}
				next++
			}
			if err == nil {
				continue
			}
			var diverged *record.DivergedError
			if forged := forgedFrom < noted; forged != errors.As(err, &diverged) || !forged && (!errors.Is(err, wrong) || next != noted) {
				t.Fatalf("after %d of %d records, forged from %d on: %v", next, noted, forgedFrom, err)
			}
			return
		}
	})
}

// TestVerifiedBeginsBeforeItsSeed reads records that were verified in an earlier run: none is released before one that a mark of that
// run proves.
func TestVerifiedBeginsBeforeItsSeed(t *testing.T) {
	for name, c := range map[string]struct {
		history byte
		want    int64
	}{"the same history": {1, 9}, "another one": {2, 0}} {
		log := &served{piece: 4}
		for i := range int64(20) {
			log.entries = append(log.entries, entry(i, c.history))
		}
		marks := follow.NewMarks("trading", entry(6, 1).Position, entry(2, 1).Position)
		marks.Note(entry(7, 1).Position)
		marks.Note(entry(8, 1).Position)
		marks.Stop(errors.New("wrong"))
		r, got := projections.Verified{Log: log, Marks: marks}.From(record.Before), int64(0)
		for {
			entries, err := r.Poll(t.Context())
			if got += int64(len(entries)); err != nil {
				break
			}
		}
		if got != c.want {
			t.Errorf("%s: %d records were released, want %d", name, got, c.want)
		}
		r.Close()
	}
}
