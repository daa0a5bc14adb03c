package commitment_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/epoch"
	"github.com/perpetua-exchange/perpetua/streams/commitment"
)

func rotated(t *testing.T) (s epoch.Schedule) {
	t.Helper()
	for i, sequence := range []int64{10, 4095, 5000} {
		if err := s.Rotate(sequence, i+2, fmt.Sprint("id-", i+2)); err != nil {
			t.Fatal(err)
		}
	}
	return s
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
	for _, span := range k.Schedule.Spans(0, 9000, 99) {
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
