package trading

// chain is a linked list of entries that have their own links, so that an entry is removed without a search. L says
// where an entry has the links of this chain.
type chain[E any, L linked[E]] struct {
	first, last *E
	length      int
}

// links are the neighbors of an entry in a chain.
type links[E any] struct{ before, after *E }

type linked[E any] interface {
	// links returns the links of an entry.
	links(e *E) *links[E]
}

// push appends an entry that is not in the chain.
func (c *chain[E, L]) push(e *E) {
	var of L
	of.links(e).before = c.last
	if c.last == nil {
		c.first = e
	} else {
		of.links(c.last).after = e
	}
	c.last = e
	c.length++
}

// remove removes an entry of the chain.
func (c *chain[E, L]) remove(e *E) {
	var of L
	at := of.links(e)
	if at.before == nil {
		c.first = at.after
	} else {
		of.links(at.before).after = at.after
	}
	if at.after == nil {
		c.last = at.before
	} else {
		of.links(at.after).before = at.before
	}
	*at = links[E]{}
	c.length--
}
