package decide

import (
	"github.com/perpetua-exchange/perpetua/domain/pack"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

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

// Size estimates how many bytes Pack will write.
func (m *Memory) Size() int { return len(m.keys) * perKey }

// Pack writes the remembered keys.
func (m *Memory) Pack(w *pack.Writer) {
	w.Int(int64(m.last))
	w.Int(int64(m.stood))
	n := 0
	m.valid(func(expiring, remembered) { n++ })
	w.Len(n)
	var last remembered
	m.valid(func(e expiring, r remembered) {
		w.Word(e.key.broker)
		w.Word(e.key.command)
		w.String(e.key.key)
		w.String(r.fingerprint)
		w.Int(r.sequence - last.sequence)
		w.Int(int64(r.time - last.time))
		last = r
	})
}

// valid calls each for every remembered key, in the order in which the keys expire.
func (m *Memory) valid(each func(expiring, remembered)) {
	for _, e := range m.queue[m.head:] {
		if r, ok := m.keys[e.key]; ok && r.time == e.time { // otherwise the key was used again later
			each(e, r)
		}
	}
}

// Unpack reads the remembered keys into m, which must be empty.
func (m *Memory) Unpack(r *pack.Reader) {
	m.last, m.stood = scalar.Time(r.Int()), scalar.Time(r.Int())
	n := r.Len(6)
	if n == 0 {
		return
	}
	m.keys, m.queue = make(map[memoryKey]remembered, n), make([]expiring, 0, n)
	var last remembered
	for range n {
		k := memoryKey{broker: r.Word(), command: r.Word(), key: r.String()}
		last = remembered{fingerprint: r.String(), sequence: last.sequence + r.Int(), time: last.time + scalar.Time(r.Int())}
		m.keys[k] = last
		m.queue = append(m.queue, expiring{k, last.time})
	}
}

// Pack writes the command.
func (c *Recorded) Pack(w *pack.Writer) {
	w.Raw(c.ID[:])
	w.Word(c.Type)
	c.Actor.pack(w)
	w.String(c.Kept.Key)
	w.String(c.Kept.Fingerprint)
	w.Raw(c.Kept.Session[:])
	w.Bool(c.Kept.Source != nil)
	if s := c.Kept.Source; s != nil {
		w.Word(s.Journal)
		w.Int(s.Sequence)
	}
}

// Unpack reads the command.
func (c *Recorded) Unpack(r *pack.Reader) {
	r.Raw(c.ID[:])
	c.Type = r.Word()
	c.Actor = Actor{Sub: r.Word(), Broker: r.Word(), Customer: r.Word(), System: r.Word()}
	c.Kept.Key, c.Kept.Fingerprint = r.String(), r.String()
	r.Raw(c.Kept.Session[:])
	if r.Bool() {
		c.Kept.Source = &Source{Journal: r.Word(), Sequence: r.Int()}
	}
}

func (a *Actor) pack(w *pack.Writer) {
	w.Word(a.Sub)
	w.Word(a.Broker)
	w.Word(a.Customer)
	w.Word(a.System)
}
