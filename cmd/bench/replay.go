package main

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// measureReplay measures how fast a reader far behind the tip folds a log, from the brokers to the state, with all
// cores and with one. The brokers run in a separate process.
func measureReplay(ctx context.Context, b *bench, entries []record.Entry, events int) error {
	var ready brokerReady
	server, err := b.child(ctx, "broker", brokerConfig{Dir: filepath.Join(b.dir, "replay")}, &ready)
	if err != nil {
		return err
	}
	defer server.stop()
	client, err := journal.NewClient(journal.Config{Brokers: ready.Addrs})
	if err != nil {
		return err
	}
	defer client.Close()
	if err := appendAll(ctx, client, entries); err != nil {
		return err
	}
	rate := func(cores int) func() (float64, error) {
		return func() (float64, error) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
			start := time.Now()
			_, err := replay(ctx, client, entries[len(entries)-1].Position.Sequence)
			return float64(len(entries)) / time.Since(start).Seconds(), err
		}
	}
	cores := runtime.NumCPU()
	err = b.pair(Row{Measure: fmt.Sprintf("replay of a log, %d cores", cores), Unit: "records/s", Against: "one core"}, rate(cores), rate(1))
	if err == nil {
		last := &b.rows[len(b.rows)-1]
		last.Note = eventsNote(last, events, len(entries)) + "; by the clock, with what the brokers in another process take"
	}
	return err
}

// eventsNote converts a rate of records into events.
func eventsNote(r *Row, events, records int) string {
	each := float64(events) / float64(records)
	return fmt.Sprintf("%.2f events to a record, so %s events/s", each, number(r.Ours.Median*each))
}

// appendAll appends records to the empty trading log.
func appendAll(ctx context.Context, client *journal.Client, entries []record.Entry) error {
	if err := client.EnsureTopics(ctx, "trading"); err != nil {
		return err
	}
	kc, err := client.Kafka(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		return err
	}
	defer kc.Close()
	failed := make(chan error, 1)
	for _, e := range entries {
		// Blocks while the buffer is full.
		kc.Produce(ctx, &kgo.Record{Topic: client.Topic("trading"), Value: e.Value}, func(_ *kgo.Record, err error) {
			if err != nil {
				select {
				case failed <- err:
				default:
				}
			}
		})
	}
	if err := kc.Flush(ctx); err != nil {
		return err
	}
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// replay folds the trading log up to a sequence.
func replay(ctx context.Context, client *journal.Client, to int64) (*trading.State, error) {
	state := trading.NewState()
	r := journal.NewReader(client, trading.Rules(), 0, record.Before)
	defer r.Close()
	for r.Position().Sequence < to {
		entries, err := r.Poll(ctx)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			state.Evolve(e.Stamp(), e.Record.Command, e.Record.Outcome, e.Record.Events)
		}
	}
	return state, nil
}
