package redecide_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/redecide"
)

// failing is a state of which steps fail.
type failing struct {
	*trading.State
	larger, smaller error // panics if set; ErrNoStep and ErrTooLarge fail in their own ways
}

func (f failing) Step(at decide.Stamp, single bool) decide.Decision {
	err := f.larger
	if single {
		err = f.smaller
	}
	d := f.State.Step(at, single)
	switch {
	case err == nil:
		return d
	case errors.Is(err, decide.ErrNoStep):
		return decide.Decision{}
	case errors.Is(err, record.ErrTooLarge):
		for len(d.Events) < 10_000 {
			d.Events = append(d.Events, d.Events...)
		}
		return d
	}
	panic(err)
}

// TestStepsThatFail records what an owner does when steps fail, and has it decided again on a state of which other steps
// fail.
func TestStepsThatFail(t *testing.T) {
	broke, other := errors.New("broke"), errors.New("broke otherwise")
	for name, c := range map[string]struct {
		cause           string // of the entry that is set aside; "" for a step with one entry
		larger, smaller error
		want            redecide.Verdict
		reason          string
	}{
		"one entry after a panic":            {"", broke, nil, redecide.Same, ""},
		"one entry after one that is large":  {"", record.ErrTooLarge, nil, redecide.Same, ""},
		"one entry after nothing":            {"", decide.ErrNoStep, nil, redecide.Same, ""},
		"one entry that fails":               {"", broke, broke, redecide.Different, "broke"},
		"set aside after panics":             {"panic: broke", broke, broke, redecide.Same, ""},
		"set aside after nothing":            {"the step does nothing", record.ErrTooLarge, decide.ErrNoStep, redecide.Same, ""},
		"set aside after another panic":      {"panic: broke", broke, other, redecide.NotReproduced, "another cause: panic: broke otherwise"},
		"set aside, and one entry works":     {"panic: broke", broke, nil, redecide.NotReproduced, "one entry does not fail"},
		"set aside, and all works":           {"panic: broke", nil, broke, redecide.NotReproduced, "the step does not fail"},
		"set aside for nothing, which works": {"the step does nothing", broke, nil, redecide.Different, "one entry does not fail"},
		"set aside for size, and panics":     {"the record would be too large: 262145 bytes", broke, broke, redecide.Different, "another cause"},
	} {
		for _, rules := range []int{2, 3} {
			t.Run(name, func(t *testing.T) {
				v := open(t, rules)
				v.expire()
				before, state := v.now-1, v.fold()
				d := v.state.Step(v.stamp(), true)
				if c.cause != "" {
					d = v.state.SetAside(v.stamp(), c.cause)
				}
				v.forge(decide.Recorded{ID: scalar.ID{2}, Type: "engine.step"}, d)
				got := tradingJournal().Redecide(failing{state, c.larger, c.smaller}, before, v.entries[len(v.entries)-1])
				if got.Verdict != c.want || !strings.Contains(got.Reason, c.reason) {
					t.Errorf("rules %d: %s: %s, and not %s: %s", rules, got.Verdict, got.Reason, c.want, c.reason)
				}
			})
		}
	}
}

// TestSetAsideForItsSize: the cause has the size of the record that would have been made.
func TestSetAsideForItsSize(t *testing.T) {
	v := open(t, 3)
	v.expire()
	state, at := v.fold(), v.stamp()
	tooLarge := failing{state, record.ErrTooLarge, record.ErrTooLarge}
	made := &record.Record{Sequence: at.Sequence, Time: at.Time, Command: decide.Recorded{ID: scalar.ID{2}, Type: "engine.step", Actor: decide.Engine},
		Outcome: decide.Accepted, Events: tooLarge.Step(at, true).Events, Input: decide.EncodeInput(decide.StepInput{Single: true})}
	_, err := record.EncodeWithin(nil, made, trading.Rules().Limit())
	if !errors.Is(err, record.ErrTooLarge) {
		t.Fatal(err)
	}
	v.forge(made.Command, v.state.SetAside(at, decide.CauseOf(err)))
	if got := tradingJournal().Redecide(tooLarge, 0, v.entries[len(v.entries)-1]); got.Verdict != redecide.Same {
		t.Errorf("%s: %s", got.Verdict, got.Reason)
	}
}

// fold returns the fold of all records so far.
func (v *venue) fold() *trading.State {
	state := trading.NewState()
	for _, e := range v.entries {
		state.Evolve(e.Stamp(), e.Record.Command, e.Record.Outcome, e.Record.Events)
	}
	return state
}
