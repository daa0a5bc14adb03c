package term

import (
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// TestARecordHoldsTheInputOfItsDecision holds the record of a decision against its value.
func TestARecordHoldsTheInputOfItsDecision(t *testing.T) {
	r := newRig(t).serving()
	c := decide.Recorded{ID: scalar.ID{1}, Type: "engine.step", Actor: decide.Engine}
	d := decide.Decision{Events: []decide.Event{&decide.DueSetAside{Entry: "a/b"}}, Input: `{"single":true}`}
	s, err := r.m.build(r.m.stamp(0), c, d)
	if err != nil || s.entry.Record.Input != d.Input || !strings.Contains(string(s.entry.Value), `"data":{"input":{"single":true}}},"outcome":"accepted"`) {
		t.Errorf("%s (%v)", s.entry.Value, err)
	}
	d.Input = `{"single"`
	if s, err := r.m.build(r.m.stamp(0), c, d); err == nil {
		t.Errorf("a broken input is written: %s", s.entry.Value)
	}
}
