package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/broker"
	"github.com/perpetua-exchange/perpetua/streams/journal"
)

type brokerConfig struct {
	Dir  string
	Sync bool
}

type brokerReady struct{ Addrs []string }

// brokerChild runs an embedded broker in a child process.
func brokerChild(ctx context.Context, cfg brokerConfig, in *json.Decoder, out *json.Encoder) error {
	b, err := broker.Start(ctx, broker.Config{Dir: cfg.Dir, Sync: cfg.Sync, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	return errors.Join(awaitEnd(in, out, brokerReady{b.Addrs()}), b.Close())
}

// journalRequest asks the journal child for work. By default it submits orders of the flow, or only resting ones, for a
// time or up to a number. The fields below select other work.
type journalRequest struct {
	Resting bool
	For     time.Duration
	Count   int64
	AtOnce  int // orders in flight; submitters if zero

	Bare    bool          // produce bare records for a time
	Stops   int64         // number of stops at one price
	Matched int64         // number of orders to match
	Hold    int64         // number of accounts that get a position
	Prices  time.Duration // time for which index prices are set
	Wave    int64         // number of accounts to liquidate
	Instant int64         // number of positions with funding and settlement
	Quiet   bool          // submit orders for as long as the last Instant took
}

// submitters is the number of commands in flight.
const submitters = 1024

type journalConfig struct {
	Brokers []string
	Fresh   bool // the journal has no contents yet
}

// journalChild owns the trading journal, as the only engine on its brokers, and submits commands to it.
func journalChild(ctx context.Context, cfg journalConfig, in *json.Decoder, out *json.Encoder) (err error) {
	// The same variable as for the venues of other measures.
	compression, err := journal.ParseCompression(os.Getenv("PERPETUA_COMPRESSION"))
	if err != nil {
		return err
	}
	clock := &shifted{clock: journal.SystemClock()}
	client, err := journal.NewClient(journal.Config{Brokers: cfg.Brokers, Compression: compression, Clock: clock})
	if err != nil {
		return err
	}
	defer client.Close()
	if err := client.EnsureTopics(ctx, "trading"); err != nil {
		return err
	}
	owner, err := journal.NewOwner(journal.OwnerConfig{Client: client, Rules: trading.Rules(), Node: "bench"})
	if err != nil {
		return err
	}
	owning, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- owner.Run(owning) }()
	// The owner stops before the client is closed, because its records in flight drain through the client.
	defer func() {
		stop()
		err = errors.Join(err, <-done)
	}()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for _, ok := owner.Serving(); !ok; _, ok = owner.Serving() {
		select {
		case <-tick.C:
		case err := <-done:
			done <- err // once more, for the deferred function
			return err
		}
	}
	if cfg.Fresh {
		for _, c := range opening(true) {
			if _, err := owner.Submit(ctx, c); err != nil {
				return err
			}
		}
	}
	return (&ownerWork{owner: owner, client: client, clock: clock}).serve(ctx, in, out)
}

// ownerWork performs the requests to the journal child.
type ownerWork struct {
	owner  *journal.Owner
	client *journal.Client
	clock  *shifted
	values [][]byte      // records of the flow
	waves  int64         // number of waves so far
	took   time.Duration // duration of the last instant
}

func (w *ownerWork) serve(ctx context.Context, in *json.Decoder, out *json.Encoder) error {
	kc, err := w.client.Kafka()
	if err != nil {
		return err
	}
	defer kc.Close()
	if _, err := kadm.NewClient(kc).CreateTopic(ctx, 1, 1, nil, produceTopic); err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
		return err
	}
	return answerAll(in, out, struct{}{}, func(r journalRequest) (float64, error) { return w.do(ctx, r) })
}

// do performs a request and returns its figure.
func (w *ownerWork) do(ctx context.Context, r journalRequest) (figure float64, err error) {
	switch {
	case r.Bare:
		return produce(ctx, w.client, w.values, r.For)
	case r.Stops > 0:
		return fireStops(ctx, w.owner, r.Stops)
	case r.Matched > 0:
		return matchOrders(ctx, w.owner, r.Matched)
	case r.Hold > 0:
		return 0, hold(ctx, w.owner, "HOLDER", r.Hold, safeFunds)
	case r.Prices > 0:
		return movePrice(ctx, w.owner, r.Prices)
	case r.Wave > 0:
		w.waves++
		return crash(ctx, w.owner, w.waves, r.Wave)
	case r.Instant > 0:
		var longest time.Duration
		longest, w.took, err = passInstant(ctx, w.owner, w.clock, r.Instant)
		return milliseconds(longest), err
	case r.Quiet:
		first, err := firstOrder(ctx, w.owner)
		if err != nil {
			return 0, err
		}
		end := time.Now().Add(w.took)
		longest, _, err := runOrders(ctx, w.owner, newAccepted(first), func(*accepted) bool { return time.Now().After(end) })
		return milliseconds(longest), err
	}
	figure, w.values, err = submitOrders(ctx, w.owner, r)
	return figure, err
}

// submit submits orders concurrently. It returns their number per second and the last record of each submitter.
func submitOrders(ctx context.Context, owner *journal.Owner, r journalRequest) (perSecond float64, values [][]byte, err error) {
	var running sync.WaitGroup
	var done atomic.Int64
	errs := make(chan error, submitters)
	atOnce := submitters
	if r.AtOnce > 0 {
		atOnce = r.AtOnce
	}
	values = make([][]byte, atOnce)
	start := time.Now()
	for n := range atOnce {
		running.Go(func() {
			random := rand.New(rand.NewPCG(uint64(start.UnixNano()), uint64(n)))
			for i := 0; r.Count > 0 && done.Add(1) <= r.Count || r.Count == 0 && time.Since(start) < r.For; i++ {
				o := drawn(random, n)
				if r.Resting {
					o = restingOrder(random, n)
				}
				result, err := owner.Submit(ctx, command(trader(), trading.CommandPlaceOrder, o))
				if err != nil {
					errs <- err
					return
				}
				if r.Count == 0 {
					done.Add(1)
				}
				values[n] = result.Entry.Value
			}
		})
	}
	running.Wait()
	select {
	case err := <-errs:
		return 0, nil, err
	default:
	}
	return float64(done.Load()) / time.Since(start).Seconds(), values, nil
}

// produce appends the same records to a separate topic, with the settings of the journal's writer and the same window
// of records in flight.
func produce(ctx context.Context, client *journal.Client, values [][]byte, length time.Duration) (perSecond float64, err error) {
	kc, err := client.Kafka(kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0), kgo.MaxBufferedRecords(4096))
	if err != nil {
		return 0, err
	}
	defer kc.Close()
	var failed atomic.Pointer[error]
	var done atomic.Int64
	start := time.Now()
	for i := 0; time.Since(start) < length; i++ {
		// Blocks while the buffer is full.
		kc.Produce(ctx, &kgo.Record{Topic: produceTopic, Value: values[i%len(values)]}, func(_ *kgo.Record, err error) {
			if err != nil {
				failed.Store(&err)
			}
			done.Add(1)
		})
	}
	if err := kc.Flush(ctx); err != nil {
		return 0, err
	}
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	return float64(done.Load()) / time.Since(start).Seconds(), nil
}

// measureJournal measures the number of commands that an owner decides and appends, without HTTP.
func measureJournal(ctx context.Context, b *bench) error {
	return b.withOwner(ctx, func(ask asker) error {
		return b.pair(Row{Measure: fmt.Sprintf("commands into a journal, %d at a time, --sync=false", submitters), Unit: "commands/s",
			Against: "bare idempotent produces of the same records", Aim: atLeast(0.15)},
			ask(journalRequest{For: b.round}), ask(journalRequest{Bare: true, For: b.round}))
	})
}

// asker returns a function that measures a request to an owner in a child process.
type asker func(journalRequest) func() (rate float64, err error)

// newOwner starts an owner of a new journal and, with its data in the folder, a broker that does not sync. Each runs in a
// separate process until stop is called. addrs are those of the broker.
func (b *bench) newOwner(ctx context.Context, dir string) (owner *child, addrs []string, stop func(), err error) {
	var ready brokerReady
	server, err := b.child(ctx, "broker", brokerConfig{Dir: filepath.Join(dir, "kafka")}, &ready)
	if err != nil {
		return nil, nil, nil, err
	}
	owner, err = b.child(ctx, "journal", journalConfig{Brokers: ready.Addrs, Fresh: true}, new(struct{}))
	if err != nil {
		server.stop()
		return nil, nil, nil, err
	}
	return owner, ready.Addrs, func() { owner.stop(); server.stop() }, nil
}

// withOwner calls measure with an owner, and removes its folder in the end.
func (b *bench) withOwner(ctx context.Context, measure func(asker) error) error {
	return b.withOwnerAt(ctx, func(ask asker, _ []string) error { return measure(ask) })
}

// withOwnerAt is withOwner with the addresses of the broker.
func (b *bench) withOwnerAt(ctx context.Context, measure func(ask asker, addrs []string) error) error {
	dir, err := os.MkdirTemp(b.dir, "broker-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	owner, addrs, stop, err := b.newOwner(ctx, dir)
	if err != nil {
		return err
	}
	defer stop()
	return measure(func(r journalRequest) func() (float64, error) {
		return func() (rate float64, err error) {
			err = owner.call(r, &rate)
			return rate, err
		}
	}, addrs)
}
