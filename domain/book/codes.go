package book

import (
	"encoding/binary"
	"math/bits"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Codes finds numbers by codes, for whoever keeps things with codes by number: hash tables of buckets that fill a line of
// the processor's cache. There are many small tables, so that one that has to grow keeps nobody waiting. It holds a
// small part of a code's hash only, so who asks says whether what was found is it. Zero is no number.
//
// A code is its own hash: codes are derived by SHA-256 from the journal's random identity (decide.Stamp.Derive), so
// nobody can choose them to collide.
type Codes struct {
	shards [64]shard
	used   int
}

// shard is one of the tables. What finds no place in the bucket where it belongs is in the next one that has a place.
type shard struct {
	buckets []bucket // a power of two of them
	used    int
}

// bucket holds a tag, a part of a code's hash, beside its number. All tags are looked at together, without branches,
// since nobody could predict them: the processor goes on with what comes next while it waits for memory.
type bucket struct {
	tags   [bucketSize]uint8 // zero where there is no code
	passed uint32            // codes that found no place here, or on their way to here, and are further on
	number [bucketSize]uint32
}

const (
	bucketSize = 12
	mostUsed   = 6 // on average, of a bucket's places
	vacancy    = 0 // the tag of a place without a code
)

// places are some of a bucket's places, told by bits: bit 8 × i is place i up to the eighth, and bit 8 × i + 1 is place
// i + 8.
type places uint64

// with returns the places with a tag, and perhaps others behind the first of them.
func (b *bucket) with(tag uint8) places {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	all := ones * uint64(tag)
	x := binary.LittleEndian.Uint64(b.tags[:8]) ^ all
	y := uint64(binary.LittleEndian.Uint32(b.tags[8:])^uint32(all)) | 0xffffffff<<32
	return places((x-ones)&^x&tops>>7 | (y-ones)&^y&tops>>6)
}

// first returns the first of some places, of which there is one.
func (p places) first() int {
	bit := bits.TrailingZeros64(uint64(p))
	return (bit>>3 | bit<<3) & 15
}

// others returns the places but the first.
func (p places) others() places { return p & (p - 1) }

// hash is what a code's place depends on.
type hash uint64

func hashOf(code *scalar.ID) hash { return hash(binary.LittleEndian.Uint64(code[:])) }

func (h hash) tag() uint8 { return max(1, uint8(h>>40)) }

// shard returns the table that a code belongs into.
func (c *Codes) shard(h hash) *shard { return &c.shards[h>>32%64] }

func (t *shard) home(h hash) int  { return int(uint32(h)>>1) & (len(t.buckets) - 1) }
func (t *shard) after(at int) int { return (at + 1) & (len(t.buckets) - 1) }
func (t *shard) full() bool       { return t.used >= mostUsed*len(t.buckets) }

// vacant returns the first place without a code for a hash, and lets the buckets on the way know.
func (t *shard) vacant(h hash) (*bucket, int) {
	for at := t.home(h); ; at = t.after(at) {
		b := &t.buckets[at]
		if free := b.with(vacancy); free != 0 {
			return b, free.first()
		}
		b.passed++
	}
}

// grow makes the table twice as large. It asks for the codes of the numbers, since a tag does not say where one belongs.
func (t *shard) grow(code func(number uint32) scalar.ID) {
	old := t.buckets
	t.buckets = make([]bucket, max(1, 2*len(old)))
	for at := range old {
		for i, tag := range old[at].tags {
			if tag != vacancy {
				c := code(old[at].number[i])
				h := hashOf(&c)
				b, place := t.vacant(h)
				b.tags[place], b.number[place] = tag, old[at].number[i]
			}
		}
	}
}

// Len returns how many codes there are.
func (c *Codes) Len() int { return c.used }

// Find returns the number of a code, or zero. It asks of every number that it may be whether it is.
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

// Put adds a code that is not there yet. The codes of the numbers that are there are asked for when a table grows.
func (c *Codes) Put(code scalar.ID, number uint32, codeOf func(number uint32) scalar.ID) {
	h := hashOf(&code)
	t := c.shard(h)
	if t.full() {
		t.grow(codeOf)
	}
	b, i := t.vacant(h)
	c.place(t, b, i, h, number)
}

func (c *Codes) place(t *shard, b *bucket, i int, h hash, number uint32) {
	b.tags[i], b.number[i] = h.tag(), number
	t.used++
	c.used++
}

// Remove takes a code out. It reports whether the code was there with the number.
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
