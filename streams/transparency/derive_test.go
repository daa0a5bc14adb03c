package transparency

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"testing"
	"time"

	gocloud "gocloud.dev/blob"
	"gocloud.dev/blob/memblob"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/commitment"
)

// testArchive has the records of a testLog before a sequence. The time of a record is its sequence, in seconds.
type testArchive struct {
	seed  uint64
	size  int64
	other int64 // the record that differs from the log's; none if negative
	err   error
	asked int
}

func (a *testArchive) Roots(_ context.Context, from, to int64) (roots []commitment.Hash, err error) {
	a.asked++
	if a.err != nil {
		return nil, a.err
	}
	if to > a.size {
		return nil, fmt.Errorf("the archive ends before %d: %w", to, fs.ErrNotExist)
	}
	for n := from; n < to; n++ {
		root := rootAt(a.seed, n)
		if n == a.other {
			root[0]++
		}
		roots = append(roots, root)
	}
	return roots, nil
}

func (a *testArchive) Before(_ context.Context, t time.Time) (int64, error) {
	return min(a.size, t.Unix()), a.err
}

const oldTree = 3*span + 300 // records

// treeTiles returns the tiles of a tree with oldTree records, and the roots of some of the trees before it, by size.
var treeTiles = sync.OnceValues(func() (tiles []Tile, roots map[int64]tlog.Hash) {
	var tree Tree
	roots = make(map[int64]tlog.Hash)
	for n := range int64(oldTree) {
		tree.Append(rootAt(1, n), func(t Tile) { tiles = append(tiles, t) })
		if slices.Contains(provenSizes, n+1) {
			roots[n+1] = tree.Root()
		}
	}
	return append(tiles, tree.Partial()...), roots
})

// provenSizes are the trees that TestProofsOverThinnedTiles looks at.
var provenSizes = []int64{1, 2, 256, 257, span, span + 1, 2 * span, 2*span + 1, oldTree}

// storeTiles returns a store with tiles and an archive.
func storeTiles(t testing.TB, tiles []Tile, a Archive) (*Store, *gocloud.Bucket) {
	t.Helper()
	bucket := memblob.OpenBucket(nil)
	t.Cleanup(func() { bucket.Close() })
	s := NewStore(blob.NewStore(bucket), testOrigin)
	if err := s.Write(t.Context(), tiles); err != nil {
		t.Fatal(err)
	}
	return s.WithArchive(a), bucket
}

// isStored reports whether a bucket has a tile.
func isStored(t testing.TB, bucket *gocloud.Bucket, tile tlog.Tile) bool {
	t.Helper()
	ok, err := bucket.Exists(t.Context(), testOrigin.folder()+TilePath(tile))
	if err != nil {
		t.Fatal(err)
	}
	return ok
}

// TestThin deletes the leaves of records by their age, and reads each tile as it was.
func TestThin(t *testing.T) {
	tiles, _ := treeTiles()
	archive, deleted := &testArchive{1, 0, -1, nil, 0}, 0
	s, bucket := storeTiles(t, tiles, archive)
	for _, c := range []struct {
		archived, older, from int64
		asked                 int // how often the archive is read in all
	}{
		{0, oldTree, 0, 0},
		{oldTree, 0, 0, 0},
		{oldTree, span - 1, 0, 0},
		{span - 1, oldTree, 0, 0},
		{span, oldTree, span, 1},
		{oldTree, span, span, 1},
		{oldTree, 2*span - 1, span, 1},
		{oldTree, 2 * span, 2 * span, 2},
		{oldTree, oldTree, 2 * span, 2}, // the leaves of the last span stay
	} {
		archive.size, archive.asked = c.archived, 0
		if from, err := s.Thin(t.Context(), time.Unix(c.older, 0), oldTree, always); err != nil || from != c.from {
			t.Fatalf("%+v: the leaves are stored from %d on: %v", c, from, err)
		}
		if deleted += archive.asked; deleted != c.asked {
			t.Errorf("%+v: the archive was read %d times, not %d", c, deleted, c.asked)
		}
		for _, tile := range tiles {
			gone := tile.L <= 0 && tile.N < c.from/width
			if stored := isStored(t, bucket, tile.Tile); stored == gone {
				t.Fatalf("%+v: %s is stored: %v", c, TilePath(tile.Tile), stored)
			}
			if !gone || tile.N%16 > 0 || archive.size < oldTree {
				continue
			}
			for _, w := range []int{width, 1, 100} {
				part := tile.Tile
				part.W = w
				if data, err := s.Read(t.Context(), part); err != nil || !slices.Equal(data, tile.Data[:w*unit(tile.L)]) {
					t.Fatalf("%+v: %s differs: %v", c, TilePath(part), err)
				}
			}
		}
	}
}

// TestProofsOverThinnedTiles proves records, and that trees extend each other, where leaves are not stored.
func TestProofsOverThinnedTiles(t *testing.T) {
	tiles, roots := treeTiles()
	s, _ := storeTiles(t, tiles, &testArchive{1, oldTree, -1, nil, 0})
	if _, err := s.Thin(t.Context(), time.Unix(oldTree, 0), oldTree, always); err != nil {
		t.Fatal(err)
	}
	top := tlog.Tree{N: oldTree, Hash: roots[oldTree]}
	hashes := tlog.TileHashReader(top, &tileReader{ctx: t.Context(), store: s})
	for _, size := range provenSizes {
		path, err := tlog.ProveRecord(top.N, size-1, hashes)
		if err != nil {
			t.Fatalf("record %d: %v", size-1, err)
		}
		entry := Entry(rootAt(1, size-1))
		if err := tlog.CheckRecord(path, top.N, top.Hash, size-1, tlog.RecordHash(entry[:])); err != nil {
			t.Errorf("record %d: %v", size-1, err)
		}
		extension, err := tlog.ProveTree(top.N, size, hashes)
		if err != nil {
			t.Fatalf("the tree of size %d: %v", size, err)
		}
		if err := tlog.CheckTree(extension, top.N, top.Hash, size, roots[size]); err != nil {
			t.Errorf("the tree of size %d: %v", size, err)
		}
	}
}

// TestThinNeedsTheArchive deletes nothing that the archive could not return.
func TestThinNeedsTheArchive(t *testing.T) {
	tiles, _ := treeTiles()
	away := errors.New("the bucket does not answer")
	for _, c := range []struct {
		archive testArchive
		want    error
	}{
		{testArchive{1, oldTree, span + 5, nil, 0}, ErrDamaged},
		{testArchive{1, oldTree, 2*span - 1, nil, 0}, ErrDamaged},
		{testArchive{2, oldTree, -1, nil, 0}, ErrDamaged},
		{testArchive{1, oldTree, -1, away, 0}, away},
	} {
		s, bucket := storeTiles(t, tiles, &c.archive)
		from, err := s.Thin(t.Context(), time.Unix(oldTree, 0), oldTree, always)
		if !errors.Is(err, c.want) || from > span {
			t.Errorf("%+v: from %d on: %v", c.archive, from, err)
		}
		for _, tile := range tiles {
			if stored := isStored(t, bucket, tile.Tile); !stored && tile.N >= from/width {
				t.Fatalf("%+v: %s is deleted", c.archive, TilePath(tile.Tile))
			}
		}
	}
}

// TestReadOfWhatIsLost returns no leaves that the archive does not prove.
func TestReadOfWhatIsLost(t *testing.T) {
	tiles, _ := treeTiles()
	for _, c := range []struct {
		archive testArchive
		index   int64
		want    error
	}{
		{testArchive{1, oldTree, 256, nil, 0}, 1, ErrDamaged},
		{testArchive{1, oldTree, 256, nil, 0}, 2, nil},
		{testArchive{1, 511, -1, nil, 0}, 1, fs.ErrNotExist},
		{testArchive{1, oldTree, -1, nil, 0}, 3 * width, fs.ErrNotExist}, // no full tile of level 1 covers it
	} {
		s, bucket := storeTiles(t, tiles, &c.archive)
		for _, level := range []int{0, bundles} {
			tile := tlog.Tile{H: height, L: level, N: c.index, W: width}
			if err := bucket.Delete(t.Context(), testOrigin.folder()+TilePath(tile)); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Read(t.Context(), tile); !errors.Is(err, c.want) {
				t.Errorf("%+v: %s: %v", c.archive, TilePath(tile), err)
			}
		}
	}
}

// TestThinIsKilled ends the process before each of some changes of the bucket. The next one ends as if nothing had happened.
func TestThinIsKilled(t *testing.T) {
	tiles, _ := treeTiles()
	archive := &testArchive{1, oldTree, -1, nil, 0}
	for _, left := range []int{0, 300, 2 * width, 2*width + 1, 4*width + 1} {
		s, bucket := storeTiles(t, tiles, archive)
		dying := &Store{blobs: killed{blob.NewStore(bucket), &killer{end: func() {}, left: left}}, folder: testOrigin.folder()}
		if _, err := dying.WithArchive(archive).Thin(t.Context(), time.Unix(oldTree, 0), oldTree, always); !errors.Is(err, errKilled) {
			t.Fatalf("after %d changes: %v", left, err)
		}
		if from, err := s.Thin(t.Context(), time.Unix(oldTree, 0), oldTree, always); err != nil || from != 2*span {
			t.Fatalf("after %d changes, the leaves are stored from %d on: %v", left, from, err)
		}
		for _, tile := range tiles {
			if stored := isStored(t, bucket, tile.Tile); stored == (tile.L <= 0 && tile.N < 2*width) {
				t.Fatalf("after %d changes, %s is stored: %v", left, TilePath(tile.Tile), stored)
			}
		}
	}
}

// TestThinnedTree continues a tree whose old leaves are not stored, builds it again after damage, and then deletes them again.
func TestThinnedTree(t *testing.T) {
	heads := &memoryHeads{}
	log := newLog(1, 2*span+300)
	v := newVenue(t, log, heads)
	v.store = v.store.WithArchive(&testArchive{1, 2*span + 300, -1, nil, 0})
	run := func(size int64) *Follower {
		t.Helper()
		f := v.follower(nil)
		f.cfg.Every = 100 * time.Millisecond
		if err := v.runUntil(f, size); err != nil {
			t.Fatal(err)
		}
		return f
	}
	thin := func(f *Follower) {
		t.Helper()
		s := f.Status() // the run ended
		f.update(func(s *Status) { s.Size = s.Signed })
		if err := f.Thin(t.Context(), time.Unix(1<<40, 0)); err != nil || f.Status().StoredFrom != span {
			t.Fatalf("%+v: the leaves are stored from %d on: %v", s, f.Status().StoredFrom, err)
		}
	}
	leaf := tlog.Tile{H: height, L: 0, N: 7, W: width}
	f := run(log.size)
	if err := f.Thin(t.Context(), time.Unix(1<<40, 0)); err != nil || !isStored(t, v.bucket, leaf) {
		t.Errorf("a node that does not extend the tree deletes leaves: %v", err)
	}
	thin(f)
	log.grow(100)
	run(log.size)
	if isStored(t, v.bucket, leaf) {
		t.Error("the leaves are stored again without need")
	}
	right := tlog.Tile{H: height, L: 1, N: 2, W: 1}
	if err := v.bucket.Delete(t.Context(), testOrigin.folder()+TilePath(right)); err != nil {
		t.Fatal(err)
	}
	log.grow(100)
	f = run(log.size)
	v.check(log.size)
	thin(f)
	if isStored(t, v.bucket, leaf) {
		t.Error("the leaves that were stored again are not deleted")
	}
}
