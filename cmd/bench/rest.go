package main

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/gorilla/websocket"

	"github.com/perpetua-exchange/perpetua/projections/postgres"
)

// clients is the number of connections that measure a server's throughput.
const clients = 64

// target is a server with its load child.
type target struct {
	load *child
	pid  int // of the server
	stop []func()

	answered int           // requests answered while the processor time was measured
	used     time.Duration // processor time of the server
	below    time.Duration // processor time of the processes that it started, such as Postgres
}

func (t *target) close() {
	for _, stop := range t.stop {
		stop()
	}
}

// drive applies load for a round.
func (t *target) drive(connections int, length time.Duration) (loadReply, error) {
	var r loadReply
	before, known := processorTimeOf(t.pid)
	below := processorTimeBelow(t.pid)
	err := t.load.call(loadRequest{connections, length}, &r)
	if after, ok := processorTimeOf(t.pid); ok && known {
		t.answered += r.Count
		t.used += after - before
		t.below += processorTimeBelow(t.pid) - below
	}
	return r, err
}

// costs describes the processor time per request of each server of a pair. It does not depend on the machine's other
// load.
func costs(ours, theirs *target) string { return costsOf("order", ours, theirs) }

func costsOf(what string, ours, theirs *target) string {
	each := func(t *target) float64 { return microseconds(t.used) / float64(max(1, t.answered)) }
	if ours.used == 0 || theirs.used == 0 {
		return ""
	}
	postgres := ""
	if ours.below > 0 {
		postgres = fmt.Sprintf(" and %s µs of its Postgres", number(microseconds(ours.below)/float64(max(1, ours.answered))))
	}
	return fmt.Sprintf("processor time of the server per %s: %s µs%s, beside %s µs", what, number(each(ours)), postgres, number(each(theirs)))
}

// newTarget starts a load child for a server.
func (b *bench) newTarget(ctx context.Context, to loadConfig, pid int, stop ...func()) (*target, error) {
	t := &target{pid: pid, stop: stop}
	var err error
	if t.load, err = b.child(ctx, "load", to, new(struct{})); err != nil {
		t.close()
		return nil, err
	}
	t.stop = append([]func(){t.load.stop}, t.stop...)
	return t, nil
}

// venueTarget starts a venue and a load child. token is the token of the venue's clients, and is also used by the
// rival's.
func (b *bench) venueTarget(ctx context.Context, args ...string) (v *venue, t *target, token string, err error) {
	if v, err = b.newVenue(ctx, args...); err != nil {
		return nil, nil, "", err
	}
	if token, err = v.token(ctx, "broker-a"); err != nil {
		v.discard()
		return nil, nil, "", err
	}
	t, err = b.newTarget(ctx, loadConfig{URL: v.REST, Token: token}, v.PID, v.discard)
	return v, t, token, err
}

// rivalTarget starts a rival server and a load child. The rival answers with a response of the venue.
func (b *bench) rivalTarget(ctx context.Context, name, token, databaseURL string, answer []byte, stop ...func()) (*target, error) {
	var ready rivalReady
	server, err := b.child(ctx, name, rivalConfig{answer, databaseURL}, &ready)
	if err != nil {
		for _, f := range stop {
			f()
		}
		return nil, err
	}
	return b.newTarget(ctx, loadConfig{URL: ready.URL, Token: token}, server.cmd.Process.Pid, append([]func(){server.stop}, stop...)...)
}

// throughput and latency return functions that measure a round.
func (t *target) throughput(length time.Duration) func() (float64, error) {
	return func() (float64, error) {
		r, err := t.drive(clients, length)
		return r.PerSecond, err
	}
}

func (t *target) latency(length time.Duration) func() (float64, error) {
	return func() (float64, error) {
		r, err := t.drive(1, length)
		return r.P50, err
	}
}

const bareEcho = "bare Echo no-op"

// measureREST measures only the write path: the roles engine and api, without projections and sockets. The embedded
// broker is in the same process.
func measureREST(ctx context.Context, b *bench) error {
	for _, sync := range []bool{false, true} {
		if err := b.rest(ctx, sync); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) rest(ctx context.Context, sync bool) error {
	v, ours, token, err := b.venueTarget(ctx, "--role", "engine,api", fmt.Sprintf("--sync=%t", sync))
	if err != nil {
		return err
	}
	defer ours.close()
	first, err := ours.drive(clients, b.round/4)
	if err != nil {
		return err
	}
	noop, err := b.rivalTarget(ctx, "noop", token, "", first.Sample)
	if err != nil {
		return err
	}
	defer noop.close()
	mode, aim := "--sync=false", 0.65
	if sync {
		mode, aim = "synced", 0.35
	}
	if err := b.pair(Row{Measure: fmt.Sprintf("REST orders, %d connections, %s", clients, mode), Unit: "orders/s", Against: bareEcho, Aim: atLeast(aim)},
		ours.throughput(b.round), noop.throughput(b.round)); err != nil {
		return err
	}
	b.rows[len(b.rows)-1].Note = costs(ours, noop)
	row := Row{Measure: "acknowledgement p50, 1 connection, " + mode, Unit: "µs"}
	if !sync {
		row.Against, row.Aim = bareEcho, atMost(2.2)
		return b.pair(row, ours.latency(b.round), noop.latency(b.round))
	}
	producer, err := b.child(ctx, "produce", produceConfig{v.Kafka}, new(struct{}))
	if err != nil {
		return err
	}
	defer producer.stop()
	row.Against, row.Aim = "one synced produce", atMost(1.4)
	return b.pair(row, ours.latency(b.round), func() (float64, error) {
		var p50 float64
		err := producer.call(b.round, &p50)
		return p50, err
	})
}

// measureLive measures the whole of `perpetua run`: every role, with projections into Postgres and a socket that reads
// the book. The rival is a bare Echo without syncs, and the usual handler on Postgres with syncs.
func measureLive(ctx context.Context, b *bench) error {
	if err := b.live(ctx, false, Row{Measure: "REST orders, everything live, --sync=false", Against: bareEcho, Aim: atLeast(0.35)},
		func(token string, answer []byte) (*target, error) {
			return b.rivalTarget(ctx, "noop", token, "", answer)
		}); err != nil {
		return err
	}
	return b.live(ctx, true, Row{Measure: "REST orders, everything live, synced", Against: "handler + Postgres transaction", Aim: atLeast(8)},
		func(token string, answer []byte) (*target, error) {
			server, err := postgres.Start(ctx, postgres.Config{Dir: filepath.Join(b.dir, "rival-postgres"), Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				return nil, err
			}
			return b.rivalTarget(ctx, "postgres", token, server.URL(), answer, func() { server.Close() })
		})
}

func (b *bench) live(ctx context.Context, sync bool, row Row, rival func(token string, answer []byte) (*target, error)) error {
	v, ours, token, err := b.venueTarget(ctx, fmt.Sprintf("--sync=%t", sync))
	if err != nil {
		return err
	}
	defer ours.close()
	stop, err := v.watchBook(ctx)
	if err != nil {
		return err
	}
	defer stop()
	first, err := ours.drive(clients, b.round/4)
	if err != nil {
		return err
	}
	theirs, err := rival(token, first.Sample)
	if err != nil {
		return err
	}
	defer theirs.close()
	row.Unit = "orders/s"
	return b.pairCaughtUp(row, "order", ours, theirs, func() (time.Duration, error) { return v.caughtUp(ctx) })
}

// pairCaughtUp measures the throughput of both targets. After each of our rounds it waits until the rows have caught up:
// otherwise that work would slow down the rival's round.
func (b *bench) pairCaughtUp(row Row, unit string, ours, theirs *target, caughtUp func() (time.Duration, error)) error {
	var behind time.Duration
	err := b.pair(row, func() (float64, error) {
		rate, err := ours.throughput(b.round)()
		if err != nil {
			return 0, err
		}
		took, err := caughtUp()
		behind = max(behind, took)
		return rate, err
	}, theirs.throughput(b.round))
	if err == nil {
		b.rows[len(b.rows)-1].Note = fmt.Sprintf("the rows in Postgres were up to %.1f s behind at the end of a round; %s", behind.Seconds(), costsOf(unit, ours, theirs))
	}
	return err
}

// watchBook reads the book over a socket until stop is called.
func (v *venue) watchBook(ctx context.Context) (stop func(), err error) {
	c, answer, err := websocket.DefaultDialer.DialContext(ctx, v.WebSocket, nil)
	if err != nil {
		return nil, err
	}
	answer.Body.Close()
	if err := c.WriteMessage(websocket.TextMessage, []byte(`{"op":"subscribe","args":["orderbook-stream:`+symbol+`"]}`)); err != nil {
		return nil, err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			if _, _, err := c.NextReader(); err != nil {
				return
			}
		}
	}()
	return func() { c.Close(); <-done }, nil
}
