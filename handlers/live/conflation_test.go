package live_test

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/live"
	"github.com/perpetua-exchange/perpetua/handlers/live/livetest"
)

// candlesOverREST answers with the candles that a test says there are.
type candlesOverREST struct {
	mu     sync.Mutex
	all    []string // JSON, with the time of each below
	times  []string
	silent bool
}

func (r *candlesOverREST) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.silent {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	from := q.URL.Query().Get("from")
	body := ""
	for i := range r.all {
		if from == "" && i < len(r.all)-1 || r.times[i] < from {
			continue
		}
		if body != "" {
			body += ","
		}
		body += r.all[i]
	}
	w.Header().Set("X-Log-Position", "trading/0@99")
	io.WriteString(w, "["+body+"]")
}

// set says that there is a candle at a minute, the last one there is.
func (r *candlesOverREST) set(minute int, volume string, closed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := fmt.Sprintf("2099-01-01T00:%02d:00.000000Z", minute)
	text := fmt.Sprintf(`{"time":%q,"open":"1000.0","high":"1000.0","low":"1000.0","close":"1000.0","volume":%q,"turnover":"1","trades":1,"closed":%t}`, at, volume, closed)
	for i := range r.times {
		if r.times[i] == at {
			r.all[i] = text
			return
		}
	}
	r.all, r.times = append(r.all, text), append(r.times, at)
}

// TestCandlesAreSentUntilTheyClose: the open candle comes when it has changed, and once more when it is closed, followed by
// those after it; none is left out where nothing could be asked for a while, and none comes twice.
func TestCandlesAreSentUntilTheyClose(t *testing.T) {
	v := newVenue(t, live.Limits{BeatEvery: 20 * time.Millisecond}, nil)
	rest := &candlesOverREST{}
	v.rest.Store(http.HandlerFunc(rest.ServeHTTP))
	rest.set(0, "0.9", true)
	rest.set(1, "0.1", false)
	const topic = "candles:1m:" + btc
	c := v.dial("")
	c.SubscribeWith(livetest.Request{Args: []string{topic}, Data: map[string]bool{"positions": true}})
	shown := func() (out []string) {
		for _, m := range c.On(topic) {
			f := m.Fields()
			out = append(out, f["time"][14:16]+" "+f["volume"]+" "+f["closed"])
		}
		return out
	}
	wait := func(want ...string) {
		t.Helper()
		v.until(t, fmt.Sprint(want), func() bool { return fmt.Sprint(shown()) == fmt.Sprint(want) })
	}
	trade := func() {
		v.place(limit("A1", btc, order.Sell, "0.001", "1000"))
		v.place(limit("B1", btc, order.Buy, "0.001", "1000"))
	}
	wait("01 0.1 false")
	rest.set(1, "0.2", false)
	trade()
	wait("01 0.1 false", "01 0.2 false")
	rest.mu.Lock()
	rest.silent = true
	rest.mu.Unlock()
	trade()
	rest.set(1, "0.3", true)
	rest.set(2, "0", true)
	rest.set(3, "0.5", false)
	rest.mu.Lock()
	rest.silent = false
	rest.mu.Unlock()
	wait("01 0.1 false", "01 0.2 false", "01 0.3 true", "02 0 true", "03 0.5 false")
	trade() // of which REST says nothing new
	caughtUp(c)
	wait("01 0.1 false", "01 0.2 false", "01 0.3 true", "02 0 true", "03 0.5 false")
	if at := c.On(topic)[0].Fields()["position"]; at != "trading/0@99" {
		t.Errorf("the position is %s", at)
	}
}

// TestCandlesCloseWhereTheLogIsAhead: a candle is asked for again when its interval has ended for the owner of the journal, which is
// years ahead of the node's clock, although nothing is traded.
func TestCandlesCloseWhereTheLogIsAhead(t *testing.T) {
	v := newVenue(t, live.Limits{BeatEvery: 20 * time.Millisecond}, nil)
	rest := &candlesOverREST{}
	v.rest.Store(http.HandlerFunc(rest.ServeHTTP))
	rest.set(1, "0.1", false)
	const topic = "candles:1m:" + btc
	c := v.dial("")
	c.SubscribeWith(livetest.Request{Args: []string{topic}})
	closed := func(want ...string) {
		t.Helper()
		v.until(t, fmt.Sprint(want), func() bool {
			var got []string
			for _, m := range c.On(topic) {
				got = append(got, m.Fields()["closed"])
			}
			return fmt.Sprint(got) == fmt.Sprint(want)
		})
	}
	closed("false")
	rest.set(1, "0.1", true)
	v.clock = scalar.TimeOf(time.Date(2099, 1, 1, 0, 2, 0, 0, time.UTC))
	v.place(limit("A1", btc, order.Sell, "0.001", "1000"))
	closed("false", "true")
}

// TestTickersMoveOnWithoutRecords: when a minute has passed, a ticker is sent again if its 24-hour figures have changed, although no
// record changed it.
func TestTickersMoveOnWithoutRecords(t *testing.T) {
	v := newVenue(t, live.Limits{BeatEvery: 20 * time.Millisecond}, nil)
	var mu sync.Mutex
	volume, silent, asked := "3", false, 0
	v.rest.Store(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked++
		if silent {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintf(w, `[{"symbol":%q,"underlying":"BTC","quote_currency":"USDC","last_price":null,"mark_price":null,"index_price":null,`+
			`"best_bid":null,"best_bid_amount":null,"best_ask":null,"best_ask_amount":null,"open_24h":null,"high_24h":null,"low_24h":null,`+
			`"change_24h":null,"volume_24h":%q,"turnover_24h":"0","open_interest":"0","funding_rate":null,"next_funding_time":null,`+
			`"timestamp":%q}]`, btc, volume, scalar.TimeOf(time.Now()).String())
	}))
	v.clock = scalar.TimeOf(time.Date(2099, 1, 1, 0, 2, 0, 0, time.UTC)) // ahead of the node's clock, so that records bring the time
	v.place(limit("A1", eth, order.Sell, "0.001", "1000"))
	c := v.dial("")
	c.Subscribe("ticker:" + btc)
	wait := func(want ...string) {
		t.Helper()
		v.until(t, fmt.Sprint(want), func() bool {
			var got []string
			for _, m := range c.On("ticker:" + btc) {
				got = append(got, m.Fields()["volume_24h"])
			}
			return fmt.Sprint(got) == fmt.Sprint(want)
		})
	}
	wait("3")
	mu.Lock()
	volume, silent, asked = "0", true, 0
	mu.Unlock()
	v.clock += scalar.Minute
	v.place(limit("A1", eth, order.Sell, "0.001", "1000")) // of another instrument
	v.until(t, "two questions without an answer", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return asked > 1
	})
	mu.Lock()
	silent = false
	mu.Unlock()
	wait("3", "0")
	for range 2 { // the second question comes after what the first has led to
		mu.Lock()
		asked = 0
		mu.Unlock()
		v.clock += scalar.Minute
		v.place(limit("A1", eth, order.Sell, "0.001", "1000"))
		v.until(t, "a question", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return asked > 0
		})
	}
	caughtUp(c)
	wait("3", "0") // only the timestamp has changed
}
