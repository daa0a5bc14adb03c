package decide

import "github.com/perpetua-exchange/perpetua/domain/pack"

// StateCodec encodes the states of one journal for snapshots. A decoded state MUST decide and evolve like the state that
// was encoded, and encode to the same bytes.
type StateCodec interface {
	// Version is the version of the encoding. It changes with the encoding and with the fields of the state.
	Version() int
	// Size estimates how many bytes Append will append. It is fast for a state of any size.
	Size(s State) int
	// Append appends the encoded state. It only reads the state.
	Append(b []byte, s State) []byte
	// Read decodes a state. It validates everything and retains no part of b.
	Read(b []byte) (State, error)
}

// perKey estimates the encoded size of a remembered key, in bytes.
const perKey = 60

// visit visits the memory. What is read goes into m, which is empty.
func (m *Memory) visit(c *pack.Coder) {
	pack.Int(c, &m.last)
	pack.Int(c, &m.excludedTime)
	if c.Sizing() {
		c.Add(len(m.keys) * perKey)
		return
	}
	var last remembered
	n := c.Len(m.count(c))
	if !c.Reading() {
		m.valid(func(e expiring, r remembered) {
			r.visit(c, &e.key, &last)
			last = r
		})
		return
	}
	if n > 0 {
		m.keys, m.queue = make(map[memoryKey]remembered, c.Room(n)), make([]expiring, 0, c.Room(n))
	}
	for ; n > 0 && c.Err() == nil; n-- {
		var k memoryKey
		var r remembered
		r.visit(c, &k, &last)
		last = r
		m.keys[k] = r
		m.queue = append(m.queue, expiring{k, r.time})
	}
}

// count returns the number of remembered keys to write.
func (m *Memory) count(c *pack.Coder) (n int) {
	if !c.Reading() {
		m.valid(func(expiring, remembered) { n++ })
	}
	return n
}

// visit visits a remembered key after the last one.
func (r *remembered) visit(c *pack.Coder, k *memoryKey, last *remembered) {
	pack.Word(c, &k.broker)
	pack.Word(c, &k.command)
	pack.String(c, &k.key)
	pack.String(c, &r.fingerprint)
	pack.Delta(c, &r.sequence, last.sequence)
	pack.Delta(c, &r.time, last.time)
}

// valid passes the remembered keys in the order in which they will be forgotten.
func (m *Memory) valid(each func(expiring, remembered)) {
	for _, e := range m.queue[m.head:] {
		if r, ok := m.keys[e.key]; ok && r.time == e.time { // otherwise the key was used again since
			each(e, r)
		}
	}
}

// Visit visits the command.
func (r *Recorded) Visit(c *pack.Coder) {
	c.Raw(r.ID[:])
	pack.Word(c, &r.Type)
	for _, word := range [...]*string{&r.Actor.Sub, &r.Actor.Broker, &r.Actor.Customer, &r.Actor.System} {
		pack.Word(c, word)
	}
	pack.String(c, &r.Metadata.Key)
	pack.String(c, &r.Metadata.Fingerprint)
	c.Raw(r.Metadata.Session[:])
	pack.Optional(c, &r.Metadata.Source, (*Source).visit)
}

func (s *Source) visit(c *pack.Coder) {
	pack.Word(c, &s.Journal)
	pack.Int(c, &s.Sequence)
}
