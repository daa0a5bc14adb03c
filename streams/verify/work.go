package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/redecide"
)

// work is the fourth stage: it verifies spans until the channel is closed. With one worker, a span begins with the state after
// the one before.
func (v *verification) work(ctx context.Context, spans <-chan *span) {
	var state decide.State
	var roots *roots
	stated := &statements{secret: v.Keys}
	for s := range spans {
		if s.items[0].Position.Sequence <= v.limit.Load() && !v.failed.Load() {
			if roots == nil && v.Checkpoint != nil {
				roots, s.err = v.Checkpoint.roots(v.Rules.Journal(), s.items[0].Journal)
			}
			if s.err == nil {
				state = v.verify(ctx, s, state, roots, stated)
			}
		}
		if s.err != nil {
			v.failed.Store(true)
		}
		s.items = nil // the memory of the records
		close(s.done)
	}
}

// verify verifies a span and returns the state after it.
func (v *verification) verify(ctx context.Context, s *span, state decide.State, roots *roots, stated *statements) decide.State {
	if s.decides {
		if state = v.before(s, state); state == nil {
			return nil
		}
	}
	if s.state != nil {
		stated.owed = s.owed
	}
	previous := s.previous
	for i := range s.items {
		e := &s.items[i]
		if e.Position.Sequence > v.limit.Load() {
			return nil
		}
		d := v.one(s, state, previous, e)
		if d == nil && roots != nil && e.Position.Sequence < v.Checkpoint.Size {
			if s.err = roots.add(ctx, s, state, e); s.err != nil {
				return nil
			}
		}
		if d == nil {
			if d, s.err = stated.check(ctx, s, state, e); s.err != nil {
				return nil
			}
		}
		if d == nil && state != nil {
			if err := evolve(state, &e.Entry); err != nil {
				d = &Difference{CheckState, e.Position.Sequence, e.Position.Offset, err.Error()}
			} else if owed := owedAfter(state, e); owed != nil {
				stated.owed = owed
			}
		}
		if d != nil {
			v.differs(d)
			return nil
		}
		previous = e.Record.Time
	}
	v.after(ctx, s, state)
	return state
}

// before returns the state before a span.
func (v *verification) before(s *span, state decide.State) decide.State {
	if s.state != nil {
		read, err := v.Codec.Read(s.state)
		if err != nil {
			s.err = fmt.Errorf("verify: the state before record %d can't be read again: %w", s.items[0].Position.Sequence, err)
			return nil
		}
		return read
	}
	if state == nil {
		state = v.Rules.NewState()
	}
	return state
}

// one checks a record: first its form, and then how it was decided on the state before it, unless that is nil.
func (v *verification) one(s *span, state decide.State, previous scalar.Time, e *item) *Difference {
	wrong := func(c Check, reason string) *Difference {
		return &Difference{c, e.Position.Sequence, e.Position.Offset, reason}
	}
	if k := e.message.Kafka; k != nil {
		if err := journal.VerifyKafka(e.Entry, v.Rules.Journal(), k); err != nil {
			return wrong(CheckKafka, err.Error())
		}
	}
	if state == nil {
		if e.Record.Time < previous {
			return wrong(CheckDecision, "the time of the record is before that of the previous record")
		}
		s.decided.Without++
		return nil
	}
	result := v.journal.Redecide(state, previous, e.Entry)
	kind := e.Record.Command.Type
	switch result.Verdict {
	case redecide.Same:
		s.decided.Same++
	case redecide.Undecided:
		s.decided.Undecided++
	case redecide.NotRedecidable:
		s.decided.NotRedecided[kind]++
	case redecide.NotReproduced:
		s.decided.NotReproduced[kind]++
	default:
		return wrong(CheckDecision, kind+": "+result.Reason+contrast(e.Value, result.Value))
	}
	for _, fact := range result.Unverified {
		s.decided.Unverified[fact]++
	}
	return nil
}

// contrast shows where two values begin to differ.
func contrast(is, decided []byte) string {
	if decided == nil {
		return ""
	}
	at := 0
	for at < len(is) && at < len(decided) && is[at] == decided[at] {
		at++
	}
	const around = 24
	part := func(b []byte) []byte { return b[max(0, min(at, len(b))-around):min(len(b), at+around)] }
	return fmt.Sprintf(": from byte %d on it is …%s… and is decided as …%s…", at, part(is), part(decided))
}

// after compares the state after a span.
func (v *verification) after(ctx context.Context, s *span, state decide.State) {
	if state == nil || s.after == nil && len(s.stored) == 0 {
		return
	}
	last := s.items[len(s.items)-1].Position
	encoded := v.Codec.Append(make([]byte, 0, max(len(s.after), v.Codec.Size(state))), state)
	if s.after != nil && !bytes.Equal(encoded, s.after) {
		v.differs(&Difference{CheckState, last.Sequence, last.Offset, "two folds of the records up to this one come to different states"})
		return
	}
	for _, one := range s.stored {
		stored, err := one.Load(ctx)
		switch {
		case errors.Is(err, ErrGone):
		case err != nil:
			s.err = fmt.Errorf("verify: the snapshot at record %d: %w", last.Sequence, err)
			return
		case !bytes.Equal(stored, encoded):
			v.differs(&Difference{CheckState, last.Sequence, last.Offset, "the stored snapshot is another state than that of the records up to this one"})
			return
		default:
			s.equal++
		}
	}
}
