package transparency

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"
	"pgregory.net/rapid"

	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// TestFollower lets logs grow by random steps under followers that are started anew, and compares the files with those of a tree
// that is built at once.
func TestFollower(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		heads := new(memoryHeads)
		log := newLog(rapid.Uint64().Draw(r, "seed"), 0)
		v := newVenue(t, log, heads)
		var size int64
		for range rapid.IntRange(1, 4).Draw(r, "starts") {
			more := rapid.OneOf(rapid.Int64Range(1, 3), rapid.Int64Range(200, 300), rapid.Int64Range(1, 600)).Draw(r, "more")
			size += more
			log.grow(more)
			if err := v.runUntil(v.follower(nil), size); err != nil {
				r.Fatal(err)
			}
		}
		v.check(size)
		heads.history(t, log)
	})
}

// TestKilledAtAnyChange kills a follower after each change of the bucket and of the heads in turn. The next one continues, and
// leaves the same files.
func TestKilledAtAnyChange(t *testing.T) {
	for at := 0; ; at++ {
		heads, log := new(memoryHeads), newLog(7, 254)
		v := newVenue(t, log, heads)
		if err := v.runUntil(v.follower(nil), 254); err != nil {
			t.Fatal(err)
		}
		log.grow(266)
		k := &killer{left: at}
		if err := v.runUntil(v.follower(k), 520); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		log.grow(300)
		if err := v.runUntil(v.follower(nil), 820); err != nil {
			t.Fatalf("killed after %d changes: %v", at, err)
		}
		v.check(820)
		heads.history(t, log)
		if k.left > 0 || t.Failed() {
			t.Logf("%d changes", at)
			break
		}
	}
}

// TestTwoFollowers follow one log at the same time. Only one advances, and what is signed is the log's.
func TestTwoFollowers(t *testing.T) {
	heads, log := new(memoryHeads), newLog(3, 1)
	v := newVenue(t, log, heads)
	var all sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for range 3 {
		all.Go(func() { _ = v.follower(nil).Run(ctx) })
	}
	random := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		log.grow(1 + random.Int64N(20))
		for c := (Checkpoint{}); c.Size < log.size; c, _ = heads.Published(ctx, testOrigin) {
			runtime.Gosched()
		}
	}
	cancel()
	all.Wait()
	heads.history(t, log)
	if len(heads.all) < 200 {
		t.Errorf("%d heads", len(heads.all))
	}
}

// TestUnsignedWhileTheBucketFails: the age of the oldest unsigned record grows while no checkpoint can be written, although the
// follower begins again after each failure.
func TestUnsignedWhileTheBucketFails(t *testing.T) {
	heads, log := new(memoryHeads), newLog(9, 300)
	v := newVenue(t, log, heads)
	var failures atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	k := &killer{left: 1 << 30, end: func() { failures.Add(1) }}
	f := v.follower(k)
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	defer func() { stop(); <-done }()
	await := func(what string, is func(Status) bool) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); !is(f.Status()); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: %+v", what, f.Status())
			}
		}
	}
	await("before", func(s Status) bool { return s.Signed == 300 && s.Unsigned.IsZero() })
	k.allow(0)
	log.grow(10)
	await("unsigned", func(s Status) bool { return failures.Load() > 0 && !s.Unsigned.IsZero() })
	first := f.Status().Unsigned
	await("still unsigned", func(s Status) bool {
		if !s.Unsigned.Equal(first) {
			t.Fatalf("unsigned since %v, then since %v", first, s.Unsigned)
		}
		return failures.Load() > 5
	})
	k.allow(1 << 30)
	await("after", func(s Status) bool { return s.Signed == 310 && s.Unsigned.IsZero() })
}

// TestHeadsOfAnEarlierTime: a standby of Postgres that lacks the last heads takes over under a follower. The follower records its tree
// again, whether the log grows or not, and continues it.
func TestHeadsOfAnEarlierTime(t *testing.T) {
	for name, quiet := range map[string]bool{"quiet": true, "busy": false} {
		t.Run(name, func(t *testing.T) {
			heads, log := new(memoryHeads), newLog(13, 100)
			v := newVenue(t, log, heads)
			if err := v.runUntil(v.follower(nil), 100); err != nil {
				t.Fatal(err)
			}
			head, published := heads.head, heads.published
			log.grow(400)
			f := v.follower(nil)
			if !quiet {
				f.cfg.Standby = time.Hour
			}
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- f.Run(ctx) }()
			defer func() { stop(); <-done }()
			await := func(size int64) {
				t.Helper()
				for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
					c, err := heads.Published(ctx, testOrigin)
					if err == nil && c.Size == size && f.Status().Signed == size {
						return
					}
					if time.Now().After(deadline) {
						t.Fatalf("a tree of size %d is published instead of %d: %v", c.Size, size, err)
					}
				}
			}
			await(500)
			heads.mu.Lock()
			heads.head, heads.published, heads.all = head, published, heads.all[:1]
			heads.mu.Unlock()
			if quiet {
				await(500)
			}
			log.grow(100)
			await(600)
			v.check(600)
			heads.history(t, log)
		})
	}
}

// askedHeads counts how often the head is read.
type askedHeads struct {
	Heads
	asked atomic.Int64
}

func (h *askedHeads) Head(ctx context.Context, of Origin) (Head, error) {
	head, err := h.Heads.Head(ctx, of)
	h.asked.Add(1)
	return head, err
}

// TestLostHeadsOfAnotherNode: Postgres loses the heads of a node that was ahead of the one that records its tree again. Nothing smaller
// than the published tree is recorded.
func TestLostHeadsOfAnotherNode(t *testing.T) {
	heads, log, behind := new(memoryHeads), newLog(15, 100), newLog(15, 500)
	v := newVenue(t, log, heads)
	if err := v.runUntil(v.follower(nil), 100); err != nil {
		t.Fatal(err)
	}
	head, published := heads.head, heads.published
	log.grow(400)
	if err := v.runUntil(v.follower(nil), 500); err != nil {
		t.Fatal(err)
	}
	f, asked := v.follower(nil), &askedHeads{Heads: heads}
	f.cfg.Heads, f.cfg.From = asked, behind.from
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	defer func() { stop(); <-done }()
	await := func(what string, is func() bool) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: %+v", what, f.Status())
			}
		}
	}
	await("the follower leads", func() bool { return asked.asked.Load() > 1 })
	log.grow(100)
	if err := v.runUntil(v.follower(nil), 600); err != nil {
		t.Fatal(err)
	}
	heads.mu.Lock()
	heads.head, heads.published, heads.all = head, published, heads.all[:1]
	heads.mu.Unlock()
	before := asked.asked.Load()
	await("the follower looks for its head", func() bool { return asked.asked.Load() > before+2 })
	behind.grow(100)
	await("the tree is recorded", func() bool { return f.Status().Signed == 600 })
	v.check(600)
	if len(heads.all) != 2 {
		t.Errorf("heads of %d trees are recorded, instead of those of size 100 and 600", len(heads.all))
	}
}

// TestHeadOfAnotherHistory: the heads that a standby of Postgres has are of a tree that the follower's does not extend. Nothing more is
// signed.
func TestHeadOfAnotherHistory(t *testing.T) {
	heads, log := new(memoryHeads), newLog(17, 100)
	v := newVenue(t, log, heads)
	f := v.follower(nil)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	defer func() { stop(); <-done }()
	for deadline := time.Now().Add(time.Minute); !f.Status().Halted; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%+v", f.Status())
		}
		heads.mu.Lock()
		if heads.published.Size == 100 && heads.head.Size == 100 {
			heads.head = Head{Size: 50, Root: tlog.Hash(rootAt(18, 0)), Position: log.position(49)}
		}
		heads.mu.Unlock()
	}
	if heads.head.Size != 50 {
		t.Errorf("a tree of size %d is recorded", heads.head.Size)
	}
}

// TestDamagedTiles are found at the start and at the next proof. The tree is built again, byte by byte.
func TestDamagedTiles(t *testing.T) {
	for _, path := range []string{"tile/0/002.p/88", "tile/entries/002.p/88", "tile/1/000.p/2", "tile/0/001"} {
		for name, damage := range map[string]func([]byte) []byte{
			"gone": func([]byte) []byte { return nil }, "cut": func(b []byte) []byte { return b[:len(b)-1] },
			"flipped": func(b []byte) []byte { return flipped(b, rand.New(rand.NewPCG(1, 1))) }} {
			heads, log := new(memoryHeads), newLog(5, 600)
			v := newVenue(t, log, heads)
			if err := v.runUntil(v.follower(nil), 600); err != nil {
				t.Fatal(err)
			}
			key := testOrigin.folder() + path
			content, err := v.bucket.ReadAll(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			if b := damage(content); b == nil {
				err = v.bucket.Delete(t.Context(), key)
			} else {
				err = v.bucket.WriteAll(t.Context(), key, b, nil)
			}
			if err != nil {
				t.Fatal(err)
			}
			log.grow(40)
			if err := v.runUntil(v.follower(nil), 640); err != nil {
				t.Fatal(err)
			}
			if path == "tile/0/001" { // no proof needs it: fsck finds it
				continue
			}
			if t.Run(path+" "+name, func(t *testing.T) {
				v.t = t
				v.check(640)
				heads.history(t, log)
				if got, err := v.bucket.ReadAll(t.Context(), key); err != nil || string(got) != string(content) {
					t.Errorf("it is not repaired: %v", err)
				}
			}); t.Failed() {
				return
			}
		}
	}
}

// TestAnotherLogIsNotSigned: a log that does not hold what was signed is not signed, whatever the stores still know.
func TestAnotherLogIsNotSigned(t *testing.T) {
	for name, change := range map[string]func(v *venue, h *memoryHeads) error{
		"another log":       func(v *venue, h *memoryHeads) error { v.log.seed++; return errDamagedBucket(v) },
		"forgotten":         func(v *venue, h *memoryHeads) error { v.log.seed++; h.head.Forgotten = true; return nil },
		"Postgres lost":     func(v *venue, h *memoryHeads) error { v.log.seed++; h.head = Head{}; return nil },
		"two roots":         func(_ *venue, h *memoryHeads) error { h.head.Root[0]++; return nil },
		"checkpoint larger": func(v *venue, h *memoryHeads) error { v.log.seed++; h.head = h.all[0]; return nil },
	} {
		t.Run(name, func(t *testing.T) {
			heads, log := new(memoryHeads), newLog(11, 100)
			v := newVenue(t, log, heads)
			if err := v.runUntil(v.follower(nil), 100); err != nil {
				t.Fatal(err)
			}
			log.grow(400)
			if err := v.runUntil(v.follower(nil), 500); err != nil {
				t.Fatal(err)
			}
			if err := change(v, heads); err != nil {
				t.Fatal(err)
			}
			recorded, published := len(heads.all), string(heads.published.Note)
			log.grow(100)
			f := v.follower(nil)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- f.Run(ctx) }()
			for !f.Status().Halted {
				select {
				case err := <-done:
					t.Fatal(err)
				case <-time.After(time.Millisecond):
				}
			}
			cancel()
			<-done
			if len(heads.all) != recorded || string(heads.published.Note) != published {
				t.Error("something was signed")
			}
		})
	}
}

// errDamagedBucket removes a partial tile, so that the tree has to be built again.
func errDamagedBucket(v *venue) error {
	return v.bucket.Delete(v.t.Context(), testOrigin.folder()+"tile/0/001.p/244")
}

// TestAShorterLog has lost what was signed: the source says so, and the error is final.
func TestAShorterLog(t *testing.T) {
	v := newVenue(t, newLog(11, 100), new(memoryHeads))
	if err := v.runUntil(v.follower(nil), 100); err != nil {
		t.Fatal(err)
	}
	v.log.size = 50
	if err := v.follower(nil).Run(t.Context()); !record.Final(err) {
		t.Error(err)
	}
}

// TestForgottenAndTheSame continues: a log that was forgotten needlessly still extends what was signed.
func TestForgottenAndTheSame(t *testing.T) {
	heads := new(memoryHeads)
	v := newVenue(t, newLog(11, 500), heads)
	for _, lost := range []func(){func() {}, func() { heads.head.Forgotten = true }, func() { heads.head = Head{} }} {
		lost()
		v.log.grow(30)
		if err := v.runUntil(v.follower(nil), v.log.size); err != nil {
			t.Fatal(err)
		}
		v.check(v.log.size)
	}
}

func TestReader(t *testing.T) {
	heads := new(memoryHeads)
	v := newVenue(t, newLog(1, 600), heads)
	r := NewReader(testOrigin, v.store, heads, heads)
	if _, err := r.Checkpoint(t.Context()); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if err := v.runUntil(v.follower(nil), 600); err != nil {
		t.Fatal(err)
	}
	r = NewReader(testOrigin, v.store, heads, heads)
	for path, size := range map[string]int{"tile/0/000": 8192, "tile/0/001.p/7": 7 * 32, "tile/0/002.p/88": 88 * 32, "tile/1/000.p/2": 64,
		"tile/entries/001": 256 * 35, "tile/entries/002.p/88": 88 * 35, "tile/0/002.p/89": 0, "tile/0/002": 0, "tile/0/003.p/1": 0, "tile/2/000.p/1": 0} {
		at, err := ParseTilePath(path)
		if err != nil {
			t.Fatal(err)
		}
		data, err := r.Tile(t.Context(), at)
		if len(data) != size || (size == 0) != errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s has %d bytes: %v", path, len(data), err)
		}
	}
	var _ objects = blob.NewStore(v.bucket)
}

// TestReaderHas finds the roots of published records and no others, also at the ends of tiles. A tile that was changed shows nothing.
func TestReaderHas(t *testing.T) {
	ctx, heads := t.Context(), new(memoryHeads)
	v := newVenue(t, newLog(1, 600), heads)
	if _, err := NewReader(testOrigin, v.store, heads, heads).Has(ctx, 0, rootAt(1, 0)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("before the first checkpoint: %v", err)
	}
	if err := v.runUntil(v.follower(nil), 600); err != nil {
		t.Fatal(err)
	}
	r := NewReader(testOrigin, v.store, heads, heads)
	for _, sequence := range []int64{0, 255, 256, 300, 511, 512, 599} {
		for seed, want := range map[uint64]bool{1: true, 2: false} {
			if has, err := r.Has(ctx, sequence, rootAt(seed, sequence)); has != want || err != nil {
				t.Errorf("record %d, root of log %d: %v, %v", sequence, seed, has, err)
			}
		}
		if has, err := r.Has(ctx, sequence, rootAt(1, sequence+1)); has || err != nil {
			t.Errorf("record %d, the next root: %v, %v", sequence, has, err)
		}
	}
	if _, err := r.Has(ctx, 600, rootAt(1, 600)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after the checkpoint: %v", err)
	}
	tile := testOrigin.folder() + "tile/0/001"
	data, err := v.bucket.ReadAll(ctx, tile)
	if err != nil {
		t.Fatal(err)
	}
	data[5] ^= 1
	if err := v.bucket.WriteAll(ctx, tile, data, nil); err != nil {
		t.Fatal(err)
	}
	if has, err := r.Has(ctx, 300, rootAt(1, 300)); has || err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("from a tile that was changed: %v, %v", has, err)
	}
}
