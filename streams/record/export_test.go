package record

import "github.com/perpetua-exchange/perpetua/domain/decide"

// DecodeInPieces decodes a value without the fast path. Encoding raw copies the data of the events from the value.
func DecodeInPieces(rules *decide.Registry, value []byte) (r, raw *Record, err error) {
	e, err := parseEnvelope(value)
	if err != nil {
		return nil, nil, err
	}
	if r, err = e.finish(Shapes(), rules); err != nil {
		return nil, nil, err
	}
	raw = new(e.record)
	for _, v := range e.events {
		raw.Events = append(raw.Events, &copied{v})
	}
	return r, raw, nil
}

// copied is an event that encodes itself as the bytes that it was decoded from.
type copied struct{ raw rawEvent }

func (c *copied) EventType() string                   { return c.raw.name }
func (c *copied) EventVersion() int                   { return c.raw.version }
func (c *copied) AppendJSON(b []byte) ([]byte, error) { return append(b, c.raw.data...), nil }
