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
	for i, sequence := range []int64{7, 10, 4095, 5000} {
		if err := s.Rotate(sequence, i+1, fmt.Sprint("id-", i+1)); err != nil {
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
	is := func(key []byte, id string, err error) commitment.Secrets {
		return func(context.Context, int) ([]byte, string, error) { return key, id, err }
	}
	for _, tt := range []struct {
		name     string
		secrets  commitment.Secrets
		named    bool
		first    string
		sequence int64
		want     error
	}{
		{"the store is away", is(nil, "", away), true, "", 1, away},
		{"the named secret", is(make([]byte, 32), "id-1", nil), true, "", 1, nil},
		{"another secret of a later generation", is(make([]byte, 32), "id-1", nil), true, "", 11, commitment.ErrAnotherSecret},
		{"another first secret", is(make([]byte, 32), "id-9", nil), true, "", 1, commitment.ErrAnotherSecret},
		{"no name", is(make([]byte, 32), "id-1", nil), false, "", 1, commitment.ErrUnnamed},
		{"no name and no secret", is(nil, "", nil), false, "", 1, commitment.ErrUnnamed},
		{"the secret that the caller knows", is(make([]byte, 32), "id-1", nil), false, "id-1", 1, nil},
		{"not the one that the caller knows", is(make([]byte, 32), "id-1", nil), false, "id-9", 1, commitment.ErrAnotherSecret},
		{"two names", is(make([]byte, 32), "id-1", nil), true, "id-9", 1, commitment.ErrAnotherSecret},
	} {
		k := commitment.NewKeys(journalID, tt.secrets)
		if k.First = tt.first; tt.named {
			k.Schedule = rotated(t)
		}
		if _, err := k.At(t.Context(), tt.sequence); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	k := commitment.NewKeys(journalID, is(nil, "id-1", nil))
	k.First = "id-1"
	if _, err := k.At(t.Context(), 1); err == nil {
		t.Error("an empty secret is used")
	}
}
