package transparency

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/perpetua-exchange/perpetua/streams/commitment"
)

// EntrySize is the size of an entry in bytes.
const EntrySize = 1 + sha256.Size

// entryKind is the first byte of an entry that holds a record root.
const entryKind = 0x01

// Entry returns the entry of a record.
func Entry(root commitment.Hash) (entry [EntrySize]byte) {
	entry[0] = entryKind
	copy(entry[1:], root[:])
	return entry
}

// leafHash returns the leaf hash of an entry. It is tlog.RecordHash without allocating.
func leafHash(entry *[EntrySize]byte) tlog.Hash {
	var data [1 + EntrySize]byte // 0x00, the prefix of leaves, and the entry
	copy(data[1:], entry[:])
	return sha256.Sum256(data[:])
}

// Tree is the right edge of a log's Merkle tree, to which leaves are appended. The zero Tree is empty. A Tree is not safe for
// concurrent use.
type Tree struct {
	size    int64
	levels  [][]tlog.Hash // the hashes of the partial tile of each level
	entries []byte        // the partial entry bundle
	scratch []tlog.Hash
}

// Size returns the number of leaves.
func (t *Tree) Size() int64 { return t.size }

// Append appends the leaf of a record root, and calls full with each tile and bundle that it completes. Their data is the
// callee's.
func (t *Tree) Append(root commitment.Hash, full func(Tile)) {
	entry := Entry(root)
	t.entries = append(binary.BigEndian.AppendUint16(t.entries, EntrySize), entry[:]...)
	t.size++
	if t.size%width == 0 {
		full(Tile{tlog.Tile{H: height, L: bundles, N: t.size/width - 1, W: width}, t.entries})
		t.entries = make([]byte, 0, len(t.entries))
	}
	hash := leafHash(&entry)
	for level := 0; ; level++ {
		if level == len(t.levels) {
			t.levels = append(t.levels, make([]tlog.Hash, 0, width))
		}
		t.levels[level] = append(t.levels[level], hash)
		hashes := t.levels[level]
		if len(hashes) < width {
			return
		}
		full(Tile{tlog.Tile{H: height, L: level, N: t.size>>(height*(level+1)) - 1, W: width}, concatenated(hashes)})
		hash = commitment.RootOf(hashes)
		t.levels[level] = hashes[:0]
	}
}

// Partial returns the partial tiles and the partial bundle of the tree.
func (t *Tree) Partial() (tiles []Tile) {
	at := func(level, w int) tlog.Tile {
		return tlog.Tile{H: height, L: level, N: t.size >> (height * (max(level, 0) + 1)), W: w}
	}
	if n := len(t.entries) / (2 + EntrySize); n > 0 {
		tiles = append(tiles, Tile{at(bundles, n), append([]byte(nil), t.entries...)})
	}
	for level, hashes := range t.levels {
		if len(hashes) > 0 {
			tiles = append(tiles, Tile{at(level, len(hashes)), concatenated(hashes)})
		}
	}
	return tiles
}

// Root returns the root of the tree: for an empty one, the hash of nothing.
func (t *Tree) Root() tlog.Hash {
	if t.size == 0 {
		return sha256.Sum256(nil)
	}
	// The leaves right of the last hash of a level form one more subtree, which is smaller than those of the level. It is the
	// last element of that level.
	var right []tlog.Hash
	for _, hashes := range t.levels {
		t.scratch = append(append(t.scratch[:0], hashes...), right...)
		if len(t.scratch) > 0 {
			right = []tlog.Hash{commitment.RootOf(t.scratch)}
		}
	}
	return right[0]
}

func concatenated(hashes []tlog.Hash) []byte {
	data := make([]byte, 0, len(hashes)*tlog.HashSize)
	for i := range hashes {
		data = append(data, hashes[i][:]...)
	}
	return data
}

// Restore returns the tree of a size from its partial tiles, which read returns. Bundle and leaves are checked against each
// other. The caller compares the root, which depends on all hashes.
func Restore(size int64, read func(tlog.Tile) ([]byte, error)) (*Tree, error) {
	t := &Tree{size: size}
	for level := 0; size>>(height*level) > 0; level++ {
		t.levels = append(t.levels, make([]tlog.Hash, 0, width))
		w := int(size >> (height * level) % width)
		if w == 0 {
			continue
		}
		at := tlog.Tile{H: height, L: level, N: size >> (height * (level + 1)), W: w}
		data, err := read(at)
		if err != nil {
			return nil, err
		}
		if len(data) != w*tlog.HashSize {
			return nil, fmt.Errorf("%w: %s has %d bytes", ErrDamaged, TilePath(at), len(data))
		}
		for ; len(data) > 0; data = data[tlog.HashSize:] {
			t.levels[level] = append(t.levels[level], tlog.Hash(data[:tlog.HashSize]))
		}
	}
	if w := int(size % width); w > 0 {
		at := tlog.Tile{H: height, L: bundles, N: size / width, W: w}
		data, err := read(at)
		if err != nil {
			return nil, err
		}
		if err := checkBundle(data, t.levels[0]); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrDamaged, TilePath(at), err)
		}
		t.entries = append(t.entries, data...)
	}
	return t, nil
}

// checkBundle returns an error unless a bundle holds exactly the entries with these leaf hashes.
func checkBundle(data []byte, leaves []tlog.Hash) error {
	for i, leaf := range leaves {
		if len(data) < 2+EntrySize || binary.BigEndian.Uint16(data) != EntrySize {
			return fmt.Errorf("entry %d is cut off or has another length", i)
		}
		if leafHash((*[EntrySize]byte)(data[2:2+EntrySize])) != leaf {
			return fmt.Errorf("entry %d is not that of the leaf", i)
		}
		data = data[2+EntrySize:]
	}
	if len(data) > 0 {
		return fmt.Errorf("%d bytes follow the last entry", len(data))
	}
	return nil
}
