package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// batcher is a client that sends batches one after the other, over REST or over a socket, and remembers each of their orders.
type batcher struct {
	*client
	send func(method string, body []byte) (answer, error) // an error: the outcome is unknown

	canceled []*attempt // whose cancelation was answered
}

// batch is how many orders it sends at a time.
const batch = 50

// overREST sends a batch as a request of its own.
func (b *batcher) overREST(v *venue) {
	b.send = func(method string, body []byte) (answer, error) {
		return v.try("broker-a", method, "/v1/customers/"+b.customer+"/orders/batch", string(body))
	}
}

// overSocket opens a connection for batches.
func (b *batcher) overSocket(t *testing.T, v *venue) {
	t.Helper()
	socket, response, err := websocket.DefaultDialer.Dial(v.WebSocket, http.Header{"Authorization": {"Bearer " + v.token("broker-a")}})
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	t.Cleanup(func() { socket.Close() })
	b.send = func(method string, body []byte) (answer, error) {
		op := map[string]string{http.MethodPost: "order.place_batch", http.MethodDelete: "order.cancel_batch"}[method]
		request := fmt.Sprintf(`{"op":%q,"id":1,"data":{"customer_code":%q,%s}`, op, b.customer, body[1:])
		if err := socket.WriteMessage(websocket.TextMessage, []byte(request)); err != nil {
			return answer{}, err
		}
		_, raw, err := socket.ReadMessage()
		if err != nil {
			return answer{}, err
		}
		var e entered
		if err := json.Unmarshal(raw, &e); err != nil {
			return answer{}, fmt.Errorf("%s: %w", raw, err)
		}
		return answer{Status: e.Status, Body: e.Data}, nil
	}
}

// work sends batches until the venue has gone. Every fourth cancels what the one before it placed.
func (b *batcher) work(round int, done *atomic.Int64) error {
	var last []*attempt
	for n := 0; ; n++ {
		if n%4 == 3 {
			gone, err := b.cancel(last)
			if gone || err != nil {
				return err
			}
			continue
		}
		last = nil
		var orders []map[string]any
		for i := range batch {
			a := b.next(round, n*batch+i)
			last, orders = append(last, a), append(orders, a.body)
		}
		results, gone, err := b.ask(http.MethodPost, orders)
		if gone {
			b.attempts = append(b.attempts, last...)
		}
		if gone || err != nil {
			return err
		}
		last = slices.DeleteFunc(last, func(a *attempt) bool { // what was never decided
			r := results[0]
			results = results[1:]
			if answered, failed := a.result(r); failed != nil {
				err = failed
			} else if !answered && r.get("code") != "OUTCOME_UNKNOWN" {
				return true
			}
			return false
		})
		b.attempts = append(b.attempts, last...)
		if err != nil {
			return err
		}
		if len(last) == 0 { // the venue is busy, and would be with the next one
			<-time.After(retryAfter)
			continue
		}
		done.Add(1)
	}
}

// ask sends a batch and returns the result of each of its orders. It is gone where the venue is.
func (b *batcher) ask(method string, orders []map[string]any) (results []answer, gone bool, err error) {
	body, err := json.Marshal(map[string]any{"orders": orders})
	if err != nil {
		return nil, false, err
	}
	for {
		a, failed := b.send(method, body)
		if failed != nil {
			return nil, true, nil
		}
		if a.busy() { // nothing of it was decided
			<-time.After(retryAfter)
			continue
		}
		if a.Status != http.StatusOK {
			return nil, false, fmt.Errorf("a batch of %s: %d: %s", b.customer, a.Status, a.Body)
		}
		var list struct {
			Results []struct {
				Status         int
				Order, Problem json.RawMessage
			}
		}
		if err := json.Unmarshal(a.Body, &list); err != nil || len(list.Results) != len(orders) {
			return nil, false, fmt.Errorf("%d results of %d orders, %w: %s", len(list.Results), len(orders), err, a.Body)
		}
		for _, r := range list.Results {
			results = append(results, answer{Status: r.Status, Body: slices.Concat(r.Order, r.Problem)})
		}
		return results, false, nil
	}
}

// result takes down what an order of a batch came to, if that was told.
func (a *attempt) result(r answer) (answered bool, err error) {
	switch r.Status {
	case http.StatusCreated, http.StatusUnprocessableEntity:
		return true, a.note(r)
	case http.StatusServiceUnavailable:
		return false, nil
	}
	return false, fmt.Errorf("order %s of a batch: %d: %s", a.reference, r.Status, r.Body)
}

// cancel cancels orders of a batch by their names. Those that are filled meanwhile, or were rejected, are none any more.
func (b *batcher) cancel(last []*attempt) (gone bool, err error) {
	var named []map[string]any
	for _, a := range last {
		named = append(named, map[string]any{"reference_id": a.reference})
	}
	if len(named) == 0 {
		return false, nil
	}
	results, gone, err := b.ask(http.MethodDelete, named)
	for i, r := range results {
		switch {
		case r.Status == http.StatusOK && r.get("status") == "canceled":
			b.canceled = append(b.canceled, last[i])
		case r.Status != http.StatusConflict && r.Status != http.StatusNotFound && r.Status != http.StatusServiceUnavailable:
			err = fmt.Errorf("canceling %s of a batch: %d: %s", last[i].reference, r.Status, r.Body)
		}
	}
	return gone, err
}

// unknown returns the orders whose outcome is unknown.
func (b *batcher) unknown() (all []*attempt) {
	for _, a := range b.attempts {
		if a.status == 0 {
			all = append(all, a)
		}
	}
	return all
}

// lookUp asks for some of the orders whose outcome is unknown by their names: the first and the last of the batch, since it
// may be there in part, and some between. What is there is the order that was sent.
func (b *batcher) lookUp(t *testing.T, v *venue) (found, missing int) {
	t.Helper()
	all := b.unknown()
	for i, a := range all {
		if i%7 != 0 && i != len(all)-1 {
			continue
		}
		r := v.do("broker-a", http.MethodGet, "/v1/customers/"+a.customer+"/orders/by-reference/"+a.reference, nil)
		switch r.Status {
		case http.StatusOK:
			found++
			a.code = r.get("code") // which whoever is asked again has to say as well
			if r.get("reference_id") != a.reference || r.get("limit_price") != a.body["limit_price"] {
				t.Errorf("%s is %s", a.reference, r.Body)
			}
		case http.StatusNotFound:
			missing++
		default:
			t.Fatalf("asking for %s: %d: %s", a.reference, r.Status, r.Body)
		}
	}
	return found, missing
}

// again sends all orders whose outcome is unknown once more, as batches over REST. Each is there, or is placed.
func (b *batcher) again(t *testing.T, v *venue) {
	t.Helper()
	b.overREST(v)
	for orders := b.unknown(); len(orders) > 0; orders = b.unknown() {
		orders = orders[:min(len(orders), batch)]
		var bodies []map[string]any
		for _, a := range orders {
			bodies = append(bodies, a.body)
		}
		results, gone, err := b.ask(http.MethodPost, bodies)
		if gone || err != nil {
			t.Fatalf("sending orders of %s again: %v", b.customer, err)
		}
		for i, r := range results {
			if r.Status == http.StatusOK { // it was there
				r.Status = http.StatusCreated
			}
			if _, err := orders[i].result(r); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestKilledInBatches kills a venue while sixteen connections send batches of fifty orders, half of them over sockets. Of a
// batch that was answered all is there as it was told. Of one that was not, each order is there or not: its name says which,
// and sent again with that it is there once.
func TestKilledInBatches(t *testing.T) {
	t.Parallel()
	seed := fromEnvironment(t, "PERPETUA_TEST_SEED", rand.Uint64())
	t.Logf("seed %d", seed)
	v := startVenue(t)
	var all []*batcher
	var clients []*client
	var names []string
	for i := range 16 {
		c := newClient(seed, i)
		all, clients, names = append(all, &batcher{client: c}), append(clients, c), append(names, c.customer)
	}
	v.fund("100000000", names...)
	pick := rand.New(rand.NewPCG(seed, 99))
	for round := range max(kills(t)/5, 1) {
		v.token("broker-a") // once, before the clients share it
		var done atomic.Int64
		var working sync.WaitGroup
		problems := make(chan error, len(all))
		for i, b := range all {
			if b.overREST(v); i%2 == 1 {
				b.overSocket(t, v)
			}
			working.Go(func() { problems <- b.work(round, &done) })
		}
		enough := int64(12 + pick.IntN(16))
		waitFor(t, "batches under load", func() bool { return done.Load() >= enough || len(problems) > 0 })
		v.kill()
		working.Wait()
		close(problems)
		for err := range problems {
			if err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
		}
		v.start()
		found, missing := 0, 0
		for _, b := range all {
			there, gone := b.lookUp(t, v)
			found, missing = found+there, missing+gone
			b.again(t, v)
		}
		t.Logf("round %d: killed after %d batches; of the orders that were not answered and asked for, %d are there and %d are not", round, done.Load(), found, missing)
	}
	checkOrders(t, v, clients)
	log := foldLog(t, v)
	for _, b := range all {
		for _, a := range b.canceled {
			if o := log.orders[a.code]; o["status"] != "canceled" {
				t.Errorf("%s was canceled, its client was told, and the log says %v", a.reference, o)
			}
		}
	}
	if out, err := v.command("audit").CombinedOutput(); err != nil {
		t.Errorf("perpetua audit: %v\n%s", err, out)
	}
}
