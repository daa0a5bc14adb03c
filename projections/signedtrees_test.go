package projections_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/journal/journaltest"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
	"github.com/perpetua-exchange/perpetua/streams/transparency"
)

var origin = transparency.Origin{Host: "venue.example", Journal: "trading", ID: scalar.ID{7}}

// leaves is a tree of which every hash is stored.
type leaves []tlog.Hash

func (l leaves) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	out := make([]tlog.Hash, len(indexes))
	for i, at := range indexes {
		out[i] = l[at]
	}
	return out, nil
}

// grown returns a tree of n leaves. Trees of one fork extend each other.
func grown(t testing.TB, fork byte, n int64) (out leaves) {
	t.Helper()
	for i := range n {
		hashes, err := tlog.StoredHashes(i, []byte{fork, byte(i), byte(i >> 8)}, out)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, hashes...)
	}
	return out
}

func head(t testing.TB, l leaves, size int64) transparency.Head {
	t.Helper()
	root, err := tlog.TreeHash(size, l)
	if err != nil {
		t.Fatal(err)
	}
	return transparency.Head{Size: size, Root: root, Position: record.Position{Offset: size + 2, Sequence: size - 1, Hash: sha256.Sum256(root[:])}}
}

// TestSignersRace has signers of several nodes, some of a forged log, sign at the same time. What they sign is one history: no
// two roots of one size, no smaller tree, and each extends the one before.
func TestSignersRace(t *testing.T) {
	pool := projectiontest.Database(t)
	heads := projections.SignedTrees{Pool: pool}
	const size = 300
	forks := []leaves{grown(t, 0, size), grown(t, 1, size)}
	key := newKey(t)
	var mu sync.Mutex
	signed := make(map[int64][]string)
	var nodes sync.WaitGroup
	for node := range 6 {
		nodes.Go(func() {
			s := transparency.NewSigner(origin, heads, key)
			random := rand.New(rand.NewPCG(1, uint64(node)))
			log := forks[node%2]
			for range 40 {
				old, err := heads.Head(t.Context(), origin)
				if err != nil {
					t.Error(err)
					return
				}
				c, err := s.Sign(t.Context(), old, head(t, log, 1+random.Int64N(size)), log)
				if errors.Is(err, transparency.ErrMoved) || errors.Is(err, transparency.ErrInconsistent) {
					continue
				}
				if err == nil {
					err = heads.Publish(t.Context(), origin, c)
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				signed[c.Size] = append(signed[c.Size], string(c.Note))
				mu.Unlock()
			}
		})
	}
	nodes.Wait()
	if len(signed) == 0 {
		t.Fatal("nothing was signed")
	}
	won := -1
	var largest int64
	for size, notes := range signed {
		if len(slices.Compact(notes)) != 1 {
			t.Errorf("two roots of size %d were signed", size)
		}
		root := signedRoot(t, notes[0])
		fork := slices.IndexFunc(forks, func(l leaves) bool { return head(t, l, size).Root == root })
		if fork < 0 || won >= 0 && fork != won {
			t.Errorf("size %d is of the log %d, another size of %d", size, fork, won)
		}
		won, largest = fork, max(largest, size)
	}
	last, err := heads.Head(t.Context(), origin)
	if err != nil || last.Size != largest || last.Root != head(t, forks[won], largest).Root || !last.Position.Equal(head(t, forks[won], largest).Position) {
		t.Errorf("the last head is %+v: %v", last, err)
	}
	if c, err := heads.Published(t.Context(), origin); err != nil || c.Size != largest || string(c.Note) != signed[largest][0] {
		t.Errorf("the published checkpoint is of size %d: %v", c.Size, err)
	}
}

func newKey(t testing.TB) *transparency.Key {
	t.Helper()
	k, err := transparency.NewKey(origin, make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func signedRoot(t testing.TB, text string) tlog.Hash {
	t.Helper()
	p, err := transparency.NewPolicy().ForLog(newKey(t).Verifier())
	if err != nil {
		t.Fatal(err)
	}
	o, err := p.Open([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return o.Root
}

// TestSignedTreesAreKnown: owners look for what was signed, until the log is forgotten. The signer never forgets.
func TestSignedTreesAreKnown(t *testing.T) {
	pool := projectiontest.Database(t)
	heads := projections.SignedTrees{Pool: pool}
	log := grown(t, 0, 20)
	first, second := head(t, log, 7), head(t, log, 20)
	known := func(want ...transparency.Head) {
		t.Helper()
		got, err := heads.Positions(t.Context(), "trading", 0)
		if err != nil || len(got) != len(want) {
			t.Fatalf("%v, %v", got, err)
		}
		for i, h := range want {
			if !got[i].Equal(h.Position) || got[i].Offset != h.Position.Offset {
				t.Errorf("%v, want %v", got[i], h.Position)
			}
		}
	}
	none, err := heads.Head(t.Context(), origin)
	if err != nil || none.Size != 0 || !none.Position.IsBefore() {
		t.Errorf("%+v, %v", none, err)
	}
	known()
	if err := heads.Advance(t.Context(), origin, transparency.Head{}, first); err != nil {
		t.Fatal(err)
	}
	known(first)
	for _, old := range []transparency.Head{{}, second, {Size: 7, Root: second.Root}} {
		if err := heads.Advance(t.Context(), origin, old, second); !errors.Is(err, transparency.ErrMoved) {
			t.Errorf("from %d: %v", old.Size, err)
		}
	}
	if err := heads.Advance(t.Context(), origin, first, second); err != nil {
		t.Fatal(err)
	}
	known(second)
	if err := heads.Advance(t.Context(), origin, second, first); !errors.Is(err, transparency.ErrMoved) {
		t.Errorf("back: %v", err)
	}
	if other, err := heads.Positions(t.Context(), "onboarding", 0); err != nil || len(other) > 0 {
		t.Errorf("%v, %v", other, err)
	}
	if err := projections.Forget(t.Context(), pool, "trading"); err != nil {
		t.Fatal(err)
	}
	known()
	if h, err := heads.Head(t.Context(), origin); err != nil || h.Size != 20 || !h.Forgotten {
		t.Errorf("after the log was forgotten: %+v, %v", h, err)
	}
}

// TestCheckpointsAreReplacedByLargerOnes, whichever node publishes last.
func TestCheckpointsAreReplacedByLargerOnes(t *testing.T) {
	heads := projections.SignedTrees{Pool: projectiontest.Database(t)}
	if c, err := heads.Published(t.Context(), origin); err != nil || c.Size != 0 {
		t.Errorf("%+v, %v", c, err)
	}
	if err := heads.Advance(t.Context(), origin, transparency.Head{}, head(t, grown(t, 0, 9), 9)); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ publish, then int64 }{{5, 5}, {9, 9}, {7, 9}, {10, 10}, {10, 10}, {9, 10}} {
		key := newKey(t)
		h := head(t, grown(t, 0, step.publish), step.publish)
		c, err := transparency.NewSigner(origin, heads, key).Sign(t.Context(), h, h, nil)
		if err == nil {
			err = heads.Publish(t.Context(), origin, c)
		}
		if err != nil {
			t.Fatal(err)
		}
		if got, err := heads.Published(t.Context(), origin); err != nil || got.Size != step.then || got.Verifier != key.Verifier() {
			t.Errorf("after %d: %d, %v", step.publish, got.Size, err)
		}
	}
}

// TestSignedTreesOfAnOlderDatabase are none.
func TestSignedTreesOfAnOlderDatabase(t *testing.T) {
	pool := projectiontest.Open(t, projectiontest.URL(t))
	if known, err := (projections.SignedTrees{Pool: pool}).Positions(t.Context(), "trading", 0); err != nil || len(known) > 0 {
		t.Errorf("%v, %v", known, err)
	}
}

// TestALogWithoutTheLastSignedRecord is not taken by an owner, until it is forgotten. Nothing else knows that it was longer.
func TestALogWithoutTheLastSignedRecord(t *testing.T) {
	pool := projectiontest.Database(t)
	heads := projections.SignedTrees{Pool: pool}
	c, rules := journaltest.NewClient(t, "trading"), journaltest.Words{Name: "trading"}
	// own runs an owner until it serves, says some words, and stops it. It returns the owner's error and the last record.
	own := func(words ...string) (last record.Position, err error) {
		t.Helper()
		o, err := journal.NewOwner(journal.OwnerConfig{Client: c, Rules: rules, Node: "n1", Known: []journal.Known{heads}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
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
			last = r.Entry.Position
		}
		cancel()
		<-done
		return last, nil
	}
	last, err := own("one", "two")
	if err != nil {
		t.Fatal(err)
	}
	signed := head(t, grown(t, 0, last.Sequence+1), last.Sequence+1)
	signed.Position = last
	if err := heads.Advance(t.Context(), origin, transparency.Head{}, signed); err != nil {
		t.Fatal(err)
	}
	if _, err := own("three"); err != nil {
		t.Errorf("a log that holds what was signed: %v", err)
	}
	journaltest.Cut(t, c, "trading", last.Offset)
	var diverged *record.DivergedError
	if _, err := own("four"); !errors.As(err, &diverged) || !diverged.Have.Equal(last) {
		t.Errorf("a log without the last signed record: %v", err)
	}
	if err := projections.Forget(t.Context(), pool, "trading"); err != nil {
		t.Fatal(err)
	}
	if _, err := own("five"); err != nil {
		t.Errorf("after it was forgotten: %v", err)
	}
}

// TestSignedTreesAreNotCompared: they are in no journal, so an audit must not expect them in rows that it computes.
func TestSignedTreesAreNotCompared(t *testing.T) {
	pool, computed := projectiontest.Database(t), projectiontest.Database(t)
	heads := projections.SignedTrees{Pool: pool}
	if err := heads.Advance(t.Context(), origin, transparency.Head{}, head(t, grown(t, 0, 9), 9)); err != nil {
		t.Fatal(err)
	}
	tables := 0
	err := pgx.BeginFunc(t.Context(), pool, func(live pgx.Tx) error {
		return pgx.BeginFunc(t.Context(), computed, func(made pgx.Tx) error {
			differences, err := projections.Differences(t.Context(), live, made, nil, 10, func(string) { tables++ })
			if len(differences) > 0 || tables < 10 {
				t.Errorf("of %d tables: %v", tables, differences)
			}
			return err
		})
	})
	if err != nil {
		t.Error(err)
	}
}

// TestSignedTreesOfALostMachine: a server that no longer answers and ends no connection does not hold a follower.
func TestSignedTreesOfALostMachine(t *testing.T) {
	direct := projectiontest.MigratedURL(t)
	proxy, proxied := projectiontest.NewProxy(t, direct)
	var all []projections.SignedTrees
	for range 3 {
		heads := projections.SignedTrees{Pool: projectiontest.Open(t, proxied+"&connect_timeout=5")} // as a node
		if _, err := heads.Head(t.Context(), origin); err != nil {
			t.Fatal(err)
		}
		all = append(all, heads)
	}
	proxy.Mute()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var calls sync.WaitGroup
	for i, call := range []func() error{
		func() error { _, err := all[0].Head(ctx, origin); return err },
		func() error { _, err := all[1].Published(ctx, origin); return err },
		func() error { return all[2].Publish(ctx, origin, transparency.Checkpoint{}) },
	} {
		calls.Go(func() {
			if err := call(); err == nil || ctx.Err() != nil {
				t.Errorf("call %d: %v", i, err)
			}
		})
	}
	calls.Wait()
}
