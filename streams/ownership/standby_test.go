package ownership

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// known is something that remembers positions.
type known []record.Position

func (k known) Positions(context.Context, string, int32) ([]record.Position, error) { return k, nil }

// TestWhatAFailedStandbyHasMetIsStillLookedFor loses the log under a standby: its owner folds from elsewhere then, and
// has to hold every known position against what is there.
func TestWhatAFailedStandbyHasMetIsStillLookedFor(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	fake, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fake.Close)
	c, err := journal.NewClient(journal.Config{Brokers: fake.ListenAddrs()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if err := c.EnsureTopics(ctx, "trading"); err != nil {
		t.Fatal(err)
	}
	o, err := journal.NewOwner(journal.OwnerConfig{Client: c, Rules: trading.Rules(), Node: "n"})
	if err != nil {
		t.Fatal(err)
	}
	owning, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- o.Run(owning) }()
	r := journal.NewReader(c, trading.Rules(), 0, record.Before)
	defer r.Close()
	entries, err := r.Poll(ctx)
	if err != nil {
		t.Fatal(err)
	}
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	genesis := entries[0].Position
	s := &standby{client: c, rules: trading.Rules(), seeks: new(record.Anchors)}
	left := func() int {
		positions, err := unverified{known{genesis}, submit.Shard{Journal: "trading"}, s}.Positions(ctx, "trading", 0)
		if err != nil {
			t.Fatal(err)
		}
		return len(positions)
	}
	s.begin(ctx)
	if s.atTip(ctx); left() != 0 || !s.met.Load() {
		t.Error("what the standby has met is looked for again")
	}
	failed := s.done
	if err := fake.DeleteTopic("trading"); err != nil {
		t.Fatal(err)
	}
	if err := fake.CreateTopic("trading", 1, nil); err != nil {
		t.Fatal(err)
	}
	select {
	case <-failed:
	case <-ctx.Done():
		t.Fatal("the standby follows a log that is gone")
	}
	if left() != 1 {
		t.Error("what only the failed standby has met is not looked for")
	}
	if seed := s.take(); seed != nil {
		t.Errorf("it hands over %v", seed.Position)
	}
}

// TestAFoldStartsFromTheLaterState compares what an interrupted replay has left with a snapshot.
func TestAFoldStartsFromTheLaterState(t *testing.T) {
	at := func(sequence int64) *record.Seed { return &record.Seed{Position: record.Position{Sequence: sequence}} }
	away := errors.New("the bucket is away")
	for name, tt := range map[string]struct {
		kept, snapshot *record.Seed
		err            error
		want           int64 // -1 for genesis, -2 for the error
	}{
		"neither":            {want: -1},
		"a snapshot":         {snapshot: at(7), want: 7},
		"a replay":           {kept: at(5), want: 5},
		"a later replay":     {kept: at(9), snapshot: at(7), want: 9},
		"an older replay":    {kept: at(5), snapshot: at(7), want: 7},
		"no snapshots":       {err: away, want: -2},
		"a replay, no other": {kept: at(5), err: away, want: 5},
	} {
		s := &standby{from: func(context.Context) (*record.Seed, error) { return tt.snapshot, tt.err }}
		s.keep(tt.kept)
		got := int64(-1)
		seed, err := s.start(t.Context())
		if err != nil {
			got = -2
		} else if seed != nil {
			got = seed.Position.Sequence
		}
		if got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
		if s.resume != nil {
			t.Errorf("%s: it is still kept", name)
		}
	}
	// A running fold has begun elsewhere, and needs no second state beside its own.
	s := &standby{stop: func() {}}
	if s.keep(at(5)); s.resume != nil {
		t.Error("a running fold keeps a replay")
	}
}
