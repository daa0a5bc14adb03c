package live_test

import (
	"fmt"
	"net"
	"net/http"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/live"
)

// BenchmarkFanOut measures how fast one record's update of a book reaches every one of many sockets: an operation is
// a record, and messages/s counts what all sockets have received.
func BenchmarkFanOut(b *testing.B) {
	for _, sockets := range []int{1, 100, 500} {
		b.Run(fmt.Sprintf("sockets=%d", sockets), func(b *testing.B) {
			v := newVenue(b, live.Limits{}, nil)
			received := make(chan struct{}, sockets)
			for range sockets {
				c, response, err := websocket.DefaultDialer.DialContext(b.Context(), v.url, http.Header{})
				if err != nil {
					b.Fatal(err)
				}
				_ = response.Body.Close()
				defer func() { _ = c.Close() }()
				if err := c.WriteMessage(websocket.TextMessage, []byte(`{"op":"subscribe","args":["orderbook-stream:`+btc+`"]}`)); err != nil {
					b.Fatal(err)
				}
				for range 2 { // the acknowledgement and the snapshot
					if _, _, err := c.ReadMessage(); err != nil {
						b.Fatal(err)
					}
				}
				go drain(c.NetConn(), received)
			}
			maker := limit("A1", btc, order.Sell, "0.001", "1000")
			b.ResetTimer()
			for n := range b.N {
				v.do(trading.CommandPlaceOrder, maker)
				if n%64 == 63 || n == b.N-1 { // no queue overflows
					for range (n%64 + 1) * sockets {
						<-received
					}
				}
			}
			b.ReportMetric(float64(b.N*sockets)/b.Elapsed().Seconds(), "messages/s")
		})
	}
}

// drain counts frames without looking into them: all are shorter than 64 KiB and none is masked.
func drain(c net.Conn, received chan<- struct{}) {
	buffer := make([]byte, 0, 1<<16)
	chunk := make([]byte, 1<<15)
	for {
		n, err := c.Read(chunk)
		if err != nil {
			return
		}
		buffer = append(buffer, chunk[:n]...)
		for len(buffer) >= 4 {
			size := 2 + int(buffer[1])
			if buffer[1] == 126 {
				size = 4 + int(buffer[2])<<8 + int(buffer[3])
			}
			if len(buffer) < size {
				break
			}
			if buffer[0] == 0x81 {
				received <- struct{}{}
			}
			buffer = buffer[size:]
		}
	}
}
