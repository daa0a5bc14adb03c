package columns

// table holds the last members of an object by name. It is a hash table, because a chunk may have many objects and many names.
type table struct {
	members []member // a power of two, of which at most half are used
	used    int
	by      []uint8 // by piece: the anchors that identified the object, as bits; only for encoding
}

// member is the last value of a name. name is one higher, and 0 if there is none.
type member struct {
	name uint32
	last ref
}

// of returns the member with a name, or the one that is free for it.
func (t *table) of(name int) *member {
	mask := len(t.members) - 1
	for i := name & mask; ; i = (i + 1) & mask {
		if m := &t.members[i]; m.name == uint32(name+1) || m.name == 0 {
			return m
		}
	}
}

// fit makes room for more names.
func (t *table) fit(names int) {
	size := max(16, len(t.members))
	for size < 2*(t.used+names) {
		size *= 2
	}
	if size == len(t.members) {
		return
	}
	old := t.members
	t.members = make([]member, size)
	for _, m := range old {
		if m.name != 0 {
			*t.of(int(m.name) - 1) = m
		}
	}
}

// change makes the members of a row the last ones.
func (t *table) change(p *piece, first ref) {
	t.fit(len(p.names))
	for i, name := range p.names {
		m := t.of(name)
		if m.name == 0 {
			m.name = uint32(name + 1)
			t.used++
		}
		m.last = first + ref(i)
	}
}
