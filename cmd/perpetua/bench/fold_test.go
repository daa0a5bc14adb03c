package bench

import (
	"crypto/sha256"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/journal"
)

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
	each := func(name string, start func(), do func(journal.Entry) error) {
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
	each("hash", func() {}, func(e journal.Entry) error { _ = sha256.Sum256(e.Value); return nil })
	decoder := journal.NewDecoder(trading.Rules().Registry())
	each("decode", func() {}, func(e journal.Entry) error {
		_, err := decoder.Decode(e.Value)
		return err
	})
	var state decide.State
	each("evolve", func() { state = trading.NewState() }, func(e journal.Entry) error {
		r := e.Record
		state.Evolve(e.Stamp(), r.Command, r.Outcome, r.Events)
		return nil
	})
}
