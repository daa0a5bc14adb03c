package liabilities

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	form "github.com/perpetua-exchange/perpetua/domain/liabilities"
)

// Customer is a customer with a balance of at least 0.
type Customer struct {
	Code  string
	Value form.Amount
}

// Tree is the tree of one position. It keeps no leaf: Prove computes those that it needs again. It is safe for concurrent use.
type Tree struct {
	position  int64
	key       form.Hash
	customers []Customer // by code
	// leaves has the owner of each leaf, in the order of the tree: the index of the customer × 4 + the number of the part. The index
	// of the leaves that pad the tree is the number of customers.
	leaves []uint32
	// levels are the nodes from height blockHeight up, or from the height of a lower tree.
	levels [][]form.Node
	bottom int // the height of levels[0]
}

// blockHeight is the height of the lowest nodes that a Tree keeps. Below each are 8 leaves.
const blockHeight = 3

// maxCustomers bounds the customers of a tree, so that an index and a part fit 32 bits.
const maxCustomers = 1<<30 - 2

// leafKey sorts a leaf.
type leafKey struct {
	order uint64
	owner uint32
}

// Build computes the tree of a position. It sorts the customers by code. It returns an error if two have the same code, a code has
// no bytes or too many, or the sum overflows. The work is spread over the processors.
func Build(key form.Hash, position int64, customers []Customer) (*Tree, error) {
	if len(customers) > maxCustomers {
		return nil, fmt.Errorf("liabilities: %d customers are too many", len(customers))
	}
	slices.SortFunc(customers, func(a, b Customer) int { return strings.Compare(a.Code, b.Code) })
	for i := range customers {
		if c := customers[i].Code; c == "" || len(c) > form.CodeSize || strings.IndexByte(c, 0) >= 0 || i > 0 && c == customers[i-1].Code {
			return nil, fmt.Errorf("liabilities: the customer code %.40q has no tree", c)
		}
	}
	t := &Tree{position: position, key: key, customers: customers}
	owners := t.deal()
	if err := t.hash(owners); err != nil {
		return nil, err
	}
	return t, nil
}

// parts has the inputs of the leaves of one customer.
type parts struct {
	key    form.Hash // the sub-nonce
	values [form.MaxParts]form.Amount
}

// deal sorts the leaves, and returns their inputs by customer. Those of the padding come last.
func (t *Tree) deal() []parts {
	all := make([]parts, len(t.customers)+1)
	workers := runtime.GOMAXPROCS(0)
	keys := make([][]leafKey, workers)
	spread(len(t.customers), func(worker, from, to int) {
		list := make([]leafKey, 0, (to-from)*(form.MinParts+form.MaxParts)/2)
		for i := from; i < to; i++ {
			c := &t.customers[i]
			nonce := form.Nonce(t.key, c.Code)
			values, n := form.Split(nonce, c.Value)
			all[i] = parts{form.SubNonce(nonce, t.position, c.Code), values}
			order := form.Order(nonce)
			for part := range n {
				list = append(list, leafKey{order[part], uint32(i)<<2 | uint32(part)})
			}
		}
		keys[worker] = list
	})
	padding := form.Nonce(t.key, "")
	all[len(t.customers)] = parts{key: form.SubNonce(padding, t.position, "")}
	sorted := slices.Concat(keys...)
	width := form.Width(int64(len(sorted)))
	for i := int64(0); int64(len(sorted)) < width; i++ {
		sorted = append(sorted, leafKey{form.PaddingOrder(padding, i), uint32(len(t.customers)) << 2})
	}
	sortLeaves(sorted)
	t.leaves = make([]uint32, width)
	for i := range sorted {
		t.leaves[i] = sorted[i].owner
	}
	return all
}

// sortLeaves sorts by order, then by owner. It deals the leaves into buckets by the highest byte, and sorts these in parallel.
func sortLeaves(all []leafKey) {
	const buckets = 256
	var ends [buckets]int
	for i := range all {
		ends[all[i].order>>56]++
	}
	for b, from := 0, 0; b < buckets; b++ {
		ends[b], from = from, from+ends[b]
	}
	dealt := make([]leafKey, len(all))
	for i := range all {
		b := all[i].order >> 56
		dealt[ends[b]] = all[i]
		ends[b]++
	}
	spread(buckets, func(_, from, to int) {
		for b := from; b < to; b++ {
			start := 0
			if b > 0 {
				start = ends[b-1]
			}
			slices.SortFunc(dealt[start:ends[b]], func(a, b leafKey) int {
				return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.owner, b.owner))
			})
		}
	})
	copy(all, dealt)
}

// hash computes the levels.
func (t *Tree) hash(owners []parts) error {
	width := len(t.leaves)
	for t.bottom < blockHeight && 1<<t.bottom < width {
		t.bottom++
	}
	size := 1 << t.bottom
	level := make([]form.Node, width/size)
	var failed firstError
	spread(len(level), func(_, from, to int) {
		block := make([]form.Node, size)
		for at := from; at < to; at++ {
			for i := range block {
				index := at*size + i
				o := &owners[t.leaves[index]>>2]
				block[i] = form.Leaf(o.key, o.values[t.leaves[index]&3], int64(index))
			}
			nodes := block
			for len(nodes) > 1 {
				var err error
				if nodes, err = above(nodes, nodes[:0]); err != nil {
					failed.set(err)
					return
				}
			}
			level[at] = nodes[0]
		}
	})
	if failed.err != nil {
		return fmt.Errorf("liabilities: %w", failed.err)
	}
	t.levels = [][]form.Node{level}
	for len(level) > 1 {
		next, err := above(level, make([]form.Node, 0, len(level)/2))
		if err != nil {
			return fmt.Errorf("liabilities: %w", err)
		}
		level = next
		t.levels = append(t.levels, level)
	}
	return nil
}

// above appends the parents of an even number of nodes to a slice, which may be the empty beginning of the same nodes.
func above(nodes, to []form.Node) ([]form.Node, error) {
	for i := 0; i < len(nodes); i += 2 {
		n, err := form.Parent(&nodes[i], &nodes[i+1])
		if err != nil {
			return nil, err
		}
		to = append(to, n)
	}
	return to, nil
}

// Root returns the root. Its sum is the total.
func (t *Tree) Root() form.Node { return t.levels[len(t.levels)-1][0] }

// Leaves returns the number of leaves, with those that pad the tree.
func (t *Tree) Leaves() int64 { return int64(len(t.leaves)) }

// Prove returns the proof of a customer for a statement with the tree's root. It is false if the tree has no such customer.
func (t *Tree) Prove(recorded form.Published, code string) (p *form.Proof, known bool) {
	at, known := slices.BinarySearchFunc(t.customers, code, func(c Customer, code string) int { return strings.Compare(c.Code, code) })
	if !known {
		return nil, false
	}
	p = &form.Proof{Format: form.Format, Recorded: recorded, CustomerCode: code, Nonce: form.Nonce(t.key, code), Value: t.customers[at].Value}
	for index, owner := range t.leaves {
		if int(owner>>2) == at {
			p.Parts = append(p.Parts, t.part(index))
		}
	}
	return p, true
}

// part returns the leaf at an index with its path.
func (t *Tree) part(index int) form.Part {
	size := 1 << t.bottom
	block := make([]form.Node, size)
	for i := range block {
		block[i] = t.leaf(index/size*size + i)
	}
	p := form.Part{Index: int64(index), Value: block[index%size].Sum, Path: []form.Step{}}
	within := index % size
	for len(block) > 1 {
		p.Path = append(p.Path, form.Step(block[within^1]))
		block, _ = above(block, block[:0]) // whose sums were found not to overflow
		within /= 2
	}
	above := index / size
	for _, level := range t.levels[:len(t.levels)-1] {
		p.Path = append(p.Path, form.Step(level[above^1]))
		above /= 2
	}
	return p
}

// leaf computes a leaf again.
func (t *Tree) leaf(index int) form.Node {
	owner := int(t.leaves[index] >> 2)
	if owner == len(t.customers) {
		return form.Leaf(form.SubNonce(form.Nonce(t.key, ""), t.position, ""), form.Amount{}, int64(index))
	}
	c := &t.customers[owner]
	nonce := form.Nonce(t.key, c.Code)
	values, _ := form.Split(nonce, c.Value)
	return form.Leaf(form.SubNonce(nonce, t.position, c.Code), values[t.leaves[index]&3], int64(index))
}

// spread calls work with ranges that make up [0, n), one for each processor, in goroutines, and waits for them.
func spread(n int, work func(worker, from, to int)) {
	workers := runtime.GOMAXPROCS(0)
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() { work(w, n*w/workers, n*(w+1)/workers) })
	}
	group.Wait()
}

// firstError keeps the first error that goroutines report.
type firstError struct {
	once sync.Once
	err  error
}

func (f *firstError) set(err error) { f.once.Do(func() { f.err = err }) }
