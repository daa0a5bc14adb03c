package node

import (
	"context"
	"log/slog"
	"time"

	gocloud "gocloud.dev/blob"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/seal"
	"github.com/perpetua-exchange/perpetua/streams/snapshot"
	"github.com/perpetua-exchange/perpetua/streams/witness"
)

// Snapshots loads and saves the states of a node's folds. The same bucket holds the witnesses, which record how far
// each node has read the logs.
type Snapshots struct {
	journals  journals.Table
	store     *snapshot.Store
	history   *snapshot.Store // of the history snapshots, which folds do not start from
	witnesses *witness.Store
	bucket    *gocloud.Bucket
	records   int64 // 0: this node makes no snapshots
	interval  time.Duration
}

// OpenSnapshots opens the bucket. Snapshots and witnesses are signed with keys that all nodes derive from the master
// key.
func OpenSnapshots(ctx context.Context, s *settings.Settings, table journals.Table, box *seal.Box, log *slog.Logger) (*Snapshots, error) {
	records, interval, err := snapshotPace(s)
	if err != nil {
		return nil, err
	}
	bucket, err := s.OpenBucket(ctx)
	if err != nil {
		return nil, err
	}
	config := snapshot.Config{Bucket: bucket, Key: box.Derive("snapshot"), TopicPrefix: s.Kafka.Prefix, Logger: log}
	past := config
	past.Folder = snapshot.HistoryFolder
	return &Snapshots{journals: table, bucket: bucket, records: records, interval: interval,
		store: snapshot.NewStore(config), history: snapshot.NewStore(past),
		witnesses: witness.NewStore(witness.Config{Bucket: bucket, Key: box.Derive("witness"), TopicPrefix: s.Kafka.Prefix, Logger: log})}, nil
}

// Close closes the bucket. It does not wait for one that hangs.
func (s *Snapshots) Close() {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		s.bucket.Close()
	}()
	select {
	case <-closed:
	case <-time.After(time.Second):
	}
}

// Seed returns the newest snapshot of a journal, or nil.
func (s *Snapshots) Seed(ctx context.Context, name string, partition int32) (*record.Seed, error) {
	j, err := s.journals.Of(name)
	if err != nil || j.Codec == nil {
		return nil, err
	}
	return s.store.Load(ctx, name, partition, j.Codec)
}

// seed returns the snapshot from which the fold of a journal starts, or nil for the genesis.
func (s *stores) seed(ctx context.Context, c Config, name string) (*record.Seed, error) {
	if c.Follow.needsGenesis(name) {
		return nil, nil
	}
	return s.snapshots.Seed(ctx, name, 0)
}

// maker returns a maker of snapshots of a fold that started from a seed; nil if this node makes none.
func (s *Snapshots) maker(client *journal.Client, j journals.Journal, fold record.Follower, seed *record.Seed, node string, may func() bool) *snapshot.Maker {
	if s.records == 0 || j.Codec == nil {
		return nil
	}
	return snapshot.NewMaker(snapshot.MakerConfig{Store: s.store, Client: client, Rules: j.Rules, Codec: j.Codec, Fold: fold, Seed: seed,
		Node: node, Records: s.records, Interval: s.interval, May: may})
}
