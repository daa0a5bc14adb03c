package e2e

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/perpetua-exchange/perpetua/handlers/live/livetest"
)

// countingDialer returns a dialer that counts the bytes which its connections receive.
func countingDialer(compress bool, received *atomic.Int64) *websocket.Dialer {
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, address)
		return countedConn{c, received}, err
	}
	return &websocket.Dialer{EnableCompression: compress, NetDialContext: dial}
}

type countedConn struct {
	net.Conn
	received *atomic.Int64
}

func (c countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.received.Add(int64(n))
	return n, err
}

// TestCompressedSockets: a stock client that offers compression sends compressed orders. Another one gets the same messages
// as a client without compression, in fewer bytes. A node whose setting is off declines the offer.
func TestCompressedSockets(t *testing.T) {
	t.Parallel()
	for _, on := range []bool{true, false} {
		t.Run(fmt.Sprint(on), func(t *testing.T) {
			v := startVenue(t, fmt.Sprintf("--socket-compression=%t", on))
			v.fund("1000000", "ANNA")
			var plainBytes, packedBytes, answerBytes atomic.Int64
			plain := livetest.DialWith(t, countingDialer(false, &plainBytes), v.WebSocket, v.token("broker-a"))
			packed := livetest.DialWith(t, countingDialer(true, &packedBytes), v.WebSocket, v.token("broker-a"))
			trader := livetest.DialWith(t, countingDialer(true, &answerBytes), v.WebSocket, v.token("broker-a"))
			topics := []string{"orders", "orderbook-stream:BTCUSDC_PERP"}
			plain.Subscribe(topics...)
			packed.Subscribe(topics...)
			const orders = 100 // fewer than may be under way
			for n := range orders {
				trader.Send(livetest.Request{Op: "order.place", ID: n, Data: map[string]string{
					"customer_code": "ANNA", "symbol": "BTCUSDC_PERP", "action": "sell", "type": "limit", "amount": "0.001",
					"limit_price": fmt.Sprintf("%d.0", 65000+n)}})
			}
			results := func(all []livetest.Message) (n int) {
				for _, m := range all {
					if m.Op == "result" && m.Fields()["status"] == "201" {
						n++
					}
				}
				return n
			}
			trader.Until("an answer to each order", func(all []livetest.Message) bool { return results(all) == orders })
			for _, topic := range topics {
				var texts [2][]string
				for i, c := range []*livetest.Client{plain, packed} {
					waitFor(t, "each order on "+topic, func() bool { return len(c.On(topic)) >= orders })
					for _, m := range c.On(topic) {
						texts[i] = append(texts[i], string(m.Raw))
					}
				}
				if !slices.Equal(texts[0], texts[1]) {
					t.Errorf("%s: %d messages and %d, which differ", topic, len(texts[0]), len(texts[1]))
				}
			}
			t.Logf("%d bytes for a client without compression, %d for one that offers it", plainBytes.Load(), packedBytes.Load())
			if smaller := packedBytes.Load() < plainBytes.Load()*3/4; smaller != on {
				t.Errorf("much fewer: %t, want %t", smaller, on)
			}
		})
	}
}
