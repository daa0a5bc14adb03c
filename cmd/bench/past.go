package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"gocloud.dev/blob/memblob"

	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/follow"
	"github.com/perpetua-exchange/perpetua/streams/history"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/snapshot"
)

const (
	// pastStates is the number of past states that are asked for.
	pastStates = 40
	// Bounds of the 99th percentile in milliseconds, at first and again.
	pastFirst = 1000
	pastAgain = 100
)

// measurePast measures how long whole states of very many accounts as of past records take, at first and from memory. The log is
// in the embedded broker of another process, and the history snapshots are in memory.
func measurePast(ctx context.Context, b *bench) error {
	return b.withOwnerAt(ctx, func(ask asker, addrs []string) error {
		if _, err := ask(journalRequest{Hold: manyHolders})(); err != nil {
			return err
		}
		client, err := journal.NewClient(journal.Config{Brokers: addrs})
		if err != nil {
			return err
		}
		defer client.Close()
		following, stop := context.WithCancel(ctx)
		fold := follow.New(client, trading.Rules(), 0)
		done := make(chan error, 1)
		go func() { done <- fold.Run(following) }()
		err = b.askForStates(ctx, client, fold)
		stop()
		if ended := <-done; !errors.Is(ended, context.Canceled) {
			err = errors.Join(err, ended)
		}
		return err
	})
}

// askForStates asks for states after random records among the last history.Every ones.
func (b *bench) askForStates(ctx context.Context, client *journal.Client, fold *follow.Fold) error {
	if err := fold.WaitTip(ctx); err != nil {
		return err
	}
	bucket := memblob.OpenBucket(nil)
	defer bucket.Close()
	saved := snapshot.NewStore(snapshot.Config{Bucket: bucket, Key: []byte("bench"), Folder: snapshot.HistoryFolder})
	config := history.Config{Client: client, Stores: []*snapshot.Store{saved}}
	log := history.Journal{Rules: trading.Rules(), Codec: trading.Codec(), Tip: fold}
	if err := history.NewMaker(history.MakerConfig{Config: config, Journal: log, Store: saved, Node: "bench"}).Make(ctx); err != nil {
		return err
	}
	states, tip, random := history.New(config, log), fold.Position().Sequence, rand.New(rand.NewPCG(1, 19))
	var first, again []time.Duration
	for range pastStates {
		at := tip - 1 - random.Int64N(min(tip-1, history.Every))
		for _, took := range []*[]time.Duration{&first, &again} {
			start := time.Now()
			if _, _, err := states.StateAt(ctx, "trading", 0, at); err != nil {
				return err
			}
			*took = append(*took, time.Since(start))
		}
	}
	note := fmt.Sprintf("%d records, a snapshot each %d; %d random records", tip+1, history.Every, pastStates)
	b.add(Row{Measure: fmt.Sprintf("the state of %d accounts as of a past record, p99 at first", manyHolders), Unit: "ms", Ours: percentile(first, 99), Aim: atMost(pastFirst), Note: note + median(first)})
	b.add(Row{Measure: "the same state again, p99", Unit: "ms", Ours: percentile(again, 99), Aim: atMost(pastAgain), Note: note + median(again)})
	return nil
}

// percentile returns a percentile in milliseconds.
func percentile(took []time.Duration, of int) Sample {
	slices.Sort(took)
	return Sample{Rounds: []float64{took[(len(took)*of-1)/100].Seconds() * 1000}}
}

// median describes the median of durations, for a note.
func median(took []time.Duration) string {
	return fmt.Sprintf("; p50 %.3f ms", percentile(took, 50).Rounds[0])
}
