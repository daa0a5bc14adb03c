package epoch_test

import (
	"fmt"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/epoch"
	"github.com/perpetua-exchange/perpetua/domain/pack"
)

func rotated(t *testing.T) epoch.Schedule {
	t.Helper()
	var s epoch.Schedule
	for _, r := range []struct {
		sequence   int64
		generation int
	}{{7, 1}, {10, 2}, {4095, 3}, {5000, 4}} {
		if err := s.Rotate(r.sequence, r.generation, fmt.Sprint("id-", r.generation)); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func TestSchedule(t *testing.T) {
	s := rotated(t)
	for sequence, want := range map[int64]int{0: 1, 10: 1, 11: 2, 4095: 2, 4096: 3, 5000: 3, 5001: 4, 1 << 40: 4} {
		if got, _ := s.At(sequence); got != want {
			t.Errorf("at %d generation %d is in force, not %d", sequence, got, want)
		}
		if got, id := new(epoch.Schedule).At(sequence); got != 1 || id != "" {
			t.Errorf("without a rotation generation %d %q is in force", got, id)
		}
	}
	for _, bad := range []struct {
		sequence   int64
		generation int
	}{{5000, 5}, {4999, 5}, {6000, 4}, {6000, 6}, {6000, 1}} {
		if s.Rotate(bad.sequence, bad.generation, "") == nil {
			t.Errorf("record %d puts generation %d in force", bad.sequence, bad.generation)
		}
	}
	for sequence, want := range map[int64]string{0: "id-1", 7: "id-1", 10: "id-1", 11: "id-2", 4096: "id-3", 1 << 40: "id-4"} {
		if _, got := s.At(sequence); got != want {
			t.Errorf("at %d the secret is %q, not %q", sequence, got, want)
		}
	}
	var named epoch.Schedule
	if err := named.Rotate(3, 2, "x"); err == nil {
		t.Error("generation 2 is in force before the first one is named")
	}
	if err := named.Rotate(3, 1, "x"); err != nil || named.Around(2) != (epoch.Span{From: 0, To: 4095, Generation: 1}) {
		t.Errorf("the first generation, once named, has the span %v (%v)", named.Around(2), err)
	}
	want := []epoch.Span{{From: 0, To: 10, Generation: 1}, {From: 11, To: 4095, Generation: 2}, {From: 4096, To: 5000, Generation: 3}, {From: 5001, To: 8191, Generation: 4}, {From: 8192, To: 12287, Generation: 4}}
	if got := s.Spans(5, 8200, 9); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the spans are %v", got)
	}
	if got := s.Spans(5, 8200, 2); fmt.Sprint(got) != fmt.Sprint(want[:2]) {
		t.Errorf("the first two spans are %v", got)
	}
	if got := s.Spans(3, 2, 9); got != nil {
		t.Errorf("the spans of nothing are %v", got)
	}
	for _, span := range want {
		for _, sequence := range []int64{span.From, span.To, (span.From + span.To) / 2} {
			if got := s.Around(sequence); got != span {
				t.Errorf("around %d is %v, not %v", sequence, got, span)
			}
		}
	}
}

func TestSavedSchedule(t *testing.T) {
	for _, s := range []epoch.Schedule{{}, rotated(t)} {
		var read epoch.Schedule
		if err := pack.Read(pack.Append(nil, s.Visit), read.Visit); err != nil || fmt.Sprint(read.Rotations()) != fmt.Sprint(s.Rotations()) || read.Generation() != len(s.Rotations()) {
			t.Errorf("%v is read as %v: %v", s, read, err)
		}
		other := s.Clone()
		if other.Rotate(1<<50, other.Generation()+1, "x") != nil || other.Generation() == s.Generation() {
			t.Errorf("%v and %v", s, other)
		}
	}
}
