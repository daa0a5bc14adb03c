package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/trading"
)

// loadConfig configures the load child.
type loadConfig struct {
	URL   string
	Token string
	Level bool // use orders that leave the book unchanged
	Batch int  // orders per request; 1 if zero

	// Posts replace the orders. Connection n repeats the posts at index n modulo len(Posts).
	Posts [][]post

	WebSocket string // if set, orders are entered over sockets at this URL …
	InFlight  int    // … with this many in flight on each connection
}

// post is a request that is sent unchanged.
type post struct {
	Path string
	Body string
}

// loadRequest asks for load over a number of connections for a time.
type loadRequest struct {
	Connections int
	For         time.Duration
}

// loadReply is the result of a load. Latencies are in microseconds, one per response as the connection saw it.
type loadReply struct {
	Count     int
	PerSecond float64
	P50, P99  float64
	Sample    []byte // body of one response
}

// variants is the number of different requests that a connection repeats.
const variants = 256

// loadChild sends prebuilt requests over bare connections, so that it costs little, and the same for any server. A
// connection has one request in flight.
func loadChild(_ context.Context, cfg loadConfig, in *json.Decoder, out *json.Encoder) error {
	runtime.GOMAXPROCS(1)
	target, err := url.Parse(cfg.URL)
	if err != nil {
		return err
	}
	var connections []*connection
	return answerAll(in, out, struct{}{}, func(r loadRequest) (reply loadReply, err error) {
		for len(connections) < r.Connections {
			var c *connection
			if cfg.WebSocket != "" {
				c, err = dialSocket(cfg, len(connections))
			} else {
				c, err = dial(target.Host, cfg, len(connections))
			}
			if err != nil {
				return loadReply{}, err
			}
			connections = append(connections, c)
		}
		return load(connections[:r.Connections], r.For)
	})
}

// connection sends the orders of one client.
type connection struct {
	net      net.Conn
	socket   *websocket.Conn // replaces net if set
	window   int             // maximum number of orders in flight on the socket
	inFlight int             // orders in flight
	orders   int             // orders per request
	requests [][]byte
	next     int
	buffer   []byte
	took     []time.Duration
	body     []byte
}

func dial(host string, cfg loadConfig, n int) (*connection, error) {
	nc, err := net.Dial("tcp", host)
	if err != nil {
		return nil, err
	}
	c := &connection{net: nc, buffer: make([]byte, 64<<10), orders: max(1, cfg.Batch)}
	add := func(path, body string) {
		c.requests = append(c.requests, fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n"+
			"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", path, host, cfg.Token, len(body), body))
	}
	if len(cfg.Posts) > 0 {
		for _, p := range cfg.Posts[n%len(cfg.Posts)] {
			add(p.Path, p.Body)
		}
		return c, nil
	}
	random := rand.New(rand.NewPCG(1, uint64(n)))
	if cfg.Batch > 1 {
		for range batchVariants {
			add("/v1/customers/"+customerCode(n)+"/orders/batch", batchBody(random, n, cfg.Batch))
		}
		return c, nil
	}
	for i := range variants {
		o := drawn(random, n)
		if cfg.Level {
			o = levelOrder(i, n)
		}
		add("/v1/customers/"+o.CustomerCode+"/orders", orderBody(o))
	}
	return c, nil
}

// orderBody returns an order of the flow in JSON, as a client writes it.
func orderBody(o *trading.PlaceOrder) string {
	return fmt.Sprintf(`{"symbol":%q,"action":%q,"type":"limit","amount":"%s","limit_price":"%s","time_in_force":%q}`,
		o.Symbol, o.Action, o.Amount, o.LimitPrice, o.TimeInForce)
}

// levelOrder returns the i-th order of an alternating sequence: one rests at the best price and the next one takes it,
// so that the book does not change.
func levelOrder(i, n int) *trading.PlaceOrder {
	o := &trading.PlaceOrder{CustomerCode: customerCode(n + i%2), Symbol: symbol, Action: order.Buy, Type: order.Limit, TimeInForce: order.GTC,
		Amount: fixed.Decimal{Coef: 5, Scale: 3}, LimitPrice: fixed.Decimal{Coef: middle * 10, Scale: 1}}
	if i%2 == 1 {
		o.Action, o.TimeInForce = order.Sell, order.IOC
	}
	return o
}

// load drives the connections for a time and returns the result.
func load(connections []*connection, length time.Duration) (loadReply, error) {
	var running sync.WaitGroup
	var stop atomic.Bool
	errs := make(chan error, len(connections))
	start := time.Now()
	for _, c := range connections {
		c.took = c.took[:0]
		running.Go(func() {
			for !stop.Load() {
				if err := c.exchange(); err != nil {
					errs <- err
					stop.Store(true)
					return
				}
			}
			if err := c.drain(); err != nil {
				errs <- err
			}
		})
	}
	timer := time.AfterFunc(length, func() { stop.Store(true) })
	running.Wait()
	timer.Stop()
	elapsed := time.Since(start)
	select {
	case err := <-errs:
		return loadReply{}, err
	default:
	}
	var all []time.Duration
	orders := 0
	for _, c := range connections {
		all = append(all, c.took...)
		orders += len(c.took) * c.orders
	}
	slices.Sort(all)
	return loadReply{Count: orders, PerSecond: float64(orders) / elapsed.Seconds(), P50: microseconds(all[len(all)/2]),
		P99: microseconds(all[len(all)*99/100]), Sample: connections[0].body}, nil
}

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// exchange sends one request and reads its response.
func (c *connection) exchange() error {
	if c.socket != nil {
		return c.exchangeResult()
	}
	start := time.Now()
	if _, err := c.net.Write(c.requests[c.next%len(c.requests)]); err != nil {
		return err
	}
	c.next++
	n, head, size := 0, -1, 0
	for {
		m, err := c.net.Read(c.buffer[n:])
		if err != nil {
			return fmt.Errorf("reading an answer: %w", err)
		}
		n += m
		if head < 0 {
			if head = bytes.Index(c.buffer[:n], []byte("\r\n\r\n")); head < 0 {
				continue
			}
			if size, err = contentLength(c.buffer[:head]); err != nil {
				return err
			}
		}
		if n >= head+4+size {
			break
		}
		if n == len(c.buffer) {
			return errors.New("an answer is too long")
		}
	}
	c.took = append(c.took, time.Since(start))
	c.body = append(c.body[:0], c.buffer[head+4:n]...)
	if c.buffer[9] != '2' {
		return fmt.Errorf("a request was answered with %.1000s", c.buffer[:n])
	}
	return nil
}

func contentLength(header []byte) (int, error) {
	_, after, ok := bytes.Cut(header, []byte("\r\nContent-Length: "))
	if !ok {
		return 0, fmt.Errorf("an answer without Content-Length: %s", header)
	}
	digits, _, _ := bytes.Cut(after, []byte("\r"))
	return strconv.Atoi(string(digits))
}
