package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/journal/journaltest"
)

// attempt is one order of a client that keeps track of what it knows.
type attempt struct {
	customer, reference string
	body                map[string]any
	status              int    // of the answer that told its outcome; 0 while that is unknown
	code                string // of the order, once its outcome is known
}

// client places orders one after the other until told to stop, and remembers each.
type client struct {
	venue    func() *venue // where the next order goes
	customer string
	random   *rand.Rand
	attempts []*attempt
	answered func() // called after each answer that tells an outcome; may be nil
}

// trade sends orders until stop is closed or, where stop is nil, until one's outcome stays unknown because the venue
// has gone.
func (c *client) trade(round int, done *atomic.Int64, stop <-chan struct{}) error {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return nil
		default:
		}
		a := c.next(round, i)
		c.attempts = append(c.attempts, a)
		answer, err := c.venue().try("broker-a", http.MethodPost, "/v1/customers/"+c.customer+"/orders", a.body)
		if err != nil { // the connection was lost: the outcome is unknown
			if stop == nil {
				return nil
			}
			<-time.After(retryAfter)
			continue
		}
		switch answer.Status {
		case http.StatusCreated, http.StatusUnprocessableEntity:
			if err := a.note(answer); err != nil {
				return err
			}
			done.Add(1)
			if c.answered != nil {
				c.answered()
			}
		case http.StatusServiceUnavailable:
			if answer.get("code") == "NOT_ACCEPTED" {
				c.attempts = c.attempts[:len(c.attempts)-1] // never decided
			}
			<-time.After(retryAfter)
		default:
			return fmt.Errorf("order %s: status %d: %s", a.reference, answer.Status, answer.Body)
		}
	}
}

// retryAfter is how long a client waits that was not answered.
const retryAfter = 10 * time.Millisecond

// next makes an order near the index price, so that about half of them trade with somebody's.
func (c *client) next(round, i int) *attempt {
	action, sign := "buy", -1
	if c.random.IntN(2) == 0 {
		action, sign = "sell", 1
	}
	price := 650000 + sign*(c.random.IntN(60)-25)
	reference := fmt.Sprintf("%s-%d-%d", c.customer, round, i)
	return &attempt{customer: c.customer, reference: reference, body: map[string]any{
		"symbol": "BTCUSDC_PERP", "action": action, "type": "limit", "reference_id": reference,
		"amount": fmt.Sprintf("0.%03d", 1+c.random.IntN(9)), "limit_price": fmt.Sprintf("%d.%d", price/10, price%10)}}
}

// note takes down the order in an answer. It must be the one that was asked for, and the same as in an earlier answer.
func (a *attempt) note(answer answer) error {
	var order struct {
		Code      string
		Reference string `json:"reference_id"`
	}
	body := answer.Body
	if answer.Status == http.StatusUnprocessableEntity {
		var problem struct{ Order json.RawMessage }
		if err := json.Unmarshal(body, &problem); err != nil {
			return err
		}
		body = problem.Order
	}
	if err := json.Unmarshal(body, &order); err != nil {
		return fmt.Errorf("order %s: %s: %w", a.reference, answer.Body, err)
	}
	if order.Reference != a.reference || a.code != "" && a.code != order.Code {
		return fmt.Errorf("order %s with code %q was answered with %s", a.reference, a.code, answer.Body)
	}
	a.status, a.code = answer.Status, order.Code
	return nil
}

// kills returns how often something is to be killed: five times, or as often as the environment says.
func kills(t *testing.T) int {
	n, err := strconv.Atoi(os.Getenv("PERPETUA_TEST_KILLS"))
	if err != nil || n < 1 {
		return 5
	}
	return n
}

// TestKill kills a venue under load again and again. After each restart every acknowledged order must be there once,
// every unknown one once or never, and the read models must equal a fold of the log. So it is with what applicants file
// meanwhile: in the end all is told, every account is open, and nothing is left of what was broken off.
func TestKill(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	v := newWholeVenue(t, "--snapshot-records", "50")
	hooks := newWebhookReceiver(t)
	v.env = append(v.env, hooks.settings()...)
	v.start()
	t.Cleanup(v.stop)
	var clients []*client
	var names []string
	for i := range 8 {
		c := newClient(seed, i)
		c.venue = func() *venue { return v }
		clients, names = append(clients, c), append(names, c.customer)
	}
	v.fund("1000000", names...)
	m := admit(t, hooks, v, 2, func(int) func() *venue { return func() *venue { return v } })
	pick, resumed := rand.New(rand.NewPCG(seed, 99)), false
	for _, a := range m.applicants {
		a.pace = 2 * retryAfter
	}
	for round := range kills(t) {
		for _, user := range []string{"broker-a", "operator"} { // once, before the clients share them
			v.token(user)
		}
		var done atomic.Int64
		var working sync.WaitGroup
		problems := make(chan error, len(clients)+len(m.applicants))
		for _, c := range clients {
			working.Go(func() { problems <- c.trade(round, &done, nil) })
		}
		for _, a := range m.applicants {
			working.Go(func() { problems <- a.work(&m.done, nil) })
		}
		enough, more := int64(50+pick.IntN(300)), m.done.Load()+int64(8+pick.IntN(8))
		saved := int64(-1)
		last := round == kills(t)-1 && !resumed // some start has to be from a snapshot
		waitFor(t, "orders and applications under load, and a snapshot", func() bool {
			if len(problems) > 0 {
				return true
			}
			if done.Load() < enough || m.done.Load() < more {
				return false
			}
			saved = v.measureOf("onboarding", "sequence")
			return saved >= 0 || !last
		})
		resumed = resumed || saved >= 0
		v.kill()
		working.Wait()
		close(problems)
		for err := range problems {
			if err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
		}
		age(t, v) // so that it sweeps what was broken off
		v.start()
		if at := v.measureOf("onboarding", "loaded_sequence"); at < saved {
			t.Errorf("the onboarding journal was folded from %d on; there is a snapshot at %d", at, saved)
		}
		followUp(t, v, clients)
		checkOrders(t, v, clients)
		if out, err := v.command("audit").CombinedOutput(); err != nil {
			t.Errorf("perpetua audit: %v\n%s", err, out)
		}
		t.Logf("round %d: killed after %d answers, and a snapshot of the onboarding journal at %d", round, done.Load(), saved)
	}
	m.finish(t)
	m.check(t, v)
	if kills(t) > 5 { // the venue may try again only after a minute
		m.swept(t, v)
	}
	if out, err := v.command("audit").CombinedOutput(); err != nil {
		t.Errorf("perpetua audit: %v\n%s", err, out)
	}
}

func newClient(seed uint64, i int) *client {
	return &client{customer: fmt.Sprintf("C%d", i), random: rand.New(rand.NewPCG(seed, uint64(i)))}
}

// followUp sends every order of unknown outcome again, as a client does that wants to know.
func followUp(t *testing.T, v *venue, clients []*client) {
	t.Helper()
	for _, c := range clients {
		for _, a := range c.attempts {
			if a.status != 0 {
				continue
			}
			var answer answer
			waitFor(t, "a decision about "+a.reference, func() bool {
				answer = v.do("broker-a", http.MethodPost, "/v1/customers/"+a.customer+"/orders", a.body)
				return answer.Status != http.StatusServiceUnavailable
			})
			switch answer.Status {
			case http.StatusOK, http.StatusCreated, http.StatusUnprocessableEntity:
				if err := a.note(answer); err != nil {
					t.Fatal(err)
				}
			default:
				t.Fatalf("following up %s: %d: %s", a.reference, answer.Status, answer.Body)
			}
		}
	}
}

// checkOrders holds what the clients know, who have followed up whatever they were not told, against the log, and the read
// models against a fold of it. Each order is in the log once, with the code that was answered: also one that was answered
// before a crash, which nobody sends again.
func checkOrders(t *testing.T, v *venue, clients []*client) {
	t.Helper()
	log := foldLog(t, v)
	log.holds(t, clients)
	log.compare(t, v)
}

// holds wants each order of the clients to be in the log once, with the code that was answered.
func (log *folded) holds(t *testing.T, clients []*client) {
	t.Helper()
	for _, c := range clients {
		for _, a := range c.attempts {
			codes := log.codes[a.customer+"/"+a.reference]
			switch {
			case len(codes) > 1:
				t.Errorf("%s is in the log as %d orders", a.reference, len(codes))
			case a.status == 0:
				t.Errorf("%s was not followed up", a.reference)
			case !codes[a.code]:
				t.Errorf("%s was acknowledged as %s and is in the log as %v", a.reference, a.code, codes)
			}
		}
	}
}

// folded is what the log says, by a fold that shares no code with the engine: the last word on each thing.
type folded struct {
	tip       int64
	orders    map[string]map[string]any // by code
	codes     map[string]map[string]bool
	balances  map[string]string // of customers, and of the venue's accounts after a colon
	positions map[string]string // amount and cost by customer and symbol
}

// foldLog folds the trading journal as `perpetua log` prints it, the whole of it. No command may be in it twice: each is
// sent once by those who serve, however often its client asks.
func foldLog(t *testing.T, v *venue) *folded {
	t.Helper()
	return foldLines(t, v.records("trading"))
}

func foldLines(t *testing.T, lines []string) *folded {
	t.Helper()
	f := &folded{orders: make(map[string]map[string]any), codes: make(map[string]map[string]bool),
		balances: make(map[string]string), positions: make(map[string]string)}
	var once journaltest.Once
	for _, line := range lines {
		var record struct {
			Sequence int64
			Command  struct{ ID scalar.ID }
			Outcome  decide.Outcome
			Events   []struct {
				Type string
				Data map[string]any
			}
		}
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Fatalf("record %s: %v", line, err)
		}
		if err := once.Add(record.Command.ID, record.Outcome, record.Sequence); err != nil {
			t.Error(err)
		}
		f.tip = record.Sequence
		for _, e := range record.Events {
			if len(e.Type) > 6 && e.Type[:6] == "order." {
				code, key := e.Data["code"].(string), e.Data["customer_code"].(string)+"/"+e.Data["reference_id"].(string)
				f.orders[code] = e.Data
				if f.codes[key] == nil {
					f.codes[key] = make(map[string]bool)
				}
				f.codes[key][code] = true
			}
			for _, p := range list(e.Data["postings"]) {
				account, _ := p["customer_code"].(string)
				if account == "" {
					account = ":" + p["account"].(string)
				}
				f.balances[account] = p["balance"].(string)
			}
			for _, p := range list(e.Data["positions"]) {
				f.positions[p["customer_code"].(string)+"/"+p["symbol"].(string)] = p["amount"].(string) + " for " + p["cost"].(string)
			}
		}
	}
	return f
}

func list(v any) (objects []map[string]any) {
	items, _ := v.([]any)
	for _, item := range items {
		objects = append(objects, item.(map[string]any))
	}
	return objects
}

// compareWithFold holds the read models against a fold of the log.
func compareWithFold(t *testing.T, v *venue) {
	t.Helper()
	foldLog(t, v).compare(t, v)
}

// compare reads the read models with queries of its own and holds them against the fold.
func (log *folded) compare(t *testing.T, v *venue) {
	t.Helper()
	db := v.database()
	defer db.Close(context.Background())
	waitForWord(t, "the read models to reach the log's tip", func() string {
		var at int64
		err := db.QueryRow(context.Background(), `SELECT sequence FROM checkpoints WHERE journal = 'trading'`).Scan(&at)
		if err == nil && at >= log.tip {
			return ""
		}
		return fmt.Sprintf("%d of %d, %v\n%s", at, log.tip, err, v.output)
	})
	want := make(map[string]string)
	for code, o := range log.orders {
		want["order "+code] = fmt.Sprint(o["status"], " ", o["amount"], " ", o["filled_amount"], " ", o["filled_quote"], " ", o["reference_id"])
	}
	for account, balance := range log.balances {
		want["balance "+account] = balance
	}
	for key, position := range log.positions {
		want["position "+key] = position
	}
	got := make(map[string]string)
	for _, q := range []string{
		`SELECT 'order ' || code, concat_ws(' ', status, amount, filled_amount, filled_quote, reference_id) FROM orders`,
		`SELECT 'balance ' || customer_code, balance::text FROM balances`,
		`SELECT 'balance :' || account, balance::text FROM venue_balances`,
		`SELECT 'position ' || customer_code || '/' || symbol, amount || ' for ' || cost FROM positions`,
	} {
		rows, err := db.Query(context.Background(), q)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			var key, value string
			if err := rows.Scan(&key, &value); err != nil {
				t.Fatal(err)
			}
			got[key] = value
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
	}
	for key := range want {
		if got[key] != want[key] {
			t.Errorf("%s: the read models say %q, the log %q", key, got[key], want[key])
		}
	}
	for key := range got {
		if _, ok := want[key]; !ok {
			t.Errorf("%s: the read models say %q, the log nothing", key, got[key])
		}
	}
}
