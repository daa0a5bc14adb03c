package live_test

import (
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/live"
)

// BenchmarkFanOut measures how fast an order and a trade with it reach every one of many sockets, on one topic at a time,
// with and without compression. An operation is two records. messages/s counts the messages that all sockets received,
// wire-B/message is the size of a frame, and cpu-ns/message the processor time of the process: that of the venue and of the
// readers of the sockets, which do not inflate.
func BenchmarkFanOut(b *testing.B) {
	for _, sockets := range []int{1, 100, 1000} {
		for _, topic := range []string{
			"orderbook-stream:" + btc, "market-trades:" + btc, "orders", "trades", "positions", "margin",
		} {
			for _, compress := range []bool{false, true} {
				name := fmt.Sprintf("sockets=%d/%s/compress=%v", sockets, topic, compress)
				b.Run(name, func(b *testing.B) { fanOut(b, sockets, topic, compress) })
			}
		}
	}
}

func fanOut(b *testing.B, sockets int, topic string, compress bool) {
	v := newVenue(b, live.Limits{BeatEvery: time.Hour}, nil, compressing)
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(v.hub.Collectors()...)
	dialer := websocket.Dialer{EnableCompression: compress, ReadBufferSize: 1024}
	var drains drained
	for range sockets {
		c, response, err := dialer.DialContext(b.Context(), v.url, http.Header{"Authorization": {"Bearer " + v.reader("alpha")}})
		if err != nil {
			b.Fatal(err)
		}
		_ = response.Body.Close()
		defer func() { _ = c.Close() }()
		if err := c.WriteMessage(websocket.TextMessage, []byte(`{"op":"subscribe","args":["`+topic+`"]}`)); err != nil {
			b.Fatal(err)
		}
		if err := c.WriteMessage(websocket.TextMessage, []byte(`{"op":"ping"}`)); err != nil {
			b.Fatal(err)
		}
		for text := ""; text != `{"op":"pong"}`; {
			_, raw, err := c.ReadMessage()
			if err != nil {
				b.Fatal(err)
			}
			text = string(raw)
		}
		go drains.read(c.NetConn())
	}
	encoded := func() int64 { return int64(gather(b, registry)["perpetua_live_messages_encoded_total"]) }
	before, cpu := encoded(), processorTime(b)
	maker, taker := limit("A1", btc, order.Sell, "0.003", "1000"), limit("A2", btc, order.Buy, "0.001", "1000")
	b.ResetTimer()
	for n := range b.N {
		maker.Action, taker.Action = taker.Action, maker.Action // what one buys is sold again
		v.do(trading.CommandPlaceOrder, maker)
		v.do(trading.CommandPlaceOrder, taker)
		if n%64 == 63 || n == b.N-1 { // no queue overflows
			for drains.messages.Load() < (encoded()-before)*int64(sockets) {
				time.Sleep(100 * time.Microsecond)
			}
		}
	}
	b.StopTimer()
	messages := float64(drains.messages.Load())
	b.ReportMetric(messages/b.Elapsed().Seconds(), "messages/s")
	b.ReportMetric(float64(drains.bytes.Load())/messages, "wire-B/message")
	b.ReportMetric(float64((processorTime(b)-cpu).Nanoseconds())/messages, "cpu-ns/message")
}

// BenchmarkSnapshot measures the snapshot of a book that a subscriber gets first, with and without compression. wire-B/message is the
// size of its frame and cpu-ns/message the processor time of the process, which also reads the frames and does not inflate them.
func BenchmarkSnapshot(b *testing.B) {
	for _, levels := range []int{20, 100, 250} { // on each side
		for _, compress := range []bool{false, true} {
			b.Run(fmt.Sprintf("levels=%d/compress=%v", levels, compress), func(b *testing.B) { snapshots(b, levels, compress) })
		}
	}
}

func snapshots(b *testing.B, levels int, compress bool) {
	v := newVenue(b, live.Limits{BeatEvery: time.Hour, RequestsPerSecond: 1e9, RequestBurst: 1e9}, nil, compressing)
	for n := range levels {
		amount := fmt.Sprintf("0.%03d", 1+n*7919%997) // as no two levels of a real book are alike
		v.do(trading.CommandPlaceOrder, limit("A1", btc, order.Buy, amount, fmt.Sprintf("%d.%d", 1000-n/10-1, 9-n%10)))
		v.do(trading.CommandPlaceOrder, limit("A1", btc, order.Sell, amount, fmt.Sprintf("%d.%d", 1000+n/10, n%10)))
	}
	dialer := websocket.Dialer{EnableCompression: compress, ReadBufferSize: 1024}
	c, response, err := dialer.DialContext(b.Context(), v.url, http.Header{"Authorization": {"Bearer " + v.reader("alpha")}})
	if err != nil {
		b.Fatal(err)
	}
	_ = response.Body.Close()
	defer func() { _ = c.Close() }()
	var drains drained
	go drains.read(c.NetConn())
	// Each turn has two answers and the snapshot. The answers are too short to be compressed.
	const topic, answers = "orderbook-stream:" + btc, 2 * len(`{"op":"subscribed","topic":"orderbook-stream:BTCUSDC_PERP"}`)
	cpu := processorTime(b)
	b.ResetTimer()
	for n := range b.N {
		for _, op := range []string{"subscribe", "unsubscribe"} {
			if err := c.WriteMessage(websocket.TextMessage, []byte(`{"op":"`+op+`","args":["`+topic+`"]}`)); err != nil {
				b.Fatal(err)
			}
		}
		for drains.messages.Load() < 3*int64(n+1) {
			time.Sleep(20 * time.Microsecond)
		}
	}
	b.StopTimer()
	b.ReportMetric(float64(drains.bytes.Load())/float64(b.N)-float64(answers), "wire-B/message")
	b.ReportMetric(float64((processorTime(b)-cpu).Nanoseconds())/float64(b.N), "cpu-ns/message")
}

// processorTime returns how long the process has used processors.
func processorTime(b *testing.B) time.Duration {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		b.Fatal(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// drained is what some sockets have received.
type drained struct{ messages, bytes atomic.Int64 }

// read counts frames without looking into them: all are shorter than 64 KiB and none is masked.
func (d *drained) read(c net.Conn) {
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
			if buffer[0]&0xf == 1 {
				d.messages.Add(1)
				d.bytes.Add(int64(size))
			}
			buffer = buffer[size:]
		}
	}
}
