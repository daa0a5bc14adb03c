package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"github.com/perpetua-exchange/perpetua/projections/postgres"
)

const (
	batchOrders      = 50 // orders per batch
	batchConnections = 16
	batchVariants    = 16 // different batches that a connection repeats
	socketsInFlight  = 32 // orders in flight on each socket
)

const singleOrders = "single orders over REST"

// batchBody returns the body of a batch of one customer's orders.
func batchBody(random *rand.Rand, n, orders int) string {
	var items []string
	for range orders {
		items = append(items, orderBody(drawn(random, n)))
	}
	return `{"orders":[` + strings.Join(items, ",") + `]}`
}

// dialSocket opens a connection that enters orders over a socket.
func dialSocket(cfg loadConfig, n int) (*connection, error) {
	ws, answer, err := websocket.DefaultDialer.Dial(cfg.WebSocket, http.Header{"Authorization": {"Bearer " + cfg.Token}})
	if err != nil {
		return nil, err
	}
	answer.Body.Close()
	c := &connection{socket: ws, window: cfg.InFlight, orders: 1}
	random := rand.New(rand.NewPCG(1, uint64(n)))
	for i := range variants {
		o := drawn(random, n)
		c.requests = append(c.requests,
			fmt.Appendf(nil, `{"op":"order.place","id":%d,"data":{"customer_code":%q,%s}`, i, o.CustomerCode, orderBody(o)[1:]))
	}
	return c, nil
}

// exchangeResult fills the window of orders in flight and reads one result.
func (c *connection) exchangeResult() error {
	for ; c.inFlight < c.window; c.inFlight++ {
		if err := c.socket.WriteMessage(websocket.TextMessage, c.requests[c.next%len(c.requests)]); err != nil {
			return err
		}
		c.next++
	}
	return c.readResult()
}

func (c *connection) readResult() error {
	start := time.Now()
	_, message, err := c.socket.ReadMessage()
	if err != nil {
		return err
	}
	if !bytes.Contains(message, []byte(`,"status":201,`)) {
		return fmt.Errorf("an order was answered with %.1000s", message)
	}
	c.inFlight--
	c.body = message
	c.took = append(c.took, time.Since(start))
	return nil
}

// drain reads the results in flight at the end of a round, which includes them.
func (c *connection) drain() error {
	for c.inFlight > 0 {
		if err := c.readResult(); err != nil {
			return err
		}
	}
	return nil
}

// entered returns a function that enters orders for a round and waits until the rows include them: otherwise that work
// would slow down the rival's round.
func (v *venue) entered(ctx context.Context, t *target, connections int, round time.Duration) func() (float64, error) {
	return func() (float64, error) {
		r, err := t.drive(connections, round)
		if err == nil {
			_, err = v.caughtUp(ctx)
		}
		return r.PerSecond, err
	}
}

// pairEntry measures a row and adds the processor time per order of both servers.
func (b *bench) pairEntry(row Row, ours *target, our func() (float64, error), theirs *target, their func() (float64, error)) error {
	for _, t := range []*target{ours, theirs} {
		t.answered, t.used, t.below = 0, 0, 0
	}
	row.Unit = "orders/s"
	err := b.pair(row, our, their)
	if err == nil {
		b.rows[len(b.rows)-1].Note = costs(ours, theirs)
	}
	return err
}

// measureEntry measures order entry by batches and over sockets, with everything live and synced.
func measureEntry(ctx context.Context, b *bench) error {
	v, single, token, err := b.venueTarget(ctx)
	if err != nil {
		return err
	}
	defer single.close()
	stop, err := v.watchBook(ctx)
	if err != nil {
		return err
	}
	defer stop()
	first, err := single.drive(clients, b.round/4)
	if err != nil {
		return err
	}
	if err := b.overSockets(ctx, v, single, token); err != nil {
		return err
	}
	batches, err := b.newTarget(ctx, loadConfig{URL: v.REST, Token: token, Batch: batchOrders}, v.PID)
	if err != nil {
		return err
	}
	defer batches.close()
	ours := v.entered(ctx, batches, batchConnections, b.round)
	what := fmt.Sprintf("orders by batches of %d, %d connections, everything live, synced", batchOrders, batchConnections)
	err = b.pairEntry(Row{Measure: what, Against: singleOrders, Aim: atLeast(5)}, batches, ours, single, v.entered(ctx, single, clients, b.round))
	if err != nil {
		return err
	}
	theirs, err := b.transactions(ctx, token, first.Sample)
	if err != nil {
		return err
	}
	defer theirs.close()
	return b.pairEntry(Row{Measure: what, Against: "handler + Postgres transaction, one order each", Aim: atLeast(8)},
		batches, ours, theirs, theirs.throughput(b.round))
}

// overSockets compares orders over sockets with single ones over REST.
func (b *bench) overSockets(ctx context.Context, v *venue, single *target, token string) error {
	over, err := b.newTarget(ctx, loadConfig{URL: v.REST, WebSocket: v.WebSocket, InFlight: socketsInFlight, Token: token}, v.PID)
	if err != nil {
		return err
	}
	defer over.close()
	what := fmt.Sprintf("orders over %d sockets, %d in flight each, everything live, synced", clients, socketsInFlight)
	err = b.pairEntry(Row{Measure: what, Against: singleOrders, Aim: atLeast(2.5)},
		over, v.entered(ctx, over, clients, b.round), single, v.entered(ctx, single, clients, b.round))
	if err != nil {
		return err
	}
	return b.overSocketsElsewhere(ctx, v, over, token)
}

// overSocketsElsewhere compares orders over the sockets of a node that sends them to the owner with those over the owner's.
func (b *bench) overSocketsElsewhere(ctx context.Context, v *venue, owner *target, token string) error {
	node, err := b.newNode(ctx, v)
	if err != nil {
		return err
	}
	defer node.stop()
	over, err := b.newTarget(ctx, loadConfig{URL: node.url, WebSocket: node.webSocket(), InFlight: socketsInFlight, Token: token}, v.PID)
	if err != nil {
		return err
	}
	defer over.close()
	for _, sockets := range []struct {
		count int
		aim   Aim
	}{{1, atLeast(0.8)}, {clients, Aim{}}} { // with many, both processes need more than the processors of a small machine
		what := fmt.Sprintf("orders over %d sockets of another node, %d in flight each, everything live, synced", sockets.count, socketsInFlight)
		err := b.pairEntry(Row{Measure: what, Against: "over sockets of the owner", Aim: sockets.aim},
			over, v.entered(ctx, over, sockets.count, b.round), owner, v.entered(ctx, owner, sockets.count, b.round))
		if err != nil {
			return err
		}
	}
	return nil
}

// transactions returns the rival that enters each order in a Postgres transaction.
func (b *bench) transactions(ctx context.Context, token string, answer []byte) (*target, error) {
	server, err := postgres.Start(ctx, postgres.Config{Dir: filepath.Join(b.dir, "rival-postgres-of-batches"), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	return b.rivalTarget(ctx, "postgres", token, server.URL(), answer, func() { server.Close() })
}
