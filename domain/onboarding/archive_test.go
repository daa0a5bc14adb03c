package onboarding_test

import (
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/archive/columns"
	"github.com/perpetua-exchange/perpetua/streams/record/recordtest"
)

// TestArchiveOfALog encodes the records of short logs of random commands as an archive does. The encoder itself compares what it
// decodes.
func TestArchiveOfALog(t *testing.T) {
	digest, size := new(recordtest.Digest), 0
	var values []columns.Value
	digest.Each = func(value []byte) {
		values = append(values, columns.Value{Bytes: value, Sequence: int64(len(values))})
		size += len(value)
	}
	for seed := range 6 {
		frozenWorld(t, digest, make(recordtest.Verdicts), seed, 4)
	}
	e, err := columns.NewEncoder()
	if err != nil {
		t.Fatal(err)
	}
	chunk, err := e.Encode(scalar.ID{7}, values)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d records: %.1f %% of %d bytes", len(values), 100*float64(len(chunk))/float64(size), size)
}
