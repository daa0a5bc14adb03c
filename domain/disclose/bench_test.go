package disclose_test

import (
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/disclose/disclosetest"
)

// BenchmarkSplit splits a record with an order that rests, and one with a trade.
func BenchmarkSplit(b *testing.B) {
	s, golden := splitter(b, "trading"), goldenEvents(b, "trading")
	records := [][]byte{
		record(`{"sub":"desk","broker":"alpha"}`, `{"key":"k"}`, golden["order.opened.v1"]),
		record(`{"sub":"desk","broker":"alpha"}`, `{"key":"k"}`, golden["trade.executed.v1"], golden["order.filled.v1"], golden["order.partially_filled.v1"]),
	}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		if _, err := s.Split(records[n%len(records)], disclosetest.Hash); err != nil {
			b.Fatal(err)
		}
		n++
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "records/s")
}
