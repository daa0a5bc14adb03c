package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"runtime"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// foldedRecords is the length of the journal that is folded.
const foldedRecords = 100_000

// measureFold measures the cost of a replay: hashing, decoding and evolving on one core, and then including reading the
// log on all cores.
func measureFold(ctx context.Context, b *bench) error {
	entries, err := flow(foldedRecords)
	if err != nil {
		return err
	}
	events := 0
	for _, e := range entries {
		events += len(e.Record.Events)
	}
	if err := measureFolding(b, entries, events); err != nil {
		return err
	}
	return measureReplay(ctx, b, entries, events)
}

// measureFolding compares the cost of a replay, without reading, to that of decoding.
func measureFolding(b *bench, entries []record.Entry, events int) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	decoder := record.NewDecoder(trading.Rules().Registry())
	rate := func(each func(record.Entry) error) func() (float64, error) {
		return func() (float64, error) {
			start := processorTime()
			for _, e := range entries[1:] { // without the genesis, which the journal handles without the rules
				if err := each(e); err != nil {
					return 0, err
				}
			}
			return float64(len(entries)-1) / (processorTime() - start).Seconds(), nil
		}
	}
	err := b.pair(Row{Measure: "fold of records, one core", Unit: "records/s", Against: "decoding alone"},
		func() (float64, error) {
			state := trading.NewState()
			return rate(func(e record.Entry) error {
				if sha256.Sum256(e.Value) != e.Position.Hash {
					return fmt.Errorf("record %d has another hash", e.Position.Sequence)
				}
				r, err := decoder.Decode(e.Value)
				if err == nil {
					stamp := decide.Stamp{Journal: e.Journal, Sequence: r.Sequence, Time: r.Time, Prev: r.Prev}
					state.Evolve(stamp, r.Command, r.Outcome, r.Events)
				}
				return err
			})()
		},
		rate(func(e record.Entry) error {
			_, err := decoder.Decode(e.Value)
			return err
		}))
	if err == nil {
		last := &b.rows[len(b.rows)-1]
		last.Note = eventsNote(last, events, len(entries))
	}
	return err
}
