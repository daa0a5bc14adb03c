package liabilities

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math/bits"
)

// Hash is the hash of a node, a nonce, or a key of the tree: 32 bytes, in text base64 with padding.
type Hash [32]byte

// MarshalText returns the hash in base64.
func (h Hash) MarshalText() ([]byte, error) { return base64.StdEncoding.AppendEncode(nil, h[:]), nil }

// UnmarshalText reads what MarshalText returns, and nothing else.
func (h *Hash) UnmarshalText(text []byte) error {
	b, err := base64.StdEncoding.Strict().DecodeString(string(text))
	if err != nil || len(b) != len(h) || base64.StdEncoding.EncodeToString(b) != string(text) {
		return fmt.Errorf("%.60q is no hash of 32 bytes in base64", text)
	}
	*h = Hash(b)
	return nil
}

// Node is a node of the tree: a hash, and the sum of the leaves below it.
type Node struct {
	Sum  Amount
	Hash Hash
}

// CodeSize is the number of bytes of a customer code in hashed data. Shorter codes are followed by zero bytes.
const CodeSize = 32

// MinParts and MaxParts bound the number of leaves of a customer.
const (
	MinParts = 2
	MaxParts = 4
)

const (
	treeLabel  = "perpetua liabilities tree\x00"
	nonceLabel = "nonce\x00"
	orderLabel = "order\x00"
	partsLabel = "parts\x00"
)

// mac returns HMAC-SHA-256 (RFC 2104) of a message of at most 80 bytes.
func mac(key *Hash, message []byte) Hash {
	const block = sha256.BlockSize
	var inner [block + 80]byte
	var outer [block + sha256.Size]byte
	for i := range block {
		var k byte
		if i < len(key) {
			k = key[i]
		}
		inner[i], outer[i] = k^0x36, k^0x5c
	}
	n := copy(inner[block:], message)
	sum := sha256.Sum256(inner[:block+n])
	copy(outer[block:], sum[:])
	return sha256.Sum256(outer[:])
}

// TreeKey returns the secret of one tree. epochKey is the key of the record roots at the position, and record is the SHA-256 of
// the record there. So two histories of one log have different trees.
func TreeKey(epochKey [32]byte, position int64, record [sha256.Size]byte) Hash {
	var b [len(treeLabel) + 8 + sha256.Size]byte
	n := copy(b[:], treeLabel)
	binary.BigEndian.PutUint64(b[n:], uint64(position))
	copy(b[n+8:], record[:])
	return mac((*Hash)(&epochKey), b[:])
}

// Nonce returns the nonce of a customer in one tree. The code "" is that of the leaves that pad the tree.
func Nonce(treeKey Hash, code string) Hash {
	var b [len(nonceLabel) + CodeSize]byte
	n := copy(b[:], nonceLabel)
	copy(b[n:], code)
	return mac(&treeKey, b[:])
}

// SubNonce returns the key of a customer's leaves in the tree of a position.
func SubNonce(nonce Hash, position int64, code string) Hash {
	var b [8 + CodeSize]byte
	binary.BigEndian.PutUint64(b[:], uint64(position))
	copy(b[8:], code)
	return mac(&nonce, b[:])
}

// Leaf returns the leaf at an index.
func Leaf(subNonce Hash, value Amount, index int64) Node {
	var b [16 + 8]byte
	value.put((*[16]byte)(b[:16]))
	binary.BigEndian.PutUint64(b[16:], uint64(index))
	return Node{value, mac(&subNonce, b[:])}
}

// Parent returns the node above two others, or ErrOverflow.
func Parent(left, right *Node) (Node, error) {
	sum, err := left.Sum.Plus(right.Sum)
	if err != nil {
		return Node{}, err
	}
	var b [1 + 2*(32+16)]byte
	b[0] = 1
	copy(b[1:], left.Hash[:])
	left.Sum.put((*[16]byte)(b[33:49]))
	copy(b[49:], right.Hash[:])
	right.Sum.put((*[16]byte)(b[81:97]))
	return Node{sum, sha256.Sum256(b[:])}, nil
}

// Split divides a value among a customer's leaves.
func Split(nonce Hash, value Amount) (parts [MaxParts]Amount, n int) {
	random := mac(&nonce, []byte(partsLabel))
	word := func(i int) uint64 { return binary.BigEndian.Uint64(random[8*i:]) }
	n = MinParts + int(word(0)%(MaxParts-MinParts+1))
	var cuts [MaxParts - 1]Amount
	for i := range n - 1 { // in order
		at, c := i, value.part(word(i+1))
		for ; at > 0 && c.less(cuts[at-1]); at-- {
			cuts[at] = cuts[at-1]
		}
		cuts[at] = c
	}
	from := Amount{}
	for i, to := range cuts[:n-1] {
		parts[i], from = to.minus(from), to
	}
	parts[n-1] = value.minus(from)
	return parts, n
}

// Order returns the numbers by which a customer's leaves are sorted among all leaves.
func Order(nonce Hash) (order [MaxParts]uint64) {
	random := mac(&nonce, []byte(orderLabel))
	for i := range order {
		order[i] = binary.BigEndian.Uint64(random[8*i:])
	}
	return order
}

// PaddingOrder returns the number by which padding leaf i is sorted. nonce is that of the code "".
func PaddingOrder(nonce Hash, i int64) uint64 {
	var b [len(orderLabel) + 8]byte
	n := copy(b[:], orderLabel)
	binary.BigEndian.PutUint64(b[n:], uint64(i))
	random := mac(&nonce, b[:])
	return binary.BigEndian.Uint64(random[:])
}

// Width returns the number of leaves of the tree in which n leaves have room: the next power of two.
func Width(n int64) int64 {
	if n <= 1 {
		return 1
	}
	return 1 << bits.Len64(uint64(n-1))
}
