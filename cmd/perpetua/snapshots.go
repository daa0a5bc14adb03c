package main

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strconv"
	"time"

	gocloud "gocloud.dev/blob"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/identity"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/follow"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/seal"
	"github.com/perpetua-exchange/perpetua/streams/snapshot"
)

// snapshots are a node's: where they are, and who makes them.
type snapshots struct {
	store    *snapshot.Store
	bucket   *gocloud.Bucket
	records  int64 // 0: this node makes none
	interval time.Duration
	makers   []*snapshot.Maker
}

// codecOf returns how the states of a journal are saved.
func codecOf(name string) decide.Codec {
	if name == identity.Rules().Journal() {
		return identity.Codec()
	}
	return trading.Codec()
}

// blobURL returns where the bucket is: as told, or in the data folder.
func (s *settings) blobURL() (string, error) {
	if s.BlobURL != "" {
		return s.BlobURL, nil
	}
	dir, err := filepath.Abs(s.Data)
	return blob.URLOf(filepath.Join(dir, blob.Folder)), err
}

// openBucket opens the bucket that the settings mean. The caller closes it.
func openBucket(ctx context.Context, s *settings) (*gocloud.Bucket, error) {
	at, err := s.blobURL()
	if err != nil {
		return nil, err
	}
	return blob.Open(ctx, at)
}

// openSnapshots opens the bucket. Snapshots are signed with a key that all nodes derive from their master key.
func openSnapshots(ctx context.Context, s *settings, box *seal.Box, log *slog.Logger) (*snapshots, error) {
	records, err := strconv.ParseInt(s.SnapshotRecords, 10, 64)
	if err != nil || records < 0 {
		return nil, usagef("--snapshot-records takes a number of records, or 0, not %q", s.SnapshotRecords)
	}
	interval, err := time.ParseDuration(s.SnapshotInterval)
	if err != nil || interval <= 0 {
		return nil, usagef("--snapshot-interval takes a time like 10m, not %q", s.SnapshotInterval)
	}
	bucket, err := openBucket(ctx, s)
	if err != nil {
		return nil, err
	}
	return &snapshots{bucket: bucket, records: records, interval: interval,
		store: snapshot.NewStore(snapshot.Config{Bucket: bucket, Key: box.Derive("snapshot"), TopicPrefix: s.TopicPrefix, Logger: log})}, nil
}

// forgetSnapshots deletes the snapshots of a journal and returns how many there were.
func forgetSnapshots(ctx context.Context, s *settings, name string) (int, error) {
	bucket, err := openBucket(ctx, s)
	if err != nil {
		return 0, err
	}
	defer bucket.Close()
	return snapshot.NewStore(snapshot.Config{Bucket: bucket, TopicPrefix: s.TopicPrefix}).Forget(ctx, name, 0)
}

// close closes the bucket. It leaves one that hangs behind.
func (s *snapshots) close() {
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

// seed returns the newest snapshot of a journal, or nil.
func (s *snapshots) seed(ctx context.Context, name string, partition int32) (*journal.Seed, error) {
	return s.store.Load(ctx, name, partition, codecOf(name))
}

// fold returns a follower of a journal that starts from the newest snapshot, and what that is.
func (s *snapshots) fold(ctx context.Context, client *journal.Client, rules decide.Rules, node string) (*follow.Fold, *journal.Seed, error) {
	seed, err := s.seed(ctx, rules.Journal(), 0)
	if err != nil {
		return nil, nil, fmt.Errorf("loading a snapshot of %s: %w", rules.Journal(), err)
	}
	var options []follow.Option
	if seed != nil {
		options = append(options, follow.FromSeed(*seed))
	}
	fold := follow.New(client, rules, 0, options...)
	if s.records > 0 {
		s.makers = append(s.makers, snapshot.NewMaker(snapshot.MakerConfig{Store: s.store, Client: client, Rules: rules,
			Codec: codecOf(rules.Journal()), Fold: fold, Seed: seed, Node: node, Records: s.records, Interval: s.interval}))
	}
	return fold, seed, nil
}

// stop makes the snapshots that are worth it after the node has stopped.
func (s *snapshots) stop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	for _, m := range s.makers {
		m.Stop(ctx)
	}
}

// fillTails reads the last records before the folds' snapshots for the interface that shows the last records.
func (n *node) fillTails(ctx context.Context) error {
	for i, tail := range n.tails {
		name := journalNames()[i]
		seed := n.seeds[name]
		from, to := tail.Missing()
		if seed == nil || from > to {
			continue
		}
		anchors := new(journal.Anchors)
		anchors.Fill(seed.Anchors)
		rules, err := rulesOf(name)
		if err != nil {
			return err
		}
		entries, err := readUpTo(ctx, journal.NewReader(n.client, rules, 0, anchors.Below(from)), to)
		if err != nil {
			if ctx.Err() == nil {
				n.log.Warn("the last records before the snapshot can't be read", "journal", name, "error", err)
			}
			continue // the fold of the same log says what is wrong with it
		}
		tail.Precede(entries)
	}
	<-ctx.Done()
	return nil
}

// readUpTo returns what a reader reads, up to a sequence that the log holds.
func readUpTo(ctx context.Context, r *journal.Reader, to int64) (entries []journal.Entry, err error) {
	defer r.Close()
	for r.Position().Sequence < to {
		more, err := r.Poll(ctx)
		if err != nil {
			return nil, err
		}
		entries = append(entries, more...)
	}
	return entries, nil
}
