package record

import (
	"slices"
	"strings"
	"testing"
)

func TestLogPositionsHaveOneForm(t *testing.T) {
	for s, want := range map[string]LogPosition{
		"trading/0@123":   {"trading", 0, 123},
		"identity/7@0":    {"identity", 7, 0},
		"onboarding/0@-1": {"onboarding", 0, -1},
	} {
		got, err := ParseLogPosition(s)
		if err != nil || got != want || got.String() != s {
			t.Errorf("%s: %+v %v", s, got, err)
		}
		var back LogPosition
		if text, err := got.MarshalText(); err != nil || back.UnmarshalText(text) != nil || back != want {
			t.Errorf("%s: %s %+v %v", s, text, back, err)
		}
	}
	for _, s := range []string{"", "trading", "trading/0", "/0@1", "trading/@1", "trading/0@", "trading/00@1", "trading/0@01", "trading/0@+1",
		"trading/-1@1", "trading/0@-2", "Trading/0@1", "trading/0@1 ", "trading/99999999999@1", "trading/0@9223372036854775808", "a/b/0@1"} {
		if got, err := ParseLogPosition(s); err == nil {
			t.Errorf("%q is %+v", s, got)
		}
	}
}

func TestHashesHaveOneForm(t *testing.T) {
	h := Hash{0, 1, 0xab}
	if got, err := ParseHash(h.String()); err != nil || got != h {
		t.Errorf("%v %v", got, err)
	}
	for _, s := range []string{"", "00", strings.Repeat("0", 63), strings.Repeat("0", 65), strings.Repeat("A", 64), strings.Repeat("g", 64)} {
		if _, err := ParseHash(s); err == nil {
			t.Errorf("%q is a hash", s)
		}
	}
}

func TestAnchorsGiveTheNearestPositionBelow(t *testing.T) {
	var a Anchors
	if !a.Below(5).Equal(Before) {
		t.Error("an empty one knows something")
	}
	for i := range int64(5000) {
		a.Note(Position{Offset: i + 3, Sequence: i})
	}
	a.Note(Position{Sequence: 1024}) // a fold that begins anew goes over known ground
	for sequence, want := range map[int64]int64{0: -1, 1: 0, 1024: 0, 1025: 1024, 4097: 4096, 9999: 4096} {
		if got := a.Below(sequence); got.Sequence != want {
			t.Errorf("below %d is %d", sequence, got.Sequence)
		}
	}
}

func TestAnchorsTakeOverWhatOthersPassed(t *testing.T) {
	at := func(sequences ...int64) (list []Position) {
		for _, n := range sequences {
			list = append(list, Position{Offset: n + 3, Sequence: n})
		}
		return list
	}
	var a Anchors
	a.Fill(at(0, 1024, 2048))
	a.Note(at(3072)[0])
	a.Fill(at(0, 1024, 2048, 4096)) // one that began later and reaches further
	a.Note(at(5120)[0])
	if got, want := a.All(), at(0, 1024, 2048, 3072, 4096, 5120); !slices.EqualFunc(got, want, Position.Equal) {
		t.Errorf("%v instead of %v", got, want)
	}
}
