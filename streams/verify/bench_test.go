package verify_test

import (
	"crypto/sha256"
	"runtime/debug"
	"syscall"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/reference"
	"github.com/perpetua-exchange/perpetua/streams/archive"
	"github.com/perpetua-exchange/perpetua/streams/archive/columns"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/redecide"
	"github.com/perpetua-exchange/perpetua/streams/verify"
)

// The benchmarks take the records of the sample of trading. They report records a second of processor time, so the figure is that
// of one core, however many goroutines work and whatever else the machine does.

// measure runs a function, which processes a number of records, until the benchmark ends.
func measure(b *testing.B, records int, run func()) {
	b.Helper()
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // about as often as a command collects, with its little live heap
	run()                                             // makes what is made once
	before, n := processorTime(b), 0
	for b.Loop() {
		run()
		n++
	}
	b.ReportMetric(float64(n)*float64(records)/(processorTime(b)-before).Seconds(), "records/s/core")
}

// processorTime returns the processor time of this process.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkHash hashes the values of the records, which bounds the figures of the others.
func BenchmarkHash(b *testing.B) {
	s := samples()[0]
	measure(b, len(s.records), func() {
		for _, k := range s.records {
			sha256.Sum256(k.Value)
		}
	})
}

// BenchmarkVerify verifies a log in memory with one worker.
func BenchmarkVerify(b *testing.B) {
	s := samples()[0]
	for name, change := range map[string]func(*verify.Config){
		"all":        func(*verify.Config) {},
		"chain only": func(c *verify.Config) { c.Payloads = nil },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			measure(b, len(s.records), func() {
				cfg := s.with(s.records)
				cfg.Workers = 1
				change(&cfg)
				if report := run(b, cfg); report.Difference != nil {
					b.Fatal(report.Difference)
				}
			})
		})
	}
}

// BenchmarkArchive reads an archive and verifies its chain, as the first stage does.
func BenchmarkArchive(b *testing.B) {
	s := samples()[0]
	a, err := archive.Open(b.Context(), archived(b, b.TempDir(), s, s.records))
	if err != nil {
		b.Fatal(err)
	}
	measure(b, len(s.records), func() {
		if sum, err := a.Verify(b.Context(), nil); err != nil || sum.Records != int64(len(s.records)) {
			b.Fatal(sum, err)
		}
	})
}

// BenchmarkEncode compresses the records as the writer of an archive does, which decodes and compares them.
func BenchmarkEncode(b *testing.B) {
	s := samples()[0]
	var values []columns.Value
	total := 0
	for i, k := range s.records {
		head, err := record.DecodeHead(k.Value)
		if err != nil {
			b.Fatal(err)
		}
		values, total = append(values, columns.Value{Bytes: k.Value, Sequence: int64(i), Prev: head.Prev.String()}), total+len(k.Value)
	}
	e, err := columns.NewEncoder()
	if err != nil {
		b.Fatal(err)
	}
	size := 0
	measure(b, len(s.records), func() {
		chunk, err := e.Encode(s.id, values)
		if err != nil {
			b.Fatal(err)
		}
		size = len(chunk)
	})
	b.ReportMetric(100*float64(size)/float64(total), "%-of-values")
}

// BenchmarkModel has the independent model check the records.
func BenchmarkModel(b *testing.B) {
	s := samples()[0]
	b.ReportAllocs()
	measure(b, len(s.records), func() {
		a := reference.New()
		for _, k := range s.records {
			if err := a.Check(k.Value); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkRedecide decides decoded records again and folds them.
func BenchmarkRedecide(b *testing.B) {
	s := samples()[0]
	decoder := record.NewDecoder(s.Rules.Registry())
	entries := make([]record.Entry, len(s.records))
	for i, k := range s.records {
		r, err := decoder.Decode(k.Value)
		if err != nil {
			b.Fatal(err)
		}
		entries[i] = record.Entry{Record: r, Journal: s.id, Value: k.Value}
	}
	j := redecide.Journal{Payloads: s.Payloads, Limit: s.Rules.Limit()}
	b.ReportAllocs()
	measure(b, len(s.records), func() {
		state := s.Rules.NewState()
		for _, e := range entries {
			if got := j.Redecide(state, 0, e); got.Verdict == redecide.Different {
				b.Fatal(got.Reason)
			}
			state.Evolve(e.Stamp(), e.Record.Command, e.Record.Outcome, e.Record.Events)
		}
	})
}

// BenchmarkRoots computes record roots, as a worker does for a checkpoint.
func BenchmarkRoots(b *testing.B) {
	s := samples()[0]
	b.ReportAllocs()
	measure(b, len(s.records), func() { s.signed(b, len(s.records)) })
}
