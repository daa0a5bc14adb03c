package columns

import "hash/maphash"

// index is a hash table of numbers above 0. Its owner keeps what the numbers stand for, and compares it.
type index struct {
	slots []indexSlot // a power of two, of which at most half are used
	used  int
}

type indexSlot struct{ hash, number uint32 }

func (x *index) start(hash uint32) uint32 {
	if len(x.slots) == 0 {
		x.slots = make([]indexSlot, 16)
	}
	return hash & uint32(len(x.slots)-1)
}

func (x *index) after(i uint32) uint32 { return (i + 1) & uint32(len(x.slots)-1) }

// add inserts a new number.
func (x *index) add(hash, number uint32) {
	if x.used++; 2*x.used > len(x.slots) {
		old := x.slots
		x.slots = make([]indexSlot, max(16, 4*len(old)))
		for _, s := range old {
			if s.number != 0 {
				x.put(s)
			}
		}
	}
	x.put(indexSlot{hash, number})
}

func (x *index) put(s indexSlot) {
	i := x.start(s.hash)
	for x.slots[i].number != 0 {
		i = x.after(i)
	}
	x.slots[i] = s
}

func hashOf(seed maphash.Seed, b []byte) uint32 {
	h := maphash.Bytes(seed, b)
	return uint32(h ^ h>>32)
}

// joins finds the object of several texts by the objects that these identify alone.
type joins struct {
	seed  uint64
	index index
	all   []join // 0 is none
}

type join struct {
	parts  [maxAnchors]uint32
	object uint32
}

func (x *joins) hash(parts *[maxAnchors]uint32) uint32 {
	h := x.seed
	for _, n := range parts {
		h = (h ^ uint64(n)) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	return uint32(h ^ h>>32)
}

// find returns the object, or 0.
func (x *joins) find(hash uint32, parts *[maxAnchors]uint32) uint32 {
	for i := x.index.start(hash); ; i = x.index.after(i) {
		s := x.index.slots[i]
		if s.number == 0 {
			return 0
		}
		if s.hash == hash && x.all[s.number].parts == *parts {
			return x.all[s.number].object
		}
	}
}

func (x *joins) add(hash uint32, j join) {
	x.index.add(hash, uint32(len(x.all)))
	x.all = append(x.all, j)
}
