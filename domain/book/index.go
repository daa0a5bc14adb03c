package book

import "math/bits"

// index finds price levels by price: a radix tree over the price's bits, six at a time, in which a node is one word
// that says which of its 64 children exist and the children themselves. A price, its next lower and its next higher
// neighbour are found in as many steps as the highest price has groups of six bits (four for prices below 16.7
// million ticks), whatever the number of levels. Nodes refer to each other by their place in one slice, so that the
// tree costs the garbage collector nothing.
//
// Handles are what the tree finds; zero means none. Prices are not negative.
type index struct {
	nodes  []node // place 0 is not used: zero means none
	free   []uint32
	root   uint32
	height int // how many groups of six bits the root covers
	// The node that holds the prices hotKey × 64 … hotKey × 64 + 63, where the last level was added.
	hot    uint32
	hotKey int64
}

type node struct {
	set   uint64     // bit i: child i exists
	child [64]uint32 // nodes, or handles at the lowest level
}

const maxHeight = 11 // 66 bits, more than a price has

// at returns the handle stored at price.
func (x *index) at(price int64) uint32 {
	if x.height == 0 || !x.covers(price) {
		return 0
	}
	n := x.root
	for shift := 6 * (x.height - 1); shift > 0; shift -= 6 {
		if n = x.nodes[n].child[price>>shift&63]; n == 0 {
			return 0
		}
	}
	return x.nodes[n].child[price&63]
}

// slot returns the place of the handle at price, so that the caller can fill it, making the nodes on the way.
// The caller calls filled if it does.
func (x *index) slot(price int64) *uint32 {
	if x.hot != 0 && x.hotKey == price>>6 {
		return &x.nodes[x.hot].child[price&63]
	}
	for x.height == 0 || !x.covers(price) {
		x.grow()
	}
	n := x.root
	for shift := 6 * (x.height - 1); shift > 0; shift -= 6 {
		i := price >> shift & 63
		next := x.nodes[n].child[i]
		if next == 0 {
			next = x.make()
			x.nodes[n].child[i] = next
			x.nodes[n].set |= 1 << i
		}
		n = next
	}
	x.hot, x.hotKey = n, price>>6
	return &x.nodes[n].child[price&63]
}

// filled marks the slot that was just asked for as taken.
func (x *index) filled(price int64) { x.nodes[x.hot].set |= 1 << (price & 63) }

// covers reports whether the tree is high enough for the price.
func (x *index) covers(price int64) bool { return price>>(6*x.height) == 0 }

func (x *index) grow() {
	top := x.make()
	if x.root != 0 {
		x.nodes[top].child[0] = x.root
		x.nodes[top].set = 1
	}
	x.root = top
	x.height++
}

func (x *index) make() uint32 {
	if len(x.free) > 0 {
		n := x.free[len(x.free)-1]
		x.free = x.free[:len(x.free)-1]
		return n
	}
	if len(x.nodes) == 0 {
		x.nodes = append(x.nodes, node{})
	}
	x.nodes = append(x.nodes, node{})
	return uint32(len(x.nodes) - 1)
}

// remove empties the slot at price, and frees the nodes that become empty.
func (x *index) remove(price int64) {
	var path [maxHeight]uint32
	n := x.root
	for h := x.height - 1; h > 0; h-- {
		path[h] = n
		n = x.nodes[n].child[price>>(6*h)&63]
	}
	path[0] = n
	for h := 0; h < x.height; h++ {
		at := &x.nodes[path[h]]
		i := price >> (6 * h) & 63
		at.child[i] = 0
		at.set &^= 1 << i
		if at.set != 0 || h == x.height-1 {
			return
		}
		if path[h] == x.hot {
			x.hot = 0
		}
		x.free = append(x.free, path[h])
	}
}

// below returns the handle of the highest price under the given one.
func (x *index) below(price int64) uint32 {
	return x.beside(price, func(set uint64, i int64) uint64 { return set & (1<<i - 1) }, func(set uint64) int { return 63 - bits.LeadingZeros64(set) })
}

// above returns the handle of the lowest price over the given one.
func (x *index) above(price int64) uint32 {
	return x.beside(price, func(set uint64, i int64) uint64 { return set &^ (2<<i - 1) }, bits.TrailingZeros64)
}

// beside goes down towards price, remembers the last turning where there was something on the wanted side, and from
// there takes the nearest.
func (x *index) beside(price int64, side func(set uint64, i int64) uint64, nearest func(set uint64) int) uint32 {
	var turn uint32
	var turnHeight int
	var turnSet uint64
	n := x.root
	for h := x.height - 1; h >= 0 && n != 0; h-- {
		i := price >> (6 * h) & 63
		if set := side(x.nodes[n].set, i); set != 0 {
			turn, turnHeight, turnSet = n, h, set
		}
		n = x.nodes[n].child[i]
	}
	if turn == 0 {
		return 0
	}
	n = x.nodes[turn].child[nearest(turnSet)]
	for h := turnHeight - 1; h >= 0; h-- {
		n = x.nodes[n].child[nearest(x.nodes[n].set)]
	}
	return n
}
