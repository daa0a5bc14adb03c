package transparency

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/perpetua-exchange/perpetua/streams/commitment"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

func always() bool { return true }

// leafTile returns a full tile of level 0.
func leafTile(index int64) tlog.Tile { return tlog.Tile{H: height, L: 0, N: index, W: width} }

// TestMarkerAheadOfTheTruth deletes leaves that the marker says are deleted: it is damaged, or another node stored them again.
func TestMarkerAheadOfTheTruth(t *testing.T) {
	tiles, _ := treeTiles()
	for text, gone := range map[string][]int64{
		strconv.Itoa(span):          nil,
		strconv.Itoa(2 * span):      {0},           // of the first span, and another node has begun to store it
		strconv.Itoa(2*span) + "\n": {2*width - 1}, // of the second one
		strconv.Itoa(3 * span):      {0, 3*width - 1},
		strconv.Itoa(1000 * span):   {0},
	} {
		s, bucket := storeTiles(t, tiles, &testArchive{1, oldTree, -1, nil, 0})
		if err := bucket.WriteAll(t.Context(), testOrigin.folder()+storedFromKey, []byte(text), nil); err != nil {
			t.Fatal(err)
		}
		for _, index := range gone {
			if err := bucket.Delete(t.Context(), testOrigin.folder()+TilePath(leafTile(index))); err != nil {
				t.Fatal(err)
			}
		}
		if from, err := s.Thin(t.Context(), time.Unix(oldTree, 0), oldTree, always); err != nil || from != 2*span {
			t.Errorf("%q: the leaves are stored from %d on: %v", text, from, err)
		}
		for _, index := range []int64{0, 1, width - 1, width, 2*width - 1} {
			if isStored(t, bucket, leafTile(index)) {
				t.Errorf("%q: tile %d is left", text, index)
			}
		}
	}
}

// TestDamagedMarker takes a marker that is not a number of spans as none.
func TestDamagedMarker(t *testing.T) {
	s, bucket := storeTiles(t, nil, nil)
	for text, want := range map[string]int64{"": 0, "half": 0, strconv.Itoa(-span): 0, strconv.Itoa(span + 1): 0, "99999999999999999999999999999": 0, strconv.Itoa(7*span) + "\n": 7 * span} {
		if err := bucket.WriteAll(t.Context(), testOrigin.folder()+storedFromKey, []byte(text), nil); err != nil {
			t.Fatal(err)
		}
		if n, err := s.marked(t.Context()); err != nil || n != want {
			t.Errorf("%q: %d, %v", text, n, err)
		}
	}
}

// TestThinEndsWithTheLead deletes no leaves once another node extends the tree.
func TestThinEndsWithTheLead(t *testing.T) {
	tiles, _ := treeTiles()
	s, bucket := storeTiles(t, tiles, &testArchive{1, oldTree, -1, nil, 0})
	asked := 0
	from, err := s.Thin(t.Context(), time.Unix(oldTree, 0), oldTree, func() bool { asked++; return asked == 1 })
	if err != nil || from != span || !isStored(t, bucket, leafTile(width)) {
		t.Errorf("the leaves are stored from %d on: %v", from, err)
	}
	f := NewFollower(Config{Origin: testOrigin, Store: s})
	if err := f.Thin(t.Context(), time.Unix(oldTree, 0)); err != nil || f.Status().StoredFrom != span || !isStored(t, bucket, leafTile(width)) {
		t.Errorf("a node that stands by deletes leaves, or has the marker %d: %v", f.Status().StoredFrom, err)
	}
}

// TestThinWhileTheTreeIsBuiltAgain has a node delete leaves, and mark that, while another one stores them again.
func TestThinWhileTheTreeIsBuiltAgain(t *testing.T) {
	const size = 2*span + 300
	for _, c := range []struct {
		at   int64 // the record before which the first node marks
		gone bool  // it has also deleted the first tile
	}{{size - 10, true}, {size + 10, false}} {
		log := newLog(1, size)
		v := newVenue(t, log, &memoryHeads{})
		v.store = v.store.WithArchive(&testArchive{1, size, -1, nil, 0})
		run := func(root func(context.Context, record.Entry) (commitment.Hash, error)) *Follower {
			t.Helper()
			f := v.follower(nil)
			f.cfg.Every, f.cfg.Root = 100*time.Millisecond, root
			if err := v.runUntil(f, log.size); err != nil {
				t.Fatal(err)
			}
			f.update(func(s *Status) { s.Size = s.Signed }) // the run ended
			return f
		}
		run(log.root)
		if err := v.bucket.Delete(t.Context(), testOrigin.folder()+TilePath(tlog.Tile{H: height, L: 1, N: 2, W: 1})); err != nil {
			t.Fatal(err)
		}
		log.grow(100)
		f := run(func(ctx context.Context, e record.Entry) (commitment.Hash, error) {
			if e.Position.Sequence == c.at {
				if err := v.bucket.WriteAll(ctx, testOrigin.folder()+storedFromKey, []byte(strconv.Itoa(span)), nil); err != nil {
					t.Error(err)
				}
				if c.gone {
					if err := v.bucket.Delete(ctx, testOrigin.folder()+TilePath(leafTile(0))); err != nil {
						t.Error(err)
					}
					if err := v.bucket.Delete(ctx, testOrigin.folder()+TilePath(leafTile(width-1))); err != nil {
						t.Error(err)
					}
				}
			}
			return log.root(ctx, e)
		})
		if err := f.Thin(t.Context(), time.Unix(1<<40, 0)); err != nil || f.Status().StoredFrom != span || isStored(t, v.bucket, leafTile(7)) {
			t.Errorf("%+v: the leaves are stored from %d on, tile 7 is: %v", c, f.Status().StoredFrom, err)
		}
	}
}

// TestLostTileOfThePublishedTree is an error of the log, and not one of the client's path.
func TestLostTileOfThePublishedTree(t *testing.T) {
	tiles, _ := treeTiles()
	archive := &testArchive{1, 0, -1, nil, 0}
	s, bucket := storeTiles(t, tiles, archive)
	for _, index := range []int64{1, 3 * width} {
		if err := bucket.Delete(t.Context(), testOrigin.folder()+TilePath(leafTile(index))); err != nil {
			t.Fatal(err)
		}
	}
	heads := &memoryHeads{published: Checkpoint{Size: oldTree}}
	r := NewReader(testOrigin, s, heads, heads)
	for _, c := range []struct {
		index int64
		w     int
		none  bool // the tree has no such tile
	}{{1, width, false}, {1, 5, false}, {3 * width, width, false}, {3 * width, 9, false}, {3*width + 1, 44, false}, {3*width + 1, 5, true}, {3*width + 1, 45, true}} {
		_, err := r.Tile(t.Context(), tlog.Tile{H: height, L: 0, N: c.index, W: c.w})
		if stored := c.index == 3*width+1 && c.w == 44; errors.Is(err, fs.ErrNotExist) != c.none || (err == nil) != stored {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestMendedArchive returns leaves that an archive had wrong before.
func TestMendedArchive(t *testing.T) {
	tiles, _ := treeTiles()
	archive := &testArchive{1, oldTree, 256, nil, 0}
	s, bucket := storeTiles(t, tiles, archive)
	if err := bucket.Delete(t.Context(), testOrigin.folder()+TilePath(leafTile(1))); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read(t.Context(), leafTile(1)); !errors.Is(err, ErrDamaged) {
		t.Fatal(err)
	}
	archive.other = -1
	if _, err := s.Read(t.Context(), leafTile(1)); err != nil {
		t.Error(err)
	}
}

// slowArchive is a testArchive that answers one question after another, when it is let.
type slowArchive struct {
	testArchive
	asked chan int64
	let   chan struct{}
}

func (a *slowArchive) Roots(ctx context.Context, from, to int64) ([]commitment.Hash, error) {
	a.asked <- from / (together * width)
	<-a.let
	return a.testArchive.Roots(ctx, from, to)
}

// TestProofsPassGuests derives the leaves of a proof before those that guests have asked for earlier.
func TestProofsPassGuests(t *testing.T) {
	tiles, _ := treeTiles()
	synctest.Test(t, func(t *testing.T) {
		archive := &slowArchive{testArchive{1, oldTree, -1, nil, 0}, make(chan int64, 1), make(chan struct{})}
		s, bucket := storeTiles(t, tiles, archive)
		heads := &memoryHeads{published: Checkpoint{Size: oldTree}}
		r := NewReader(testOrigin, s, heads, heads)
		read := func(n int64, of func(context.Context, tlog.Tile) ([]byte, error)) {
			if err := bucket.Delete(t.Context(), testOrigin.folder()+TilePath(leafTile(n*together))); err != nil {
				t.Error(err)
			}
			go func() {
				if _, err := of(t.Context(), leafTile(n*together)); err != nil {
					t.Errorf("read %d: %v", n, err)
				}
			}()
			synctest.Wait()
		}
		read(0, r.Tile)
		read(1, r.Tile)
		read(2, r.Tile)
		read(3, s.Read)
		var order []int64
		for range 4 {
			order = append(order, <-archive.asked)
			archive.let <- struct{}{}
			synctest.Wait()
		}
		if order[0] != 0 || order[1] != 3 || !slices.Contains(order, 1) || !slices.Contains(order, 2) {
			t.Errorf("the archive is read in the order %v", order)
		}
	})
}

// TestManyGuests refuses those who would be too many to wait.
func TestManyGuests(t *testing.T) {
	tiles, _ := treeTiles()
	synctest.Test(t, func(t *testing.T) {
		archive := &slowArchive{testArchive{1, oldTree, -1, nil, 0}, make(chan int64, 1), make(chan struct{})}
		s, bucket := storeTiles(t, tiles, archive)
		if err := bucket.Delete(t.Context(), testOrigin.folder()+TilePath(leafTile(1))); err != nil {
			t.Fatal(err)
		}
		heads := &memoryHeads{published: Checkpoint{Size: oldTree}}
		r := NewReader(testOrigin, s, heads, heads)
		ended := make(chan error, 2*maxGuests)
		for range cap(ended) {
			go func() {
				_, err := r.Tile(t.Context(), leafTile(1))
				ended <- err
			}()
		}
		for range cap(ended) - maxGuests {
			if err := <-ended; !errors.Is(err, errBusy) {
				t.Error(err)
			}
		}
		<-archive.asked
		archive.let <- struct{}{}
		for range maxGuests {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		if err := bucket.Delete(t.Context(), testOrigin.folder()+TilePath(leafTile(together))); err != nil {
			t.Fatal(err)
		}
		close(archive.let)
		if _, err := r.Tile(t.Context(), leafTile(together)); err != nil {
			t.Error("after they have left:", err)
		}
	})
}
