package follow_test

import (
	"context"
	"errors"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/follow"
	"github.com/perpetua-exchange/perpetua/streams/journal/journaltest"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// marked returns a record of a history.
func marked(sequence int64, history byte) record.Entry {
	return record.Entry{Position: record.Position{Sequence: sequence,
		Hash: record.Hash{history, byte(sequence), byte(sequence >> 8), byte(sequence >> 16)}}}
}

// TestMarksBoundWhatIsHeld verifies far more records than there are marks before the first one is read. The reader holds few records
// back at any time, gets all of them, and finds a forged one.
func TestMarksBoundWhatIsHeld(t *testing.T) {
	const records, piece, most = 600_000, 100, 1024
	marks := follow.NewMarks("trading")
	for i := range int64(records) {
		marks.Note(marked(i, 1).Position)
	}
	for name, c := range map[string]struct{ forged, least int64 }{
		"nothing":       {records, records},
		"an old one":    {1000, 0},
		"the first one": {0, 0},
		"a recent one":  {records - 10, records - piece},
	} {
		held, got, next := marks.Hold(), int64(0), int64(0)
		read := func(context.Context, int64) (entries []record.Entry, err error) {
			for range piece {
				history := byte(1)
				if next >= c.forged {
					history = 2
				}
				entries, next = append(entries, marked(next, history)), next+1
			}
			if next-got > most {
				t.Fatalf("%s: %d records are held back", name, next-got)
			}
			return entries, nil
		}
		var err error
		for got < records && err == nil {
			var entries []record.Entry
			if entries, err = held.Next(t.Context(), read); err == nil {
				got = entries[len(entries)-1].Position.Sequence + 1
			}
		}
		var diverged *record.DivergedError
		if forged := c.forged < records; errors.As(err, &diverged) != forged || got > c.forged || got < c.least {
			t.Errorf("%s: %d records came, and then %v", name, got, err)
		}
	}
}

// TestMarksProveTheTail compares records that come before the fold, all of which must be proven.
func TestMarksProveTheTail(t *testing.T) {
	marks := follow.NewMarks("trading", marked(9, 1).Position, marked(4, 1).Position)
	tail := func(from, to int64, history byte) (entries []record.Entry) {
		for i := from; i <= to; i++ {
			entries = append(entries, marked(i, history))
		}
		return entries
	}
	for name, c := range map[string]struct {
		entries []record.Entry
		proven  bool
	}{
		"none":             {nil, true},
		"up to a mark":     {tail(5, 9, 1), true},
		"another history":  {tail(5, 9, 2), false},
		"beyond the marks": {tail(5, 10, 1), false},
		"between marks":    {tail(5, 8, 1), false},
	} {
		if err := marks.Prove(c.entries); (err == nil) != c.proven {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAFoldThroughMarks follows a log that holds what an earlier run has verified, and one that was rewritten since.
func TestAFoldThroughMarks(t *testing.T) {
	c := journaltest.NewClient(t, "trading")
	say, _ := serve(t, c)
	first, last := say("one").Position, say("two").Position
	rewritten := last
	rewritten.Hash[0]++
	end := say("three").Position
	for name, x := range map[string]struct {
		marks []record.Position
		want  string
	}{
		"the same":               {[]record.Position{last, first}, "one two three"},
		"rewritten after a mark": {[]record.Position{first, rewritten}, "one"},
		"rewritten":              {[]record.Position{rewritten}, ""},
	} {
		checked := follow.Checked(func(decide.State, record.Entry) error { return nil })
		f := follow.New(c, journaltest.Words{Name: "trading"}, 0, checked, follow.Through(follow.NewMarks("trading", x.marks...)))
		ended := run(t, f)
		err := f.Wait(within(t), end.Sequence)
		list, _ := words(f)
		var diverged *record.DivergedError
		if whole := x.want == "one two three"; list != x.want || (err == nil) != whole || errors.As(f.Stopped(), &diverged) == whole {
			t.Errorf("%s: it shows %q, and stopped with %v", name, list, f.Stopped())
		}
		if x.want != "one two three" {
			_ = ended()
		}
	}
}
