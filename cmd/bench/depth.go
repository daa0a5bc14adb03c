package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/trading"
)

// fewOrders is the number of orders in the shallow book.
const fewOrders = 1000

// measureDepth compares a venue with a deep book to one with a shallow book. It also measures the memory of a resting
// order and the start on a long journal.
func measureDepth(ctx context.Context, b *bench) error {
	if err := b.memory(ctx); err != nil {
		return err
	}
	// With this many records, only the stop makes a snapshot.
	args := []string{"--role", "engine,api", "--sync=false", "--snapshot-records", strconv.Itoa(2 * b.scale)}
	deep, started, err := b.deepVenue(ctx, args...)
	if err != nil {
		return err
	}
	b.add(Row{Measure: fmt.Sprintf("start at %d records, no snapshot", b.scale), Unit: "s", Ours: Sample{Rounds: []float64{started.Seconds()}},
		Note: "until ready with the roles engine and api: the owner and the follower each fold the whole journal, of which they share the reading"})
	if deep, err = b.startFromSnapshot(ctx, deep, args...); err != nil {
		return err
	}
	shallow, err := b.newVenue(ctx, args...)
	if err != nil {
		deep.discard()
		return err
	}
	random := rand.New(rand.NewPCG(3, 4))
	for i := range fewOrders {
		o := restingOrder(random, i)
		if _, err := shallow.do(ctx, "broker-a", http.MethodPost, "/v1/customers/"+o.CustomerCode+"/orders", json.RawMessage(orderBody(o))); err != nil {
			return err
		}
	}
	var targets []*target
	for _, v := range []*venue{deep, shallow} {
		token, err := v.token(ctx, "broker-a")
		if err != nil {
			return err
		}
		t, err := b.newTarget(ctx, loadConfig{URL: v.REST, Token: token, Level: true}, v.PID, v.discard)
		if err != nil {
			return err
		}
		defer t.close()
		targets = append(targets, t)
	}
	return b.pair(Row{Measure: fmt.Sprintf("acknowledgement p50, 1 connection, %d resting", b.scale), Unit: "µs",
		Against: fmt.Sprintf("%d resting", fewOrders), Aim: atMost(1.3)},
		targets[0].latency(b.round), targets[1].latency(b.round))
}

// deepVenue starts a venue with b.scale resting orders in its journal, and returns how long the start took. The orders
// are appended to its log while it is stopped.
func (b *bench) deepVenue(ctx context.Context, args ...string) (*venue, time.Duration, error) {
	v, err := b.newVenue(ctx, args...)
	if err != nil {
		return nil, 0, err
	}
	v.stop()
	if err := b.fill(ctx, filepath.Join(v.dir, "kafka")); err != nil {
		os.RemoveAll(v.dir)
		return nil, 0, err
	}
	start := time.Now()
	v, err = b.startVenue(ctx, v.dir, args...)
	return v, time.Since(start), err
}

// startFromSnapshot restarts a venue several times, each time from the snapshot that it made when it stopped.
func (b *bench) startFromSnapshot(ctx context.Context, v *venue, args ...string) (*venue, error) {
	var took Sample
	for range b.rounds {
		v.stop()
		start := time.Now()
		again, err := b.startVenue(ctx, v.dir, args...)
		if err != nil {
			os.RemoveAll(v.dir)
			return nil, err
		}
		v = again
		took.Rounds = append(took.Rounds, time.Since(start).Seconds())
	}
	loaded, bytes, err := v.snapshot(ctx)
	if err == nil && loaded < int64(b.scale) {
		err = fmt.Errorf("the venue started from a snapshot at %d, not from the one after %d records", loaded, b.scale)
	}
	if err != nil {
		v.discard()
		return nil, err
	}
	b.add(Row{Measure: fmt.Sprintf("start at %d records, with a snapshot", b.scale), Unit: "s", Ours: took, Aim: atMost(3),
		Note: fmt.Sprintf("until ready, Postgres and the broker included; the owner and the follower each load it: %d orders rest in %d bytes", b.scale, bytes)})
	return v, nil
}

// snapshot returns the sequence and size of the snapshot of the trading journal that the venue started from.
func (v *venue) snapshot(ctx context.Context) (sequence, bytes int64, err error) {
	metrics, err := v.do(ctx, "operator", http.MethodGet, "/metrics", nil)
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(metrics)) {
		if value, ok := strings.CutPrefix(line, `perpetua_snapshot_loaded_sequence{journal="trading"} `); ok {
			if n, err := strconv.ParseFloat(strings.TrimSpace(value), 64); err == nil {
				sequence = int64(n)
			}
		}
	}
	files, err := filepath.Glob(filepath.Join(v.dir, "blob", "snapshots", "trading", "0", "*"))
	if err != nil || len(files) == 0 {
		return 0, 0, errors.Join(err, errors.New("the venue made no snapshot"))
	}
	info, err := os.Stat(files[len(files)-1])
	if err != nil {
		return 0, 0, err
	}
	return sequence, info.Size(), nil
}

// fill appends resting orders to the trading journal of a folder.
func (b *bench) fill(ctx context.Context, dir string) error {
	var ready brokerReady
	server, err := b.child(ctx, "broker", brokerConfig{Dir: dir}, &ready)
	if err != nil {
		return err
	}
	defer server.stop()
	owner, err := b.child(ctx, "journal", journalConfig{Brokers: ready.Addrs}, new(struct{}))
	if err != nil {
		return err
	}
	defer owner.stop()
	return owner.call(journalRequest{Resting: true, Count: int64(b.scale)}, new(float64))
}

// memory measures the growth of the engine's state per resting order.
func (b *bench) memory(ctx context.Context) error {
	var bytes float64
	c, err := b.child(ctx, "memory", b.scale, &bytes)
	if err != nil {
		return err
	}
	c.stop()
	b.add(Row{Measure: fmt.Sprintf("memory per resting order, at %d", b.scale), Unit: "bytes", Ours: Sample{Rounds: []float64{bytes}}, Aim: atMost(250),
		Note: "heap of the whole trading state: the order, its places in the book, by code and in its account, its level"})
	return nil
}

func memoryChild(_ context.Context, orders int, _ *json.Decoder, out *json.Encoder) error {
	e, _, err := newEngine()
	if err != nil {
		return err
	}
	heap := func() float64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	before := heap()
	random := rand.New(rand.NewPCG(5, 6))
	for n := range orders {
		if _, err := e.do(command(trader(), trading.CommandPlaceOrder, restingOrder(random, n))); err != nil {
			return err
		}
	}
	each := (heap() - before) / float64(orders)
	runtime.KeepAlive(e)
	return out.Encode(each)
}
