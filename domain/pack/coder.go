// Package pack writes and reads the compact binary form of saved states: numbers of variable length, strings with their
// lengths, and words, which are written once and then referred to by number.
//
// The form has no types. A visit calls a Coder once for each field of a state, always in the same order, and thereby
// describes the form: Append, Read and Size follow from it. A visit MUST NOT change the state unless the Coder is
// reading, and MUST do the same for equal states. A Coder that reads validates everything: after the first invalid value
// it has failed, and reads only zero values.
package pack

import "slices"

// Coder writes the fields that a visit passes to it, or reads them.
type Coder struct {
	reading bool
	sample  int // sizing: the number of elements that are visited of a list; otherwise 0
	more    int // sizing: bytes of the elements that were not visited
	w       writer
	r       reader
}

// Append appends what the visit writes.
func Append(b []byte, visit func(*Coder)) []byte {
	c := Coder{w: writer{bytes: slices.Grow(b, Size(visit))}}
	visit(&c)
	return c.w.bytes
}

// Extend is Append for a buffer that is used again and again. It does not compute the size first.
func Extend(b []byte, visit func(*Coder)) []byte {
	c := Coder{w: writer{bytes: b}}
	visit(&c)
	return c.w.bytes
}

// Read has the visit read what Append appended. It fails with the visit's error, or with ErrForm if the bytes are cut
// off, damaged or too many. Nothing that is read refers to b.
func Read(b []byte, visit func(*Coder)) error {
	c := Coder{reading: true, r: reader{bytes: b}}
	visit(&c)
	return c.r.done()
}

// sampled is the number of elements of a list by which Size estimates the others.
const sampled = 64

// Size returns about how many bytes Append would append, usually a little more. Of a list it visits a few elements and
// takes the others to be like them.
func Size(visit func(*Coder)) int {
	c := Coder{sample: sampled}
	visit(&c)
	return c.size()
}

// Reading reports whether the visit fills the state.
func (c *Coder) Reading() bool { return c.reading }

// Sizing reports whether the visit is one of Size, which need not be complete.
func (c *Coder) Sizing() bool { return c.sample > 0 }

// Add adds bytes to what Size returns, for parts that a visit leaves out while it is Sizing.
func (c *Coder) Add(bytes int) { c.more += bytes }

func (c *Coder) size() int { return len(c.w.bytes) + c.more }

// Err returns why reading failed, or nil.
func (c *Coder) Err() error { return c.r.err }

// Fail makes reading fail. From then on only zero values are read. It does nothing while writing.
func (c *Coder) Fail(err error) {
	if c.reading {
		c.r.fail(err)
	}
}

// Check makes reading fail with ErrForm unless what was read is valid.
func (c *Coder) Check(valid bool) {
	if !valid {
		c.Fail(ErrForm)
	}
}

// Int visits a number, which takes fewer bytes the closer it is to zero.
func Int[T ~int64](c *Coder, p *T) {
	if n := c.int(int64(*p)); c.reading {
		*p = T(n)
	}
}

// Delta visits a number that is likely to be near another, which the reader knows.
func Delta[T ~int64](c *Coder, p *T, near T) {
	if n := c.int(int64(*p - near)); c.reading {
		*p = near + T(n)
	}
}

// int is what Int and Delta, which are inlined, have in common.
func (c *Coder) int(n int64) int64 {
	if c.reading {
		if n, ok := c.r.one(); ok {
			return int64(n>>1) ^ -int64(n&1)
		}
		return c.r.int()
	}
	c.w.int(n)
	return n
}

// Small visits a number that fits an int32.
func Small[T ~int](c *Coder, p *T) {
	if c.reading {
		*p = T(c.r.small())
		return
	}
	c.w.int(int64(*p))
}

// Byte visits a byte.
func Byte[T ~uint8](c *Coder, p *T) {
	if c.reading {
		*p = T(c.r.byte())
		return
	}
	c.w.byte(byte(*p))
}

// Uint visits a number that is not negative.
func (c *Coder) Uint(p *uint64) {
	if c.reading {
		*p = c.r.uint()
		return
	}
	c.w.uint(*p)
}

// Bool visits a boolean.
func (c *Coder) Bool(p *bool) {
	if c.reading {
		*p = c.r.bool()
		return
	}
	b := byte(0)
	if *p {
		b = 1
	}
	c.w.byte(b)
}

// Raw visits all bytes of b, whose length the reader knows.
func (c *Coder) Raw(b []byte) {
	if c.reading {
		c.r.raw(b)
		return
	}
	c.w.raw(b)
}

// String visits a string.
func String[T ~string](c *Coder, p *T) {
	if c.reading {
		*p = T(c.r.string())
		return
	}
	c.w.string(string(*p))
}

// Bytes visits bytes. If there are none, nil is read.
func Bytes[T ~[]byte](c *Coder, p *T) {
	if !c.reading {
		c.w.uint(uint64(len(*p)))
		c.w.raw(*p)
	} else if n := c.r.len(); n > 0 {
		*p = make(T, n)
		c.r.raw(*p)
	}
}

// Word visits a string that is likely to be visited again. Equal words that are read share their memory.
func Word[T ~string](c *Coder, p *T) {
	if s := c.word(string(*p)); c.reading {
		*p = T(s)
	}
}

func (c *Coder) word(s string) string {
	if c.reading {
		return c.r.word()
	}
	if last := &c.w.last[len(s)%len(c.w.last)]; last.number > 0 && last.text == s {
		c.w.uint(last.number)
	} else {
		c.w.word(s, last)
	}
	return s
}

// Len visits the number of elements of a list: n, if the Coder is writing. An element takes at least one byte, so
// reading fails if fewer bytes are left. The number may still be damaged: a visit MUST stop at the first element that
// fails, and make room at first only for Room elements.
func (c *Coder) Len(n int) int {
	if c.reading {
		return c.r.len()
	}
	c.w.uint(uint64(n))
	return n
}

// bytesPerRoom is the size of an element for which Room makes room without having read it.
const bytesPerRoom = 8

// Room returns for how many of the n elements of a list that is read room can be made before they are read: n, or fewer
// if n may be damaged. The list grows beyond them as elements are read, so memory is proportional to the bytes read.
func (c *Coder) Room(n int) int { return min(n, c.r.left()/bytesPerRoom) }

// Index visits a number below a limit: n, if the Coder is writing. It returns 0 if reading fails.
func (c *Coder) Index(n, limit int) int {
	if c.reading {
		return c.r.index(limit)
	}
	c.w.uint(uint64(n))
	return n
}

// each calls visit with the indexes of the n elements of a list. While sizing, it leaves some out.
func (c *Coder) each(n int, visit func(int)) {
	if c.sample == 0 || n <= c.sample {
		for i := range n {
			visit(i)
		}
		return
	}
	before := c.size() // 3 % are added to the sample's size, so that the estimate is seldom too low
	for i := range c.sample {
		visit(i * n / c.sample)
	}
	like := (c.size() - before) * (n - c.sample) / c.sample
	c.more += like + like/32
}

// Slice visits a list of elements. If there are none, nil is read.
func Slice[T any](c *Coder, p *[]T, visit func(*T, *Coder)) {
	n := c.Len(len(*p))
	if !c.reading {
		c.each(n, func(i int) { visit(&(*p)[i], c) })
		return
	}
	for n > 0 && c.r.err == nil {
		*p = append(*p, *new(T))
		visit(&(*p)[len(*p)-1], c)
		n--
	}
}

// List visits a list of pointers to elements. Reading appends each element after it was visited, and stops where it
// fails.
func List[T any](c *Coder, p *[]*T, visit func(*T)) {
	n := c.Len(len(*p))
	if !c.reading {
		c.each(n, func(i int) { visit((*p)[i]) })
		return
	}
	*p = slices.Grow(*p, c.Room(n))
	for n > 0 && c.r.err == nil {
		one := new(T)
		visit(one)
		*p = append(*p, one)
		n--
	}
}

// Ordered visits the values of a map in the order of their keys in a list. Visit returns the key of the value. Reading
// adds to both and fails where a key comes twice.
func Ordered[K comparable, V any](c *Coder, order *[]K, m map[K]*V, visit func(*V) K) {
	n := c.Len(len(*order))
	if !c.reading {
		c.each(n, func(i int) { visit(m[(*order)[i]]) })
		return
	}
	for n > 0 && c.r.err == nil {
		one := new(V)
		key := visit(one)
		c.Check(m[key] == nil)
		m[key] = one
		*order = append(*order, key)
		n--
	}
}

// Map visits the entries of a map in the order of their keys. The visit returns the key and the value, which are new
// while reading. Reading makes the map if it is nil, and fails where a key comes twice.
func Map[K comparable, V any](c *Coder, p *map[K]V, compare func(a, b K) int, visit func(K, V) (K, V)) {
	n := c.Len(len(*p))
	if !c.reading {
		keys := sortedKeys(*p, compare)
		c.each(n, func(i int) { visit(keys[i], (*p)[keys[i]]) })
		return
	}
	if *p == nil {
		*p = make(map[K]V, c.Room(n))
	}
	for n > 0 && c.r.err == nil {
		key, value := visit(*new(K), *new(V))
		_, twice := (*p)[key]
		c.Check(!twice)
		(*p)[key] = value
		n--
	}
}

// sortedKeys returns the keys of a map in their order.
func sortedKeys[K comparable, V any](m map[K]V, compare func(a, b K) int) []K {
	keys := make([]K, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, compare)
	return keys
}

// Optional visits whether there is a value, and the value.
func Optional[T any](c *Coder, p **T, visit func(*T, *Coder)) {
	present := *p != nil
	c.Bool(&present)
	if !present {
		return
	}
	if c.reading {
		*p = new(T)
	}
	visit(*p, c)
}

// Table numbers values, in the order in which they are visited, so that later fields can refer to them. The zero Table
// is empty and ready for use.
type Table[T any] struct {
	numbers map[*T]int // writing
	all     []*T       // reading
}

// Expect makes room for about n values. It is called before Add, if at all.
func (t *Table[T]) Expect(c *Coder, n int) {
	switch {
	case c.reading:
		t.all = make([]*T, 0, n)
	case c.sample == 0:
		t.numbers = make(map[*T]int, n)
	}
}

// Add gives a value the next number.
func (t *Table[T]) Add(c *Coder, p *T) {
	switch {
	case c.reading:
		t.all = append(t.all, p)
	case c.sample == 0:
		if t.numbers == nil {
			t.Expect(c, 0)
		}
		t.numbers[p] = len(t.numbers)
	}
}

// Ref visits a pointer to a value in a table, as its number. Reading fails and leaves the pointer as it is if there is no
// such value.
func Ref[T any](c *Coder, p **T, t *Table[T]) {
	if !c.reading {
		c.w.uint(uint64(t.numbers[*p]))
	} else if n := c.r.index(len(t.all)); c.r.err == nil {
		*p = t.all[n]
	}
}

// OptionalRef visits a pointer that may be nil.
func OptionalRef[T any](c *Coder, p **T, t *Table[T]) {
	if !c.reading {
		n, present := t.numbers[*p]
		if present {
			n++
		}
		c.w.uint(uint64(n))
	} else if n := c.r.index(len(t.all) + 1); n > 0 {
		*p = t.all[n-1]
	}
}
