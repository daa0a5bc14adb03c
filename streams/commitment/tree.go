package commitment

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/perpetua-exchange/perpetua/domain/disclose"
)

// Hash is a root, a salt, or a node of a path: 32 bytes, in text base64 with padding.
type Hash [32]byte

// MarshalText returns the hash in base64.
func (h Hash) MarshalText() ([]byte, error) {
	return base64.StdEncoding.AppendEncode(nil, h[:]), nil
}

// UnmarshalText reads what MarshalText returns.
func (h *Hash) UnmarshalText(text []byte) error {
	b, err := base64.StdEncoding.Strict().DecodeString(string(text))
	if err != nil || len(b) != len(h) || bytes.ContainsAny(text, "\r\n") { // which the decoder skips
		return fmt.Errorf("%q is no hash of 32 bytes in base64", text)
	}
	*h = Hash(b)
	return nil
}

// Tree commits to the units of one record. It is not safe for concurrent use.
type Tree struct {
	Sequence int64
	Units    []disclose.Unit
	key      *EpochKey
	record   [sha256.Size]byte // the SHA-256 of the record's value
	leaves   []tlog.Hash
	stored   storedHashes // of the leaves and of the nodes above them; empty before the first opening
}

// storedHashes are the hashes of a tree in the order of package tlog. They implement tlog.HashReader.
type storedHashes []tlog.Hash

// ReadHashes implements tlog.HashReader.
func (s storedHashes) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	out := make([]tlog.Hash, len(indexes))
	for i, at := range indexes {
		out[i] = s[at]
	}
	return out, nil
}

// store computes the stored hashes.
func (t *Tree) store() error {
	if len(t.stored) > 0 {
		return nil
	}
	stored := make(storedHashes, 0, tlog.StoredHashCount(int64(len(t.leaves))))
	for leaf, h := range t.leaves {
		hashes, err := tlog.StoredHashesForRecordHash(int64(leaf), h, stored)
		if err != nil {
			return err
		}
		stored = append(stored, hashes...)
	}
	t.stored = stored
	return nil
}

// Root returns the record root.
func (t *Tree) Root() Hash { return Hash(RootOf(append([]tlog.Hash(nil), t.leaves...))) }

// Opening returns the proof of unit i, from 0.
func (t *Tree) Opening(i int) (Opening, error) {
	n := int64(len(t.leaves))
	if i < 0 || int64(i) >= n {
		return Opening{}, fmt.Errorf("commitment: there is no unit %d of %d", i, n)
	}
	if err := t.store(); err != nil {
		return Opening{}, fmt.Errorf("commitment: %w", err)
	}
	path, err := tlog.ProveRecord(n, int64(i), t.stored)
	if err != nil {
		return Opening{}, fmt.Errorf("commitment: %w", err)
	}
	o := Opening{Index: uint32(i), Count: uint32(n), Salt: t.key.Salt(t.Sequence, t.record, i), Path: make([]Hash, len(path))}
	for i, h := range path {
		o.Path[i] = Hash(h)
	}
	return o, nil
}

// Opening proves that a unit belongs to a record root.
type Opening struct {
	Index uint32 `json:"index"` // of the unit, from 0
	Count uint32 `json:"count"` // of the record's units
	Salt  Hash   `json:"salt"`
	Path  []Hash `json:"path"` // from the leaf to the root
}

// Verify returns nil if the root commits to the unit.
func (o *Opening) Verify(root Hash, unit []byte) error {
	var m mac
	path := make(tlog.RecordProof, len(o.Path))
	for i, h := range o.Path {
		path[i] = tlog.Hash(h)
	}
	leaf := leafOf(&m, o.Salt, o.Index, o.Count, unit)
	if err := tlog.CheckRecord(path, int64(o.Count), tlog.Hash(root), int64(o.Index), leaf); err != nil {
		return fmt.Errorf("commitment: unit %d of %d does not belong to the root: %w", o.Index, o.Count, err)
	}
	return nil
}

// leafOf returns the leaf hash of a unit: of RFC 6962, over the unit's leaf data.
func leafOf(m *mac, salt Hash, index, count uint32, unit []byte) tlog.Hash {
	m.begin((*[KeySize]byte)(&salt))
	m.buf = binary.BigEndian.AppendUint32(m.buf, index)
	m.buf = binary.BigEndian.AppendUint32(m.buf, count)
	m.buf = append(m.buf, unit...)
	return recordHash(m.end())
}

// RootOf returns the RFC 6962 root over the hashes of adjacent subtrees, of which there is at least one. All have the same power of
// two of leaves; only the last may have fewer. RootOf overwrites level.
func RootOf(level []tlog.Hash) tlog.Hash {
	for len(level) > 1 {
		n := 0
		for i := 0; i+1 < len(level); i += 2 {
			level[n] = tlog.NodeHash(level[i], level[i+1])
			n++
		}
		if len(level)%2 == 1 {
			level[n] = level[len(level)-1]
			n++
		}
		level = level[:n]
	}
	return level[0]
}
