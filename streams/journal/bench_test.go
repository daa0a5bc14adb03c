package journal_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

func benchClient(b *testing.B) *journal.Client {
	b.Helper()
	fake, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(fake.Close)
	c, err := journal.NewClient(journal.Config{Brokers: fake.ListenAddrs()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(c.Close)
	if err := c.EnsureTopics(context.Background(), "trading"); err != nil {
		b.Fatal(err)
	}
	return c
}

func benchRecord() *record.Record {
	r := &record.Record{Sequence: 123456, Time: scalar.TimeOf(time.Now()), Outcome: decide.Accepted,
		Command: decide.Recorded{ID: record.NewCommandID(time.Now()), Type: "counter.change",
			Actor: decide.Actor{Sub: "broker-a", Broker: "alpha"}, Metadata: decide.Metadata{Key: "0123456789abcdef", Fingerprint: "0123456789abcdef0123456789abcdef"}}}
	for i := range 5 {
		r.Events = append(r.Events, &added{Name: fmt.Sprint("counter-", i), N: 5, Total: 1234567, Pad: "BTCUSDC_PERP 65000.1 0.001"})
	}
	return r
}

func BenchmarkEncode(b *testing.B) {
	r := benchRecord()
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if buf, err = record.Encode(buf[:0], r); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(len(buf)))
}

func BenchmarkDecode(b *testing.B) {
	value, err := record.Encode(nil, benchRecord())
	if err != nil {
		b.Fatal(err)
	}
	registry := newRules().Registry()
	b.SetBytes(int64(len(value)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := record.Decode(registry, value); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCommands has many clients submit at once, as handlers do.
func BenchmarkCommands(b *testing.B) {
	c := benchClient(b)
	o, err := journal.NewOwner(journal.OwnerConfig{Client: c, Rules: newRules(), Node: "n1"})
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- o.Run(ctx) }()
	for {
		if _, ok := o.Serving(); ok {
			break
		}
		<-time.After(time.Millisecond)
	}
	b.SetParallelism(256)
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := o.Submit(context.Background(), command(&add{"a", 1})); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.StopTimer()
	stop()
	if err := <-done; err != nil {
		b.Fatal(err)
	}
}

// BenchmarkProduce is what the brokers and their client allow at most: the same values, produced without a journal.
func BenchmarkProduce(b *testing.B) {
	c := benchClient(b)
	kc, err := c.Kafka(kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0))
	if err != nil {
		b.Fatal(err)
	}
	defer kc.Close()
	r := benchRecord()
	r.Events = r.Events[:1]
	value, err := record.Encode(nil, r)
	if err != nil {
		b.Fatal(err)
	}
	var failed atomic.Value
	b.SetParallelism(256)
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		reply := make(chan error, 1)
		for pb.Next() {
			kc.Produce(context.Background(), &kgo.Record{Topic: "trading", Value: value}, func(_ *kgo.Record, err error) { reply <- err })
			if err := <-reply; err != nil {
				failed.Store(err)
			}
		}
	})
	if err := failed.Load(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkFold reads a journal from genesis and applies it.
func BenchmarkFold(b *testing.B) {
	c := benchClient(b)
	o, err := journal.NewOwner(journal.OwnerConfig{Client: c, Rules: newRules(), Node: "n1"})
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- o.Run(ctx) }()
	for {
		if _, ok := o.Serving(); ok {
			break
		}
		<-time.After(time.Millisecond)
	}
	const records = 20000
	errs := make(chan error, 200)
	for range 200 {
		go func() {
			for range records / 200 {
				if _, err := o.Submit(ctx, command(&add{"a", 1})); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	for range 200 {
		if err := <-errs; err != nil {
			b.Fatal(err)
		}
	}
	stop()
	<-done
	b.ReportAllocs()
	b.ResetTimer()
	for b.Loop() {
		r := journal.NewReader(c, newRules(), 0, record.Before)
		state := newRules().NewState()
		for r.Position().Sequence < records+1 {
			entries, err := r.Poll(context.Background())
			if err != nil {
				b.Fatal(err)
			}
			for _, e := range entries {
				state.Evolve(e.Stamp(), e.Record.Command, e.Record.Outcome, e.Record.Events)
			}
		}
		r.Close()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/records, "ns/record")
}
