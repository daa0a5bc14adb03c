package decide

import (
	"fmt"

	"github.com/perpetua-exchange/perpetua/domain/pack"
)

// VisitCodec is a StateCodec that follows from one visit of the state.
type VisitCodec[S State] struct {
	Journal string // named in errors
	Number  int    // returned by Version
	New     func() S
	// Visit visits the whole state. Reading fills s, which is new.
	Visit func(s S, c *pack.Coder)
}

// Version implements StateCodec.
func (v VisitCodec[S]) Version() int { return v.Number }

// Size implements StateCodec.
func (v VisitCodec[S]) Size(s State) int { return pack.Size(v.visit(s.(S))) }

// Append implements StateCodec.
func (v VisitCodec[S]) Append(b []byte, s State) []byte { return pack.Append(b, v.visit(s.(S))) }

// Read implements StateCodec.
func (v VisitCodec[S]) Read(b []byte) (State, error) {
	s := v.New()
	if err := pack.Read(b, v.visit(s)); err != nil {
		return nil, fmt.Errorf("%s: %w", v.Journal, err)
	}
	return s, nil
}

func (v VisitCodec[S]) visit(s S) func(*pack.Coder) {
	return func(c *pack.Coder) { v.Visit(s, c) }
}
