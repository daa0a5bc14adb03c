package book

import "math/bits"

// index finds price levels by price. It is a radix tree over the price's bits, four bits per node. It has no nodes with
// a single child, so there are fewer than twice as many nodes as levels, at any prices. Finding a price, or its next
// lower or next higher neighbor, takes no more steps than a price has groups of four bits, however many levels there
// are. Where levels are close together it takes one step, because a small table caches the lowest nodes, of sixteen
// prices each.
//
// Nodes are in blocks and refer to each other by number, so that the garbage collector need not scan them, and they are
// never copied. The tree maps prices to handles; zero means none. Prices are not negative.
type index struct {
	blocks []*[nodeBlock]node
	used   uint32
	free   uint32 // first free node; free nodes are linked by child 0
	root   uint32
	leaves int
	recent []uint32 // cache: the node of prices 16 × k … 16 × k + 15 is at index k modulo the length, if present
}

// node is a node of the tree. All prices under it have the same bits above the four that select its child.
type node struct {
	prefix int64 // those bits; -1 for a free node
	child  [16]uint32
	set    uint16 // bit i: child i exists
	shift  uint8  // position of the four bits that select the child; 0 for the lowest nodes, with handles as children
}

const (
	nodeBlock  = 64
	digit      = 4 // bits
	mostRecent = 4096
)

func (n *node) covers(price int64) bool { return price>>n.shift>>digit == n.prefix }
func (n *node) slot(price int64) int64  { return price >> n.shift & 15 }

func (x *index) node(number uint32) *node {
	number--
	return &x.blocks[number/nodeBlock][number%nodeBlock]
}

// at returns the handle at a price, or zero.
func (x *index) at(price int64) uint32 {
	if n := x.lowest(price); n != nil {
		return n.child[price&15]
	}
	return 0
}

// lowest returns the lowest node that covers the price, or nil.
func (x *index) lowest(price int64) *node {
	number := x.root
	if number == 0 {
		return nil
	}
	if recent := *x.remembered(price >> digit); recent != 0 {
		if n := x.node(recent); n.prefix == price>>digit && n.shift == 0 {
			return n
		}
	}
	for number != 0 {
		n := x.node(number)
		if !n.covers(price) {
			return nil
		}
		if n.shift == 0 {
			return n
		}
		number = n.child[n.slot(price)]
	}
	return nil
}

// remembered returns the cache entry for the lowest node with a prefix.
func (x *index) remembered(prefix int64) *uint32 { return &x.recent[prefix&int64(len(x.recent)-1)] }

// put adds a handle at a price that has none.
func (x *index) put(price int64, handle uint32) {
	var parent *node
	link := &x.root
	for *link != 0 {
		n := x.node(*link)
		if !n.covers(price) {
			x.fork(link, n, price, handle)
			return
		}
		parent, link = n, &n.child[n.slot(price)]
		if n.shift == 0 {
			*link = handle
			n.set |= 1 << n.slot(price)
			return
		}
	}
	*link = x.leaf(price, handle)
	if parent != nil {
		parent.set |= 1 << parent.slot(price)
	}
}

// fork replaces a node that does not cover the price by a new node with two children: the old node, and a new lowest
// node.
func (x *index) fork(link *uint32, n *node, price int64, handle uint32) {
	other := n.prefix << digit << n.shift // a price that n covers
	shift := uint8(bits.Len64(uint64(price^other))-1) / digit * digit
	number := x.make(price>>shift>>digit, shift)
	fork := x.node(number)
	fork.child[fork.slot(other)] = *link
	fork.child[fork.slot(price)] = x.leaf(price, handle)
	fork.set = 1<<fork.slot(other) | 1<<fork.slot(price)
	*link = number
}

// leaf adds the lowest node for a price.
func (x *index) leaf(price int64, handle uint32) uint32 {
	number := x.make(price>>digit, 0)
	n := x.node(number)
	n.child[price&15] = handle
	n.set = 1 << (price & 15)
	x.leaves++
	if x.leaves > len(x.recent) && len(x.recent) < mostRecent {
		x.recent = make([]uint32, max(16, 2*len(x.recent)))
		for old := uint32(1); old < x.used; old++ {
			if n := x.node(old); n.prefix >= 0 && n.shift == 0 {
				*x.remembered(n.prefix) = old
			}
		}
	}
	*x.remembered(price >> digit) = number
	return number
}

func (x *index) make(prefix int64, shift uint8) uint32 {
	number := x.free
	if number != 0 {
		x.free = x.node(number).child[0]
	} else {
		if x.used%nodeBlock == 0 {
			x.blocks = append(x.blocks, new([nodeBlock]node))
		}
		x.used++
		number = x.used
	}
	*x.node(number) = node{prefix: prefix, shift: shift}
	return number
}

func (x *index) release(number uint32) {
	*x.node(number) = node{prefix: -1, child: [16]uint32{x.free}}
	x.free = number
}

// remove removes the handle of a price, which must have one. It releases a node that becomes empty, and replaces a node
// that is left with one child by that child.
func (x *index) remove(price int64) {
	n := x.lowest(price)
	n.child[price&15] = 0
	n.set &^= 1 << (price & 15)
	if n.set != 0 {
		return
	}
	var above *uint32 // the link to the parent
	link := &x.root
	for n = x.node(*link); n.shift != 0; n = x.node(*link) {
		above, link = link, &n.child[n.slot(price)]
	}
	x.leaves--
	x.release(*link)
	*link = 0
	if above == nil {
		return
	}
	number := *above
	n = x.node(number)
	n.set &^= 1 << n.slot(price)
	if n.set&(n.set-1) == 0 {
		*above = n.child[bits.TrailingZeros16(n.set)]
		x.release(number)
	}
}

// below returns the handle of the next lower price. The given price must have a handle.
func (x *index) below(price int64) uint32 {
	last := func(set uint16) int { return 15 - bits.LeadingZeros16(set) }
	n := x.lowest(price)
	set := n.set & (1<<n.slot(price) - 1)
	if set == 0 { // find the nearest ancestor with a child for lower prices
		var turn *node
		for at := x.node(x.root); at != n; at = x.node(at.child[at.slot(price)]) {
			if lower := at.set & (1<<at.slot(price) - 1); lower != 0 {
				turn, set = at, lower
			}
		}
		n = turn
	}
	return x.follow(n, set, last)
}

// above returns the handle of the next higher price. The given price must have a handle.
func (x *index) above(price int64) uint32 {
	n := x.lowest(price)
	set := n.set &^ (2<<n.slot(price) - 1)
	if set == 0 {
		var turn *node
		for at := x.node(x.root); at != n; at = x.node(at.child[at.slot(price)]) {
			if higher := at.set &^ (2<<at.slot(price) - 1); higher != 0 {
				turn, set = at, higher
			}
		}
		n = turn
	}
	return x.follow(n, set, bits.TrailingZeros16)
}

// follow descends from a node to the nearest of the children in set, and from there always to the nearest.
func (x *index) follow(n *node, set uint16, nearest func(set uint16) int) uint32 {
	if n == nil {
		return 0
	}
	for n.shift != 0 {
		n = x.node(n.child[nearest(set)])
		set = n.set
	}
	return n.child[nearest(set)]
}
