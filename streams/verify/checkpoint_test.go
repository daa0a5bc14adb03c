package verify_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/disclose"
	"github.com/perpetua-exchange/perpetua/domain/epoch"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/schemas"
	"github.com/perpetua-exchange/perpetua/streams/commitment"
	"github.com/perpetua-exchange/perpetua/streams/transparency"
	"github.com/perpetua-exchange/perpetua/streams/verify"
)

var secret = bytes.Repeat([]byte{7}, commitment.KeySize)

// policy returns the disclosure classes of the events. Compiling the schemas takes a while.
var policy = sync.OnceValues(func() (*disclose.Policy, error) { return disclose.Compile(schemas.Events()) })

// signed returns the tree of the first records of a sample, as a follower computes it.
func (s *sample) signed(t testing.TB, size int) *verify.Checkpoint {
	t.Helper()
	classes, err := policy()
	if err != nil {
		t.Fatal(err)
	}
	committer, err := commitment.NewCommitter(classes, s.name())
	if err != nil {
		t.Fatal(err)
	}
	var tree transparency.Tree
	for n, k := range s.records[:size] {
		key, err := commitment.NewEpochKey(secret, s.id, epoch.Of(int64(n)))
		if err != nil {
			t.Fatal(err)
		}
		root, err := committer.Root(key, int64(n), k.Value)
		if err != nil {
			t.Fatal(err)
		}
		tree.Append(root, func(transparency.Tile) {})
	}
	return &verify.Checkpoint{Journal: s.id, Size: int64(size), Root: tree.Root(), Classes: classes, Keys: func(id scalar.ID) (*commitment.Keys, error) {
		keys := commitment.NewKeys(id, func(context.Context, int) ([]byte, string, error) { return secret, "the secret", nil })
		keys.First = "the secret"
		return keys, nil
	}}
}

// TestCheckpoints: a log that was changed where nothing else can tell is not the one that was signed.
func TestCheckpoints(t *testing.T) {
	for _, s := range samples() {
		n := len(s.records)
		for _, workers := range []int{1, 3} {
			for _, size := range []int{1, n - 10, n} {
				cfg := s.with(s.records)
				cfg.Workers, cfg.SpanRecords, cfg.Checkpoint = workers, 90, s.signed(t, size)
				if report := run(t, cfg); report.Difference != nil || report.Proven != int64(size) {
					t.Errorf("%s, %d records: %+v", s.name(), size, report)
				}
			}
			cfg := s.with(s.records[:n-3])
			cfg.Workers = workers
			if report := run(t, cfg); report.Difference != nil {
				t.Errorf("%s without its end: %v", s.name(), report.Difference)
			}
			cfg.Checkpoint = s.signed(t, n)
			if d := run(t, cfg).Difference; d == nil || d.Check != verify.CheckCheckpoint || d.Sequence != int64(n-3) || !strings.Contains(d.Reason, "ends before") {
				t.Errorf("%s without its end: %v", s.name(), d)
			}

			records := slices.Clone(s.records)
			records[n-1] = clone(records[n-1])
			value := records[n-1].Value
			value[bytes.Index(value, []byte(`"command":{"id":"`))+len(`"command":{"id":"`)+5] ^= 1
			cfg = s.with(records)
			cfg.Workers = workers
			if report := run(t, cfg); report.Difference != nil {
				t.Errorf("%s with another id of the last command: %v", s.name(), report.Difference)
			}
			cfg.Checkpoint = s.signed(t, n)
			if d := run(t, cfg).Difference; d == nil || d.Check != verify.CheckCheckpoint || d.Sequence != int64(n-1) {
				t.Errorf("%s with another id of the last command: %v", s.name(), d)
			}
			cfg.Checkpoint.Journal = scalar.ID{1, 2}
			if _, err := verify.Verify(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "is of the journal") {
				t.Errorf("a checkpoint of another journal: %v", err)
			}
		}
	}
	s := samples()[0]
	records, n := s.forge(t, 100, `"type":"limit","status":"open","amount":"0.`, `"type":"limit","status":"open","amount":"1.`)
	cfg := s.with(records)
	cfg.Checkpoint = s.signed(t, len(records))
	if d := run(t, cfg).Difference; d == nil || d.Sequence > int64(len(records))-1 {
		t.Errorf("another amount in record %d: %v", n, d)
	}
}
