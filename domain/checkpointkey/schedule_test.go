package checkpointkey_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"
	"pgregory.net/rapid"

	"github.com/perpetua-exchange/perpetua/domain/checkpointkey"
	"github.com/perpetua-exchange/perpetua/domain/checkpointkey/checkpointkeytest"
	"github.com/perpetua-exchange/perpetua/domain/pack"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// TestSigning: the previous key signs alone up to the rotation, both sign up to the retirement, and then only the new one.
func TestSigning(t *testing.T) {
	var s checkpointkey.Schedule
	for sequence, at := range []scalar.Time{0, 10, 10, 20, 29, 30, 31, 40, 50, 60} {
		s.Pass(int64(sequence), at)
		for generation, rotation := range map[int]int{2: 2, 3: 6} {
			if rotation == sequence {
				if err := s.Rotate(checkpointkey.Rotation{Sequence: int64(sequence), Generation: generation, Previous: fmt.Sprint("a+", generation-1), Key: fmt.Sprint("a+", generation), Until: at + 20}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	rotations := s.Of("a")
	for size, want := range [][]int{{1}, {1}, {1}, {2, 1}, {2, 1}, {2, 1}, {2}, {3, 2}, {3, 2}, {3, 2}, {3}, {3}} {
		// Records 2 and 6 name keys, 5 is the first at 30, and 9 the first at 51 or later.
		if got := checkpointkey.Signing(rotations, int64(size)); !slices.Equal(got, want) {
			t.Errorf("the tree of size %d is signed by %v, not %v", size, got, want)
		}
	}
	for generation, want := range []string{"", "a+1", "a+2", "a+3", ""} {
		if got := checkpointkey.Named(rotations, generation); got != want {
			t.Errorf("generation %d is %q", generation, got)
		}
	}
	if got := checkpointkey.Signing(s.Of("b"), 5); !slices.Equal(got, []int{1}) {
		t.Errorf("another log is signed by %v", got)
	}
	if err := s.Rotate(checkpointkey.Rotation{Sequence: 11, Generation: 3, Key: "a+4"}); err == nil {
		t.Error("a generation follows itself")
	}
}

// TestSigningDependsOnTheTree: whoever knows more records than those of a tree computes the same keys for it.
func TestSigningDependsOnTheTree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s checkpointkey.Schedule
		var after []checkpointkey.Schedule // each record
		at := scalar.Time(1)
		for sequence := range int64(40) {
			at += scalar.Time(rapid.Int64Range(0, 15).Draw(t, "pause")) * scalar.Day
			s.Pass(sequence, at)
			if last, ok := s.Last("a"); sequence > 0 && (!ok || at >= last.Until) && rapid.Bool().Draw(t, "rotate") {
				next := max(last.Generation, 1) + 1
				if err := s.Rotate(checkpointkey.Rotation{Sequence: sequence, Generation: next, Key: fmt.Sprint("a+", next), Until: at + checkpointkey.Overlap}); err != nil {
					t.Fatal(err)
				}
			}
			after = append(after, s.Clone())
		}
		last := 0
		for sequence, then := range after {
			size := int64(sequence) + 1
			want := checkpointkey.Signing(then.Of("a"), size)
			if got := checkpointkey.Signing(s.Of("a"), size); !slices.Equal(got, want) {
				t.Fatalf("the tree of size %d is signed by %v, and later by %v", size, want, got)
			}
			if want[0] < last || want[0] > last+1 {
				t.Fatalf("generation %d follows %d", want[0], last)
			}
			last = want[0]
		}
	})
}

// TestScheduleIsSaved reads what was written, and changes no clone.
func TestScheduleIsSaved(t *testing.T) {
	var s checkpointkey.Schedule
	for i, of := range []string{"a", "b", "a"} {
		last, _ := s.Last(of)
		if err := s.Rotate(checkpointkey.Rotation{Sequence: int64(i + 1), Generation: max(last.Generation, 1) + 1, Previous: last.Key, Key: fmt.Sprint(of, "+", i), Until: scalar.Time(100 * i)}); err != nil {
			t.Fatal(err)
		}
	}
	clone := s.Clone()
	s.Pass(7, 150)
	var read checkpointkey.Schedule
	if err := pack.Read(pack.Append(nil, s.Visit), read.Visit); err != nil || !reflect.DeepEqual(read, s) {
		t.Errorf("%v is read as %v: %v", s, read, err)
	}
	if r, _ := read.Last("b"); r.Retired != 7 {
		t.Errorf("it is retired at %d", r.Retired)
	}
	if r, _ := clone.Last("b"); r.Retired != 0 {
		t.Error("a clone has changed")
	}
}

// TestCheck accepts what package note accepts of Ed25519 keys.
func TestCheck(t *testing.T) {
	good := checkpointkeytest.Key(checkpointkeytest.Origin("trading", scalar.ID{1}), 3)
	if err := checkpointkey.Check(good); err != nil {
		t.Error(err)
	}
	if _, err := note.NewVerifier(good); err != nil {
		t.Error(err)
	}
	if got := checkpointkey.Origin(good); got != checkpointkeytest.Origin("trading", scalar.ID{1}) {
		t.Error(got)
	}
	name, rest, _ := strings.Cut(good, "+")
	for _, bad := range []string{"", "a", "a+b", "a+b+c", good[:len(good)-1], good + "A", "x" + good, "+" + rest, name + " +" + rest, name + "\n+" + rest,
		strings.Replace(good, "+AQ", "+BA", 1), strings.Replace(good, "+AX", "+BH", 1), strings.Repeat("a", 500) + good} {
		if bad != good && checkpointkey.Check(bad) == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}
