package commitment_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/perpetua-exchange/perpetua/streams/commitment"
)

func rotated(t *testing.T) commitment.Schedule {
	t.Helper()
	var s commitment.Schedule
	for _, r := range []struct {
		sequence   int64
		generation int
	}{{10, 2}, {4095, 3}, {5000, 4}} {
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
		if got, id := new(commitment.Schedule).At(sequence); got != 1 || id != "" {
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
	want := []commitment.Span{{From: 5, To: 10, Generation: 1}, {From: 11, To: 4095, Generation: 2}, {From: 4096, To: 5000, Generation: 3}, {From: 5001, To: 8191, Generation: 4}, {From: 8192, To: 8200, Generation: 4}}
	if got := s.Spans(5, 8200); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the spans are %v", got)
	}
	if got := s.Spans(3, 2); got != nil {
		t.Errorf("the spans of nothing are %v", got)
	}
}

// TestKeysFollowTheSchedule: each span has a key of its own, and the secrets are asked for once a span.
func TestKeysFollowTheSchedule(t *testing.T) {
	asked := 0
	k := commitment.NewKeys(journalID, func(_ context.Context, generation int) ([]byte, string, error) {
		asked++
		return bytes.Repeat([]byte{byte(generation)}, commitment.KeySize), fmt.Sprint("id-", generation), nil
	})
	k.Schedule = rotated(t)
	seen := make(map[string]bool)
	for _, span := range k.Schedule.Spans(0, 9000) {
		first, err := k.At(t.Context(), span.From)
		if err != nil {
			t.Fatal(err)
		}
		last, err := k.At(t.Context(), span.To)
		if err != nil || !bytes.Equal(first.Bytes(), last.Bytes()) || seen[string(first.Bytes())] {
			t.Errorf("%v does not have one key of its own (%v)", span, err)
		}
		seen[string(first.Bytes())] = true
	}
	if asked != len(seen) {
		t.Errorf("the secrets were asked for %d times for %d keys", asked, len(seen))
	}
}

func TestKeysThatAreRefused(t *testing.T) {
	away := errors.New("away")
	k := commitment.NewKeys(journalID, func(context.Context, int) ([]byte, string, error) { return nil, "", away })
	if _, err := k.At(t.Context(), 1); !errors.Is(err, away) {
		t.Errorf("%v", err)
	}
	k = commitment.NewKeys(journalID, func(context.Context, int) ([]byte, string, error) { return make([]byte, 32), "id-1", nil })
	k.Schedule = rotated(t)
	if _, err := k.At(t.Context(), 1); err != nil {
		t.Error(err)
	}
	if _, err := k.At(t.Context(), 11); err == nil {
		t.Error("a secret that the journal does not name is used")
	}
	k = commitment.NewKeys(journalID, func(context.Context, int) ([]byte, string, error) { return nil, "", nil })
	if _, err := k.At(t.Context(), 1); err == nil {
		t.Error("an empty secret is used")
	}
}
