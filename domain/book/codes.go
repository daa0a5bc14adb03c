package book

import (
	"encoding/binary"
	"math/bits"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Codes is a set of hash tables from codes to the numbers of the caller's items. A bucket fills one cache line. There
// are many small tables, so that growing one of them takes little time. A table stores only a small part of a code's
// hash, so the caller must say whether an item that was found has the code. Zero is not a valid number.
//
// The first bytes of a code serve as its hash. Codes are derived by SHA-256 from the journal's random identity
// (decide.Stamp.Derive), so clients cannot choose codes that collide.
type Codes struct {
	shards [64]shard
	used   int
}

// shard is one of the tables. A code that finds its home bucket full is in the next bucket that had a free slot.
type shard struct {
	buckets []bucket // a power of two of them
	used    int
}

// bucket holds numbers, each with a tag, which is a part of the code's hash. All tags are compared together and without
// branches, which could not be predicted; the processor can continue while it waits for memory.
type bucket struct {
	tags   [bucketSize]uint8 // zero for a free slot
	passed uint32            // number of codes for which this bucket was full, and which are in a later one
	number [bucketSize]uint32
}

const (
	bucketSize = 12
	mostUsed   = 6 // average of used slots per bucket at which a shard grows
	vacancy    = 0 // tag of a free slot
)

// slotSet is a set of slots of a bucket. Bit 8 × i is slot i for the first eight slots, and bit 8 × i + 1 is slot i
// + 8.
type slotSet uint64

// with returns the slots with a tag. After the first one, it may also contain slots with other tags.
func (b *bucket) with(tag uint8) slotSet {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	all := ones * uint64(tag)
	x := binary.LittleEndian.Uint64(b.tags[:8]) ^ all
	y := uint64(binary.LittleEndian.Uint32(b.tags[8:])^uint32(all)) | 0xffffffff<<32
	return slotSet((x-ones)&^x&tops>>7 | (y-ones)&^y&tops>>6)
}

// first returns the first slot of a set that is not empty.
func (p slotSet) first() int {
	bit := bits.TrailingZeros64(uint64(p))
	return (bit>>3 | bit<<3) & 15
}

// others returns the set without its first slot.
func (p slotSet) others() slotSet { return p & (p - 1) }

// hash is the hash of a code: it selects the shard, the home bucket and the tag.
type hash uint64

func hashOf(code *scalar.ID) hash { return hash(binary.LittleEndian.Uint64(code[:])) }

func (h hash) tag() uint8 { return max(1, uint8(h>>40)) }

// shard returns the table for a hash.
func (c *Codes) shard(h hash) *shard { return &c.shards[h>>32%64] }

func (t *shard) home(h hash) int  { return int(uint32(h)>>1) & (len(t.buckets) - 1) }
func (t *shard) after(at int) int { return (at + 1) & (len(t.buckets) - 1) }
func (t *shard) full() bool       { return t.used >= mostUsed*len(t.buckets) }

// vacant returns the first free slot for a hash, and counts the code in the passed of all buckets that it skips.
func (t *shard) vacant(h hash) (*bucket, int) {
	for at := t.home(h); ; at = t.after(at) {
		b := &t.buckets[at]
		if free := b.with(vacancy); free != 0 {
			return b, free.first()
		}
		b.passed++
	}
}

// grow doubles the table. It gets the codes of the numbers from the caller, since the tags do not determine their
// buckets.
func (t *shard) grow(code func(number uint32) scalar.ID) {
	old := t.buckets
	t.buckets = make([]bucket, max(1, 2*len(old)))
	for at := range old {
		for i, tag := range old[at].tags {
			if tag != vacancy {
				c := code(old[at].number[i])
				h := hashOf(&c)
				b, slot := t.vacant(h)
				b.tags[slot], b.number[slot] = tag, old[at].number[i]
			}
		}
	}
}

// Len returns the number of codes.
func (c *Codes) Len() int { return c.used }

// Find returns the number of a code, or zero. It calls is with every candidate.
func (c *Codes) Find(code scalar.ID, is func(number uint32) bool) uint32 {
	h := hashOf(&code)
	t := c.shard(h)
	at := t.home(h)
	for range t.buckets {
		b := &t.buckets[at]
		for p := b.with(h.tag()); p != 0; p = p.others() {
			if number := b.number[p.first()]; number != 0 && is(number) {
				return number
			}
		}
		if b.passed == 0 {
			break
		}
		at = t.after(at)
	}
	return 0
}

// Put adds a code, which must not be present. If a table grows, it calls codeOf with the numbers in it.
func (c *Codes) Put(code scalar.ID, number uint32, codeOf func(number uint32) scalar.ID) {
	h := hashOf(&code)
	t := c.shard(h)
	if t.full() {
		t.grow(codeOf)
	}
	b, i := t.vacant(h)
	c.fill(t, b, i, h, number)
}

func (c *Codes) fill(t *shard, b *bucket, i int, h hash, number uint32) {
	b.tags[i], b.number[i] = h.tag(), number
	t.used++
	c.used++
}

// Remove removes a code. It reports whether the code was present with the number.
func (c *Codes) Remove(code scalar.ID, number uint32) bool {
	h := hashOf(&code)
	t := c.shard(h)
	if t.used == 0 || number == 0 {
		return false
	}
	home := t.home(h)
	at := home
	for range t.buckets {
		b := &t.buckets[at]
		for p := b.with(h.tag()); p != 0; p = p.others() {
			i := p.first()
			if b.number[i] != number {
				continue
			}
			b.tags[i], b.number[i] = vacancy, 0
			t.used--
			c.used--
			for ; home != at; home = t.after(home) {
				t.buckets[home].passed--
			}
			return true
		}
		if b.passed == 0 {
			break
		}
		at = t.after(at)
	}
	return false
}
