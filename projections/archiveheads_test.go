package projections_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
	"github.com/perpetua-exchange/perpetua/streams/archive"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/journal/journaltest"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// headAt returns the head of an archive that ends with a record.
func headAt(id scalar.ID, n int64, last record.Position) archive.Head {
	return archive.Head{Range: n, Manifest: sha256.Sum256([]byte{byte(n)}), LastOffset: max(last.Offset, 0),
		Base: record.Base{Journal: "trading", Partitions: 1, JournalID: id, Sequence: last.Sequence + 1, Prev: last.Hash}}
}

// TestArchiveHeads: a newer head replaces an older one and never the other way, and one that contradicts it is refused.
func TestArchiveHeads(t *testing.T) {
	ctx, heads := t.Context(), projections.ArchiveHeads{Pool: projectiontest.Database(t)}
	is := func(want *archive.Head) {
		t.Helper()
		got, err := heads.Head(ctx, "trading", 0)
		if err != nil || (got == nil) != (want == nil) || got != nil && *got != *want {
			t.Errorf("%+v, %v; want %+v", got, err, want)
		}
	}
	is(nil)
	at := func(sequence int64, hash byte) record.Position {
		return record.Position{Offset: sequence + 3, Sequence: sequence, Hash: record.Hash{hash}}
	}
	first, second, forked := headAt(scalar.ID{1}, 0, at(127, 1)), headAt(scalar.ID{1}, 1, at(255, 2)), headAt(scalar.ID{1}, 1, at(255, 3))
	other := headAt(scalar.ID{2}, 2, at(383, 1))
	for _, h := range []archive.Head{first, second, second, first} {
		if err := heads.Keep(ctx, h); err != nil {
			t.Fatal(err)
		}
	}
	is(&second)
	for _, h := range []archive.Head{forked, other} {
		if err := heads.Keep(ctx, h); !errors.Is(err, archive.ErrContradiction) {
			t.Errorf("%v", err)
		}
	}
	is(&second)
	if err := projections.Forget(ctx, heads.Pool, "trading"); err != nil {
		t.Fatal(err)
	}
	is(nil)
	if _, err := heads.Pool.Exec(ctx, "DROP TABLE archive_heads"); err != nil {
		t.Fatal(err)
	}
	is(nil)
}

// silent is a source of positions that does not answer, like a bucket that is away.
type silent struct{}

func (silent) Positions(context.Context, string, int32) ([]record.Position, error) {
	return nil, errors.New("the bucket is away")
}

// TestALogWithoutWhatWasArchived is not taken by an owner: one that lost the last archived record, and one that has another in its
// place. An owner of a log that holds it serves although the bucket is away.
func TestALogWithoutWhatWasArchived(t *testing.T) {
	ctx, heads := t.Context(), projections.ArchiveHeads{Pool: projectiontest.Database(t)}
	folder := archive.HeadFolder{Dir: t.TempDir()}
	c, rules := journaltest.NewClient(t, "trading"), journaltest.Words{Name: "trading"}
	// own runs an owner until it serves, says some words, and stops it. It returns the owner's error and the last record.
	own := func(known []journal.Known, words ...string) (last record.Entry, err error) {
		t.Helper()
		o, err := journal.NewOwner(journal.OwnerConfig{Client: c, Rules: rules, Node: "n1", Known: known})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- o.Run(ctx) }()
		for _, word := range words {
			for serves := false; !serves; _, serves = o.Serving() {
				select {
				case err := <-done:
					return last, err
				case <-time.After(time.Millisecond):
				}
			}
			c := journaltest.Say(word)
			r, err := journaltest.Insist(func() (submit.Result, error) { return o.Submit(ctx, c) })
			if err != nil {
				t.Fatal(err)
			}
			last = *r.Entry
		}
		cancel()
		<-done
		return last, nil
	}
	// away returns what an owner knows while the bucket is away.
	away := func(copies ...archive.Heads) []journal.Known { return append(archive.Known(c, copies...), silent{}) }
	said, err := own(archive.Known(c, heads, folder), "one")
	if err != nil {
		t.Fatal(err)
	}
	last := said.Position
	h := headAt(said.Journal, 0, last)
	if err := errors.Join(heads.Keep(ctx, h), folder.Keep(ctx, h)); err != nil {
		t.Fatal(err)
	}
	if _, err := own(away(heads, folder), "two"); err != nil {
		t.Errorf("a log that holds what was archived: %v", err)
	}
	journaltest.Cut(t, c, "trading", last.Offset)
	diverges := func(what string, copies ...archive.Heads) {
		t.Helper()
		var diverged *record.DivergedError
		if _, err := own(away(copies...), "three"); !errors.As(err, &diverged) || !diverged.Have.Equal(last) {
			t.Errorf("%s: %v", what, err)
		}
	}
	diverges("the log has lost the last archived record", heads, folder)
	diverges("only Postgres knows", heads)
	diverges("only the data folder knows", folder)
	if err := errors.Join(projections.Forget(ctx, heads.Pool, "trading"), folder.Forget("trading", 0)); err != nil {
		t.Fatal(err)
	}
	if _, err := own(archive.Known(c, heads, folder), "another", "history", "follows"); err != nil {
		t.Fatal(err)
	}
	if err := folder.Keep(ctx, h); err != nil {
		t.Fatal(err)
	}
	diverges("the log has another record in place of the last archived one", folder)
	// A head before the base of the log is vouched for by the base.
	c.AddBases(based{record.Base{Journal: "trading", Partitions: 1, JournalID: said.Journal, Sequence: last.Sequence + 3, Prev: record.Hash{9}}})
	if known, err := archive.Known(c, folder)[0].Positions(ctx, "trading", 0); err != nil || len(known) > 0 {
		t.Errorf("of a record before the base: %v, %v", known, err)
	}
}

// based is a source of one base.
type based struct{ b record.Base }

func (s based) Base(context.Context, string, int32) (*record.Base, error) { return &s.b, nil }
func (s based) String() string                                            { return "a test" }
