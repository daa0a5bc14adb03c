package transparency

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"golang.org/x/mod/sumdb/tlog"
	"pgregory.net/rapid"

	"github.com/perpetua-exchange/perpetua/streams/commitment"
)

// rootAt returns the record root of a sequence of the tests' logs.
func rootAt(seed uint64, sequence int64) commitment.Hash {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], seed)
	binary.BigEndian.PutUint64(b[8:], uint64(sequence))
	return sha256.Sum256(b[:])
}

// reference is a log that package tlog builds, with every hash stored.
type reference struct {
	seed   uint64
	size   int64
	hashes []tlog.Hash
}

func (r *reference) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	out := make([]tlog.Hash, len(indexes))
	for i, at := range indexes {
		out[i] = r.hashes[at]
	}
	return out, nil
}

func (r *reference) grow(t *rapid.T, size int64) {
	for ; r.size < size; r.size++ {
		entry := Entry(rootAt(r.seed, r.size))
		more, err := tlog.StoredHashes(r.size, entry[:], r)
		if err != nil {
			t.Fatal(err)
		}
		r.hashes = append(r.hashes, more...)
	}
}

// tile returns the content of a tile or bundle.
func (r *reference) tile(t *rapid.T, at tlog.Tile) []byte {
	if at.L == bundles {
		var bundle []byte
		for i := range int64(at.W) {
			entry := Entry(rootAt(r.seed, at.N*width+i))
			bundle = append(append(bundle, 0, EntrySize), entry[:]...)
		}
		return bundle
	}
	data, err := tlog.ReadTileData(at, r)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestTree holds trees of random sizes, restored at random points, against those of package tlog: roots, full and partial
// tiles, and bundles.
func TestTree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &reference{seed: rapid.Uint64().Draw(t, "seed")}
		tree, stored := new(Tree), make(map[string][]byte)
		keep := func(tile Tile) {
			if path := TilePath(tile.Tile); !slices.Equal(tile.Data, r.tile(t, tile.Tile)) {
				t.Fatalf("%s differs at size %d", path, tree.Size())
			} else {
				stored[path] = tile.Data
			}
		}
		for range rapid.IntRange(1, 4).Draw(t, "steps") {
			size := tree.Size() + rapid.OneOf(rapid.Int64Range(0, 3), rapid.Int64Range(250, 260), rapid.Int64Range(0, 3000)).Draw(t, "more")
			r.grow(t, size)
			for tree.Size() < size {
				tree.Append(rootAt(r.seed, tree.Size()), keep)
			}
			for _, partial := range tree.Partial() {
				keep(partial)
			}
			checkTree(t, r, tree, stored)
			restored, err := Restore(size, func(at tlog.Tile) ([]byte, error) { return stored[TilePath(at)], nil })
			if err != nil {
				t.Fatal(err)
			}
			if restored.Root() != tree.Root() {
				t.Fatalf("restored at size %d, the root is another", size)
			}
			tree = restored
		}
	})
}

// checkTree compares the root, and the names of the stored tiles with those that the specification wants.
func checkTree(t *rapid.T, r *reference, tree *Tree, stored map[string][]byte) {
	if tree.Size() == 0 {
		return
	}
	want, err := tlog.TreeHash(tree.Size(), r)
	if err != nil {
		t.Fatal(err)
	}
	if tree.Root() != want {
		t.Fatalf("at size %d the root is %v, not %v", tree.Size(), tree.Root(), want)
	}
	for _, at := range tlog.NewTiles(height, 0, tree.Size()) {
		if stored[TilePath(at)] == nil {
			t.Fatalf("%s is missing at size %d", TilePath(at), tree.Size())
		}
		if w := widthAt(at.L, at.N, tree.Size()); w != at.W {
			t.Fatalf("%s has width %d", TilePath(at), w)
		}
		if at.L == 0 {
			at.L = bundles
			if stored[TilePath(at)] == nil {
				t.Fatalf("%s is missing at size %d", TilePath(at), tree.Size())
			}
		}
	}
	if widthAt(0, tree.Size()/width+1, tree.Size()) != 0 || widthAt(63, 1, tree.Size()) != 0 {
		t.Fatal("a tile beyond the tree has a width")
	}
}

// TestTileOf70000 is the example of the specification.
func TestTileOf70000(t *testing.T) {
	var tree Tree
	count := make(map[[2]int]int) // by level and width
	for i := range int64(70_000) {
		tree.Append(rootAt(1, i), func(tile Tile) { count[[2]int{tile.L, tile.W}]++ })
	}
	for _, tile := range tree.Partial() {
		count[[2]int{tile.L, tile.W}]++
	}
	want := map[[2]int]int{{0, 256}: 273, {0, 112}: 1, {1, 256}: 1, {1, 17}: 1, {2, 1}: 1, {bundles, 256}: 273, {bundles, 112}: 1}
	for k, n := range want {
		if count[k] != n {
			t.Errorf("level %d has %d tiles of width %d, not %d", k[0], count[k], k[1], n)
		}
	}
	if len(count) != len(want) {
		t.Errorf("%v", count)
	}
}

func TestDamagedTilesAreNotRestored(t *testing.T) {
	var tree Tree
	const size = 600
	stored := make(map[string][]byte)
	for i := range int64(size) {
		tree.Append(rootAt(1, i), func(tile Tile) { stored[TilePath(tile.Tile)] = tile.Data })
	}
	for _, tile := range tree.Partial() {
		stored[TilePath(tile.Tile)] = tile.Data
	}
	random := rand.New(rand.NewPCG(1, 2))
	for _, tile := range tree.Partial() {
		for _, data := range [][]byte{nil, tile.Data[1:], append(slices.Clone(tile.Data), 0), flipped(tile.Data, random)} {
			restored, err := Restore(size, func(at tlog.Tile) ([]byte, error) {
				if TilePath(at) == TilePath(tile.Tile) {
					return data, nil
				}
				return stored[TilePath(at)], nil
			})
			if err == nil && restored.Root() == tree.Root() {
				t.Errorf("%s is restored from %d other bytes", TilePath(tile.Tile), len(data))
			}
		}
	}
}

func flipped(data []byte, random *rand.Rand) []byte {
	out := slices.Clone(data)
	out[random.IntN(len(out))] ^= 1 << random.IntN(8)
	return out
}
