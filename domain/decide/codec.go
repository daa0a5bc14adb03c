package decide

import (
	"github.com/perpetua-exchange/perpetua/domain/pack"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// StateCodec writes the states of one journal as bytes and reads them back: what a snapshot is made of. What is read back
// decides and evolves as the state that was written, and is written as the same bytes again.
type StateCodec interface {
	// Version is the number of the form. It changes with the form and with what a state holds.
	Version() int
	// Size returns about how many bytes Append would append. It is quick, whatever the state holds.
	Size(s State) int
	// Append appends the state's bytes. It only reads the state.
	Append(b []byte, s State) []byte
	// Read returns the state that was written. It takes nothing on trust, and keeps nothing of the bytes.
	Read(b []byte) (State, error)
}

// perKey is about how many bytes a remembered key takes.
const perKey = 60

// Size returns about how many bytes Pack would write.
func (m *Memory) Size() int { return len(m.keys) * perKey }

// Pack writes the memory.
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

// valid passes what is remembered, in the order in which it will be forgotten.
func (m *Memory) valid(each func(expiring, remembered)) {
	for _, e := range m.queue[m.head:] {
		if r, ok := m.keys[e.key]; ok && r.time == e.time { // else the key was used again since
			each(e, r)
		}
	}
}

// Unpack reads a memory into m, which is empty.
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
