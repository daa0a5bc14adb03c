package book

import (
	"encoding/binary"

	"github.com/perpetua-exchange/perpetua/domain/decide"
)

// Codes finds numbers by codes, for whoever keeps things with codes by number: hash tables of buckets that fill a line of
// the processor's cache. There are many small tables, so that one that has to grow keeps nobody waiting. It holds half
// of a code's hash only, so who asks says whether what was found is it. Zero is no number.
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

// bucket holds half of a code's hash beside its number. It is searched without branches, since nobody could predict
// them: the processor goes on with what comes next while it waits for memory.
type bucket struct {
	hash   [bucketSize]uint32 // odd where there is a code, zero where there is none
	passed uint32             // codes that found no place here, or on their way to here, and are further on
	number [bucketSize]uint32
	_      uint32
}

const (
	bucketSize = 7
	empty      = 0
)

// find returns the first place with a hash, or bucketSize. It is written out so that it becomes conditional moves.
func (b *bucket) find(hash uint32) int {
	i := bucketSize
	if b.hash[6] == hash {
		i = 6
	}
	if b.hash[5] == hash {
		i = 5
	}
	if b.hash[4] == hash {
		i = 4
	}
	if b.hash[3] == hash {
		i = 3
	}
	if b.hash[2] == hash {
		i = 2
	}
	if b.hash[1] == hash {
		i = 1
	}
	if b.hash[0] == hash {
		i = 0
	}
	return i
}

// shard returns the table that a code belongs into, and the hash that it has there.
func (c *Codes) shard(code *decide.ID) (*shard, uint32) {
	return &c.shards[code[4]%64], binary.LittleEndian.Uint32(code[:]) | 1
}

func (t *shard) home(hash uint32) int { return int(hash>>1) & (len(t.buckets) - 1) }
func (t *shard) after(at int) int     { return (at + 1) & (len(t.buckets) - 1) }
func (t *shard) full() bool           { return t.used >= 5*len(t.buckets) }

// vacant returns the first empty place for a hash, and lets the buckets on the way know.
func (t *shard) vacant(hash uint32) (*bucket, int) {
	for at := t.home(hash); ; at = t.after(at) {
		b := &t.buckets[at]
		if i := b.find(empty); i < bucketSize {
			return b, i
		}
		b.passed++
	}
}

// grow makes the table twice as large.
func (t *shard) grow() {
	old := t.buckets
	t.buckets = make([]bucket, max(1, 2*len(old)))
	for at := range old {
		for i, hash := range old[at].hash {
			if hash != empty {
				b, place := t.vacant(hash)
				b.hash[place], b.number[place] = hash, old[at].number[i]
			}
		}
	}
}

// Len returns how many codes there are.
func (c *Codes) Len() int { return c.used }

// Find returns the number of a code, or zero. It asks of every number that it may be whether it is.
func (c *Codes) Find(code decide.ID, is func(number uint32) bool) uint32 {
	t, hash := c.shard(&code)
	at := t.home(hash)
	for range t.buckets {
		b := &t.buckets[at]
		for i := b.find(hash); i < bucketSize; i++ {
			if b.hash[i] == hash && is(b.number[i]) {
				return b.number[i]
			}
		}
		if b.passed == 0 {
			break
		}
		at = t.after(at)
	}
	return 0
}

// Put adds a code that is not there yet.
func (c *Codes) Put(code decide.ID, number uint32) {
	t, hash := c.shard(&code)
	if t.full() {
		t.grow()
	}
	b, i := t.vacant(hash)
	c.place(t, b, i, hash, number)
}

func (c *Codes) place(t *shard, b *bucket, i int, hash, number uint32) {
	b.hash[i], b.number[i] = hash, number
	t.used++
	c.used++
}

// Remove takes a code out. It reports whether the code was there with the number.
func (c *Codes) Remove(code decide.ID, number uint32) bool {
	t, hash := c.shard(&code)
	if t.used == 0 {
		return false
	}
	home := t.home(hash)
	b := &t.buckets[home]
	if i := b.find(hash); i < bucketSize && b.number[i] == number {
		c.vacate(t, b, i)
		return true
	}
	at := home
	for range t.buckets {
		b := &t.buckets[at]
		for i := range b.number {
			if b.number[i] == number && b.hash[i] == hash {
				c.vacate(t, b, i)
				for ; home != at; home = t.after(home) {
					t.buckets[home].passed--
				}
				return true
			}
		}
		if b.passed == 0 {
			break
		}
		at = t.after(at)
	}
	return false
}

func (c *Codes) vacate(t *shard, b *bucket, i int) {
	b.hash[i], b.number[i] = empty, 0
	t.used--
	c.used--
}
