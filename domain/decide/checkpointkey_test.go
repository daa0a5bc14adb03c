package decide

import (
	"errors"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/checkpointkey"
	"github.com/perpetua-exchange/perpetua/domain/checkpointkey/checkpointkeytest"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// TestCheckpointKeysRotate: one after the other, each after the one before has retired, and each log on its own.
func TestCheckpointKeysRotate(t *testing.T) {
	journal := scalar.ID{7}
	origin := checkpointkeytest.Origin("trading", journal)
	key := func(n byte) string { return checkpointkeytest.Key(origin, n) }
	other := func(n byte) string { return strings.Replace(key(n), "venue", "other", 1) }
	renamed := strings.Replace(origin, "venue", "other", 1)
	c := NewCore(Numbers{Newest: 2, CheckpointKeys: 2})
	give := func(sequence int64, at scalar.Time, p *RotateCheckpointKey) string {
		t.Helper()
		stamp := Stamp{Journal: journal, Sequence: sequence, Time: at}
		cmd := Command{Type: p.CommandType(), Actor: Actor{Sub: "operator"}, Payload: p}
		d, _, err := c.Decide(stamp, cmd, nil)
		var refusal *Refusal
		switch {
		case errors.As(err, &refusal):
			return strings.TrimSpace(refusal.Code + " " + refusal.Field)
		case err != nil:
			t.Fatal(err)
		}
		again := new(RotateCheckpointKey)
		if err := again.Reconstruct(&Evidence{At: stamp, Events: d.Events}); err != nil || *again != *p {
			t.Errorf("it is decided again as %+v: %v", again, err)
		}
		if e := d.Events[0].(*CheckpointKeyRotated); e.Until != at+30*scalar.Day {
			t.Errorf("the previous key signs until %v", e.Until)
		}
		c.Evolve(stamp, cmd.Recorded(), d.Events)
		return ""
	}
	if got := give(1, 1, &RotateCheckpointKey{2, key(1), key(2)}); got != "CHECKPOINT_KEYS_NOT_IN_FORCE" {
		t.Errorf("under rules 1: %s", got)
	}
	c.Evolve(Stamp{Sequence: 1}, Recorded{}, []Event{&RulesActivated{Rules: 2}})
	day := scalar.Day
	for n, tt := range []struct {
		sequence int64
		at       scalar.Time
		payload  RotateCheckpointKey
		want     string
	}{
		{2, day, RotateCheckpointKey{1, key(1), key(2)}, "GENERATION_NOT_NEXT generation"},
		{2, day, RotateCheckpointKey{3, key(1), key(2)}, "GENERATION_NOT_NEXT generation"},
		{2, day, RotateCheckpointKey{2, key(1), "x"}, "INVALID_KEY key"},
		{2, day, RotateCheckpointKey{2, key(1), other(2)}, "INVALID_KEY key"}, // the hash is that of the other name
		{2, day, RotateCheckpointKey{2, "", key(2)}, "INVALID_PREVIOUS previous"},
		{2, day, RotateCheckpointKey{2, key(2), key(2)}, "INVALID_PREVIOUS previous"},
		{2, day, RotateCheckpointKey{2, checkpointkeytest.Key(renamed, 1), key(2)}, "INVALID_PREVIOUS previous"},
		{2, day, RotateCheckpointKey{2, checkpointkeytest.Key("a/"+scalar.ID{8}.String(), 1), checkpointkeytest.Key("a/"+scalar.ID{8}.String(), 2)}, "INVALID_KEY key"},
		{2, day, RotateCheckpointKey{2, key(1), key(2)}, ""},
		{3, day, RotateCheckpointKey{2, key(1), key(2)}, "GENERATION_NOT_NEXT generation"},
		{3, 31*day - 1, RotateCheckpointKey{3, key(2), key(3)}, "CHECKPOINT_KEYS_OVERLAP"},
		{3, 31 * day, RotateCheckpointKey{3, key(1), key(3)}, "ANOTHER_CHECKPOINT_KEY"},
		{3, 5 * day, RotateCheckpointKey{2, checkpointkeytest.Key(renamed, 1), checkpointkeytest.Key(renamed, 2)}, ""}, // another log of the journal
		{4, 31 * day, RotateCheckpointKey{3, key(2), key(3)}, ""},
	} {
		if got := give(tt.sequence, tt.at, &tt.payload); got != tt.want {
			t.Errorf("%d: %q, want %q", n, got, tt.want)
		}
	}
	s := c.CheckpointKeys()
	if of := s.Of(origin); len(of) != 2 || of[0].Retired != 4 || of[1].Retired != 0 || checkpointkey.Named(of, 3) != key(3) || len(s.Of(renamed)) != 1 {
		t.Errorf("the rotations are %+v", of)
	}
}

// TestAKeyIsNotMadeTooEarly: a rotation is refused before its key is made, under earlier rules, and from the rotation before until that
// is over by a record or by the clock.
func TestAKeyIsNotMadeTooEarly(t *testing.T) {
	origin := checkpointkeytest.Origin("trading", scalar.ID{7})
	c := NewCore(Numbers{Newest: 2, CheckpointKeys: 2})
	may := func(now scalar.Time) string {
		var refusal *Refusal
		if err := c.MayRotateCheckpointKey(origin, now); errors.As(err, &refusal) {
			return refusal.Code
		} else if err != nil {
			t.Fatal(err)
		}
		return ""
	}
	evolve := func(sequence int64, at scalar.Time, events ...Event) {
		c.Evolve(Stamp{Sequence: sequence, Time: at}, Recorded{}, events)
	}
	day := scalar.Day
	for n, tt := range []struct {
		before func()
		now    scalar.Time
		want   string
	}{
		{func() {}, day, "CHECKPOINT_KEYS_NOT_IN_FORCE"},
		{func() { evolve(1, day, &RulesActivated{Rules: 2}) }, day, ""},
		{func() {
			evolve(2, day, &CheckpointKeyRotated{Generation: 2, Previous: checkpointkeytest.Key(origin, 1), Key: checkpointkeytest.Key(origin, 2), Until: 31 * day})
		}, 31*day - 1, "CHECKPOINT_KEYS_OVERLAP"},
		{func() {}, 31 * day, ""},
		{func() { evolve(3, 31*day) }, 30 * day, ""}, // this clock is behind the log
	} {
		tt.before()
		if got := may(tt.now); got != tt.want {
			t.Errorf("%d: %q, want %q", n, got, tt.want)
		}
	}
}
