package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/perpetua-exchange/perpetua/handlers/live/livetest"
)

// withheld is a venue on a broker in the test's process, which can be told to append nothing to the trading journal, as
// a cluster does that has lost its in-sync replicas: produces neither fail nor finish until it is told otherwise.
type withheld struct {
	*venue
	fake   *kfake.Cluster
	faults *kfake.FaultHandle
}

// startWithheld starts the venue. KAFKA_BROKERS is of no use here: the fault is the broker's.
func startWithheld(t testing.TB) *withheld {
	t.Helper()
	fake, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fake.Close)
	v := newVenue(t)
	v.env = append(v.env, "PERPETUA_KAFKA_BROKERS="+strings.Join(fake.ListenAddrs(), ","))
	v.start()
	t.Cleanup(v.stop)
	return &withheld{venue: v, fake: fake}
}

func (w *withheld) withhold() {
	w.faults = w.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: w.prefix + "trading",
		Err: kerr.NotEnoughReplicas, Count: -1})
}

func (w *withheld) release() { w.faults.Remove() }

// shows returns everything that a client could see of the two customers and of the market, as of the last write that was
// acknowledged at the earliest.
func (w *withheld) shows(written string) map[string]string {
	w.t.Helper()
	seen := make(map[string]string)
	for _, path := range []string{annasOrders, bensOrders, "/v1/orders?customer_code=BEN", bensOrders + "/history",
		"/v1/customers/ANNA/trades", "/v1/customers/BEN/trades", "/v1/customers/ANNA/positions",
		"/v1/customers/ANNA/account-summary", "/v1/customers/BEN/account-summary", "/v1/customers/ANNA/transactions",
		"/v1/customers/BEN/transactions", "/v1/orderbook/" + bitcoin, "/v1/market-trades?symbol=" + bitcoin} {
		a := w.must(200, "broker-a", http.MethodGet, path, nil, "X-Min-Log-Position", written)
		seen[path] = a.Header.Get("X-Log-Position") + " " + string(a.Body)
	}
	w.must(404, "broker-a", http.MethodGet, bensOrders+"/by-reference/ben-1", nil)
	return seen
}

// unchanged holds what shows now against what did.
func (w *withheld) unchanged(when, written string, before map[string]string) {
	w.t.Helper()
	for path, is := range w.shows(written) {
		if was := before[path]; was != is {
			w.t.Errorf("%s, %s shows\n%s\nand not\n%s", when, path, is, was)
		}
	}
}

// gauge reads a metric of the trading journal.
func (w *withheld) gauge(name string) string {
	for line := range strings.Lines(string(w.do("", http.MethodGet, "/metrics", nil).Body)) {
		if value, ok := strings.CutPrefix(line, "perpetua_journal_"+name+`{journal="trading"} `); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// silent asks each socket for a pong and checks that nothing else has come since it was at the given message.
func silent(t *testing.T, when string, seen map[*livetest.Client]int) {
	t.Helper()
	for socket, n := range seen {
		socket.Send(livetest.Request{Op: "ping"})
		socket.Next("a pong", func(m livetest.Message) bool { return m.Op == "pong" })
		messages := socket.Messages()
		for _, m := range messages[n:] {
			if m.Op != "pong" {
				t.Errorf("%s, a socket is told %s", when, m.Raw)
			}
		}
		seen[socket] = len(messages)
	}
}

// TestNothingShowsBeforeItIsAcknowledged withholds the broker's acknowledgements while an order trades in the owner's
// memory. Until they come nobody may see anything of it: not by any query, nor over a socket, nor by asking again with
// the same key.
func TestNothingShowsBeforeItIsAcknowledged(t *testing.T) {
	t.Parallel() // for most of its time it waits until the venue gives up
	for range 5 {
		w := startWithheld(t)
		resting, inTime := w.stallBriefly(t)
		if inTime {
			w.stallForLong(t, resting)
			return
		}
		t.Log("the venue gave up before everything was asked; once more with another")
		w.release()
		w.stop()
	}
	t.Error("this machine is too slow to ask everything before the venue gives up")
}

// stallBriefly withholds acknowledgements for less than clients wait for, while an order trades with a resting one, which
// is returned. It is not in time where intake stops before everything is asked, or a client has given up.
func (w *withheld) stallBriefly(t *testing.T) (resting answer, inTime bool) {
	t.Helper()
	private, public := livetest.Dial(t, w.WebSocket, w.token("broker-a")), livetest.Dial(t, w.WebSocket, "")
	private.Subscribe("orders", "trades", "balance-changes")
	public.Subscribe("orderbook-stream:"+bitcoin, "market-trades:"+bitcoin)
	w.fund("10000", "ANNA", "BEN")
	resting = w.must(201, "broker-a", http.MethodPost, annasOrders,
		`{"symbol":"BTCUSDC_PERP","action":"sell","type":"limit","amount":"0.1","limit_price":"65000"}`)
	written := resting.Header.Get("X-Log-Position")
	// The live role follows the log at its own pace, and each topic comes at its own.
	comes := func(socket *livetest.Client, times int, topic, word string) {
		t.Helper()
		socket.Until(topic+" to tell of "+word, func(all []livetest.Message) bool {
			n := 0
			for _, m := range all {
				if m.Channel == topic && strings.Contains(string(m.Raw), word) {
					n++
				}
			}
			return n >= times
		})
	}
	comes(private, 2, "balance-changes", `"deposit"`)
	comes(private, 1, "orders", resting.get("code"))
	comes(public, 1, "orderbook-stream:"+bitcoin, `"65000.0"`)
	seen := map[*livetest.Client]int{private: len(private.Messages()), public: len(public.Messages())}
	before := w.shows(written)

	const crossing = `{"symbol":"BTCUSDC_PERP","action":"buy","type":"limit","amount":"0.04","limit_price":"65000","reference_id":"ben-1"}`
	var begun time.Time
	open := func(when string, waiting ...<-chan answer) (all bool) {
		t.Helper()
		for _, answers := range waiting {
			select {
			case a := <-answers:
				limit := map[string]time.Duration{"NOT_ACCEPTED": 2 * time.Second, "OUTCOME_UNKNOWN": 10 * time.Second}[a.get("code")]
				if limit == 0 || a.Status != 503 || time.Since(begun) < limit {
					t.Fatalf("%s, a request was answered %d: %s", when, a.Status, a.Body)
				}
				return false
			default:
			}
		}
		return true
	}

	w.withhold()
	begun = time.Now()
	first := w.post(crossing, "Idempotency-Key", "k")
	waitFor(t, "the order to be decided", func() bool { return w.gauge("window_records") == "1" && w.gauge("held_replies") == "1" })
	again := w.post(crossing, "Idempotency-Key", "k")
	byReference := w.post(crossing)
	conflict := w.post(strings.Replace(crossing, "0.04", "0.05", 1), "Idempotency-Key", "k")
	decided := false
	waitForWord(t, "the repetitions to be decided", func() string {
		held := w.gauge("held_replies")
		if decided = held == "4"; decided || !open("withheld", first, again, byReference, conflict) {
			return ""
		}
		return held + " replies are held"
	})
	if !decided {
		return resting, false
	}
	w.unchanged("withheld", written, before)
	silent(t, "withheld", seen)
	if !open("withheld", first, again, byReference, conflict) {
		return resting, false
	}
	stopped := make(chan answer, 1024)
	waitFor(t, "intake to stop", func() bool {
		go func() { // held, if it is decided before intake stops
			if a, err := w.try("broker-a", http.MethodDelete, bensOrders+"/01a1fca0-bc5d-8000-8000-d319d0eb5f35", nil); err == nil {
				stopped <- a
			}
		}()
		select {
		case a := <-stopped:
			if a.Status != 503 || a.get("code") != "NOT_ACCEPTED" || a.Header.Get("Retry-After") != "1" {
				t.Fatalf("with nothing acknowledged, a request is answered %d: %s", a.Status, a.Body)
			}
			return true
		case <-time.After(200 * time.Millisecond):
			return false
		}
	})
	w.unchanged("with intake stopped", written, before)
	silent(t, "with intake stopped", seen)
	if !open("with intake stopped", first, again, byReference, conflict) {
		return resting, false
	}
	w.release()
	placed := <-first
	if placed.get("code") == "OUTCOME_UNKNOWN" && time.Since(begun) > 10*time.Second {
		return resting, false
	}
	if placed.Status != 201 || placed.get("status") != "filled" {
		t.Errorf("the order is answered %d: %s", placed.Status, placed.Body)
	}
	if a := <-again; a.Status != 201 || string(a.Body) != string(placed.Body) {
		t.Errorf("its repetition is answered %d: %s", a.Status, a.Body)
	}
	if a := <-byReference; a.Status != 200 || string(a.Body) != string(placed.Body) {
		t.Errorf("its repetition by reference is answered %d: %s", a.Status, a.Body)
	}
	if a := <-conflict; a.Status != 409 {
		t.Errorf("another order with its key is answered %d: %s", a.Status, a.Body)
	}
	w.must(200, "broker-a", http.MethodGet, bensOrders+"/by-reference/ben-1", nil, "X-Min-Log-Position", placed.Header.Get("X-Log-Position"))
	private.Next("the trade", func(m livetest.Message) bool { return m.Channel == "trades" })
	public.Next("the trade", func(m livetest.Message) bool { return strings.HasPrefix(m.Channel, "market-trades") })
	return resting, true
}

// post places an order of BEN's in the background.
func (w *withheld) post(body string, headers ...string) <-chan answer {
	answers := make(chan answer, 1)
	go func() {
		a, err := w.try("broker-a", http.MethodPost, bensOrders, body, headers...)
		if err != nil {
			w.t.Error(err)
		}
		answers <- a
	}()
	return answers
}

// stallForLong withholds acknowledgements for longer than clients wait for: the order is placed long after its client
// gave up, and once.
func (w *withheld) stallForLong(t *testing.T, resting answer) {
	t.Helper()
	w.withhold()
	const late = `{"symbol":"BTCUSDC_PERP","action":"buy","type":"limit","amount":"0.03","limit_price":"65000"}`
	given := <-w.post(late, "Idempotency-Key", "late")
	if given.Status != 503 || given.get("code") != "OUTCOME_UNKNOWN" || given.get("command_id") == "" {
		t.Errorf("a client that gave up is told %d: %s", given.Status, given.Body)
	}
	command := "/v1/commands/" + given.get("command_id")
	w.must(404, "broker-a", http.MethodGet, command, nil)
	w.release()
	waitFor(t, "the order to take effect", func() bool {
		a := w.do("broker-a", http.MethodGet, command, nil)
		return a.Status == 200 && a.get("status") == "applied"
	})
	var again answer
	waitFor(t, "intake to go on", func() bool {
		again = w.do("broker-a", http.MethodPost, bensOrders, late, "Idempotency-Key", "late")
		return again.Status == 201 && again.get("filled_amount") == "0.030"
	})
	rest := w.must(200, "broker-a", http.MethodGet, annasOrders+"/"+resting.get("code"), nil, "X-Min-Log-Position", again.Header.Get("X-Log-Position"))
	if got := rest.get("filled_amount"); got != "0.070" {
		t.Errorf("%s of the resting order is filled", got)
	}
}
