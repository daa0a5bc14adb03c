package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// TestSocketLoad: as many orders are in flight as may be, and all that were sent are answered and counted when a round is
// over.
func TestSocketLoad(t *testing.T) {
	var got, most, waiting atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := new(websocket.Upgrader).Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		asked := make(chan string, 64)
		defer close(asked)
		go func() {
			for id := range asked {
				most.Store(max(most.Load(), waiting.Load()))
				waiting.Add(-1)
				_ = c.WriteMessage(websocket.TextMessage, fmt.Appendf(nil, `{"op":"result","id":%s,"status":201,"position":null,"data":{}}`, id))
			}
		}()
		for {
			_, text, err := c.ReadMessage()
			if err != nil {
				return
			}
			var request struct {
				Op   string
				ID   json.RawMessage
				Data map[string]any
			}
			if err := json.Unmarshal(text, &request); err != nil || request.Op != "order.place" || request.Data["customer_code"] == nil || request.Data["symbol"] != symbol {
				t.Errorf("%s: %v", text, err)
			}
			got.Add(1)
			waiting.Add(1)
			asked <- string(request.ID)
		}
	}))
	defer server.Close()
	c, err := dialSocket(loadConfig{WebSocket: "ws" + strings.TrimPrefix(server.URL, "http"), InFlight: 8}, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer c.socket.Close()
	total := 0
	for range 2 {
		r, err := load([]*connection{c}, 50*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		if total += r.Count; c.inFlight != 0 || int64(total) != got.Load() {
			t.Errorf("%d counted and %d in flight of %d sent", total, c.inFlight, got.Load())
		}
	}
	if most.Load() > 8 {
		t.Errorf("%d were in flight", most.Load())
	}
}

// TestBatchBody: a batch is one request of so many orders of one customer.
func TestBatchBody(t *testing.T) {
	var batch struct{ Orders []map[string]any }
	if err := json.Unmarshal([]byte(batchBody(rand.New(rand.NewPCG(1, 1)), 3, batchOrders)), &batch); err != nil || len(batch.Orders) != batchOrders {
		t.Fatalf("%d orders, %v", len(batch.Orders), err)
	}
	for n := range 100 {
		if o := drawn(rand.New(rand.NewPCG(1, uint64(n))), 3); o.CustomerCode != customerCode(3) {
			t.Fatalf("an order of %s in a batch of %s", o.CustomerCode, customerCode(3))
		}
	}
}
