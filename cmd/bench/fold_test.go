package main

import (
	"bytes"
	"crypto/sha256"
	"runtime"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// TestAReplayIsTheStateThatMadeTheLog folds a log as a reader far behind the tip does, on one core and on several, and
// compares each byte of what comes out.
func TestAReplayIsTheStateThatMadeTheLog(t *testing.T) {
	entries, err := flow(5000)
	if err != nil {
		t.Fatal(err)
	}
	made := trading.NewState()
	for _, e := range entries {
		made.Evolve(e.Stamp(), e.Record.Command, e.Record.Outcome, e.Record.Events)
	}
	want := trading.Codec().Append(nil, made)
	fake, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	defer fake.Close()
	client, err := journal.NewClient(journal.Config{Brokers: fake.ListenAddrs()})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := appendAll(t.Context(), client, entries); err != nil {
		t.Fatal(err)
	}
	for _, cores := range []int{1, 2, 5} {
		func() {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
			state, err := replay(t.Context(), client, entries[len(entries)-1].Position.Sequence)
			if err != nil {
				t.Fatal(err)
			}
			if got := trading.Codec().Append(nil, state); !bytes.Equal(got, want) {
				t.Errorf("on %d cores it is another state", cores)
			}
		}()
	}
}

// BenchmarkFold says what each part of reading a record costs.
func BenchmarkFold(b *testing.B) {
	entries, err := flow(20_000)
	if err != nil {
		b.Fatal(err)
	}
	entries = entries[1:]
	bytes := 0
	for _, e := range entries {
		bytes += len(e.Value)
	}
	each := func(name string, start func(), do func(record.Entry) error) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(bytes / len(entries)))
			i, began := len(entries), processorTime()
			for b.Loop() {
				if i == len(entries) {
					start()
					i = 0
				}
				if err := do(entries[i]); err != nil {
					b.Fatal(err)
				}
				i++
			}
			b.ReportMetric(float64((processorTime()-began).Nanoseconds())/float64(b.N), "cpu-ns/op")
		})
	}
	each("hash", func() {}, func(e record.Entry) error { _ = sha256.Sum256(e.Value); return nil })
	decoder := record.NewDecoder(trading.Rules().Registry())
	each("decode", func() {}, func(e record.Entry) error {
		_, err := decoder.Decode(e.Value)
		return err
	})
	var state decide.State
	each("evolve", func() { state = trading.NewState() }, func(e record.Entry) error {
		r := e.Record
		state.Evolve(e.Stamp(), r.Command, r.Outcome, r.Events)
		return nil
	})
}
