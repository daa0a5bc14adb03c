package e2e

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"sync"
	"testing"

	"github.com/shopspring/decimal"

	"github.com/perpetua-exchange/perpetua/handlers/live/livetest"
)

// mirror is what a client knows of an account: from /state, and from the private channels since.
type mirror struct {
	customer  string
	orders    map[string]fields // live ones by code, without the names that differ between REST and the channel
	positions map[string]decimal.Decimal
	balance   string
	had       map[string]string // by topic, the position of the last message that came on it, and at first that of /state
}

// mirrored are the topics that a mirror follows.
var mirrored = []string{"orders", "trades", "balance-changes"}

// look starts a mirror anew, as of a position or later if one is given.
func look(v *venue, t *testing.T, customer string, after ...string) *mirror {
	t.Helper()
	var state struct {
		Orders    []fields `json:"open_orders"`
		Positions []fields `json:"positions"`
		Summaries []fields `json:"account_summaries"`
		Position  string   `json:"position"`
	}
	var headers []string
	for _, position := range after {
		headers = append(headers, "X-Min-Log-Position", position)
	}
	v.must(200, "broker-a", http.MethodGet, "/v1/customers/"+customer+"/state", nil, headers...).decode(t, &state)
	m := &mirror{customer: customer, orders: make(map[string]fields), positions: make(map[string]decimal.Decimal), balance: state.Summaries[0]["balance"], had: make(map[string]string)}
	for _, topic := range mirrored {
		m.had[topic] = state.Position
	}
	for _, o := range state.Orders {
		o["timestamp"] = o["updated"]
		m.put(o)
	}
	for _, p := range state.Positions {
		m.positions[p["symbol"]] = decimal.RequireFromString(p["amount"])
	}
	return m
}

func (m *mirror) put(o fields) {
	kept := fields{}
	for _, name := range []string{"code", "status", "amount", "filled_amount", "filled_quote", "limit_price", "average_fill_price", "reference_id", "timestamp", "created", "sequence"} {
		kept[name] = o[name]
	}
	m.orders[o["code"]] = kept
}

// apply takes over a message.
func (m *mirror) apply(f fields) {
	if f["op"] != "" {
		return
	}
	m.had[f["channel"]] = f["position"]
	if f["customer_code"] != m.customer {
		return
	}
	switch f["channel"] {
	case "orders":
		if f["status"] == "open" || f["status"] == "partially_filled" {
			m.put(f)
		} else {
			delete(m.orders, f["code"])
		}
	case "trades":
		amount := decimal.RequireFromString(f["amount"])
		if f["action"] == "sell" {
			amount = amount.Neg()
		}
		sum := m.positions[f["symbol"]].Add(amount)
		if m.positions[f["symbol"]] = sum; sum.IsZero() {
			delete(m.positions, f["symbol"])
		}
	case "balance-changes":
		if f["status"] == "completed" {
			m.balance = f["balance"]
		}
	}
}

func (m *mirror) same(o *mirror) bool {
	return m.balance == o.balance && maps.EqualFunc(m.orders, o.orders, func(a, b fields) bool { return maps.Equal(a, b) }) &&
		maps.EqualFunc(m.positions, o.positions, decimal.Decimal.Equal)
}

func (m *mirror) String() string {
	return fmt.Sprintf("balance %s, positions %v, %d orders %v", m.balance, m.positions, len(m.orders), m.orders)
}

// mirroring keeps a mirror up to date with what a connection brings.
type mirroring struct {
	*mirror
	client *livetest.Client
	seen   int
}

// follow subscribes from where the mirror is: on each topic from its own position. The topics catch up side by side, and
// the messages of one record on several topics come mixed, so what came last on one says nothing of another.
func (m *mirror) follow(v *venue, t *testing.T) *mirroring {
	t.Helper()
	client := livetest.Dial(t, v.WebSocket, v.token("broker-a"))
	for _, topic := range mirrored {
		client.SubscribeWith(livetest.Request{Args: []string{topic}, ResumeFrom: m.had[topic], Data: map[string]bool{"positions": true}})
	}
	return &mirroring{mirror: m, client: client}
}

// catchUp takes over what has come.
func (m *mirroring) catchUp() {
	all := m.client.Messages()
	for _, message := range all[m.seen:] {
		m.apply(fields(message.Fields()))
	}
	m.seen = len(all)
}

// trade has two customers trade with each other and cancel, until it is told to stop.
func trade(v *venue, t *testing.T, random *rand.Rand, stop <-chan struct{}) {
	price := func() int { return 65000 + random.IntN(40) - 20 }
	for n := 0; ; n++ {
		select {
		case <-stop:
			return
		default:
		}
		path := []string{annasOrders, bensOrders}[n%2]
		var a answer
		var err error
		switch random.IntN(12) {
		case 0:
			a, err = v.try("broker-a", http.MethodDelete, path, nil)
		case 1:
			a, err = v.try("broker-a", http.MethodPost, path, fmt.Sprintf(`{"symbol":%q,"action":%q,"type":"stop_loss","amount":"0.001","trigger_price":"%d"}`,
				bitcoin, []string{"buy", "sell"}[n%2], []int{66000, 64000}[n%2]))
		default:
			a, err = v.try("broker-a", http.MethodPost, path, fmt.Sprintf(`{"symbol":%q,"action":%q,"type":"limit","amount":"0.00%d","limit_price":"%d"}`,
				bitcoin, []string{"buy", "sell"}[random.IntN(2)], 1+random.IntN(9), price()))
		}
		if err != nil || a.Status >= 500 && !a.busy() {
			t.Errorf("the load: %d %s, %v", a.Status, a.Body, err)
			return
		}
	}
}

// lastTrade has ANNA and BEN trade once more, with nobody else's orders in the way, which is told on each mirrored topic. It
// returns the position.
func lastTrade(v *venue) string {
	v.t.Helper()
	v.must(200, "broker-a", http.MethodDelete, annasOrders, nil)
	v.must(200, "broker-a", http.MethodDelete, bensOrders, nil)
	v.must(201, "broker-a", http.MethodPost, bensOrders, fmt.Sprintf(`{"symbol":%q,"action":"sell","type":"limit","amount":"0.007","limit_price":"65000"}`, bitcoin))
	a := v.must(201, "broker-a", http.MethodPost, annasOrders, fmt.Sprintf(`{"symbol":%q,"action":"buy","type":"limit","amount":"0.007","limit_price":"65000"}`, bitcoin))
	if a.get("status") != "filled" {
		v.t.Errorf("the last order is not filled: %s", a.Body)
	}
	return a.Header.Get("X-Log-Position")
}

// fromEnvironment returns the number that a variable holds, or otherwise if it is not set.
func fromEnvironment(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// TestRestartsMissNothing: a client that starts again and again at random moments under load, with /state or from where it was,
// ends with the same orders, positions and balance as one that never stopped, and as /state says. PERPETUA_TEST_RESTARTS sets
// how often it does, and PERPETUA_TEST_SEED what it does at random.
func TestRestartsMissNothing(t *testing.T) {
	t.Parallel()
	v := startVenue(t, "--demo=false")
	v.fund("1000000", "ANNA", "BEN")
	restarts := int(fromEnvironment(t, "PERPETUA_TEST_RESTARTS", 40))
	seed := fromEnvironment(t, "PERPETUA_TEST_SEED", rand.Uint64())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	v.token("broker-a") // which the load shares
	constant := look(v, t, "ANNA").follow(v, t)
	stop := make(chan struct{})
	var load sync.WaitGroup
	for n := range 2 {
		load.Go(func() { trade(v, t, rand.New(rand.NewPCG(seed, uint64(n+2))), stop) })
	}
	restarting := look(v, t, "ANNA").follow(v, t)
	for range restarts {
		enough := random.IntN(30)
		restarting.client.Until("some messages", func(all []livetest.Message) bool { return len(all) >= enough })
		restarting.catchUp()
		restarting.client.Close()
		if random.IntN(2) == 0 {
			restarting = look(v, t, "ANNA").follow(v, t)
		} else {
			restarting = restarting.mirror.follow(v, t)
		}
	}
	close(stop)
	load.Wait()
	last := lastTrade(v)
	for name, m := range map[string]*mirroring{"the one that never stopped": constant, "the one that restarts": restarting} {
		waitForWord(t, name+" to end as /state says", func() string {
			// Not before the last trade, or a client that never heard of it would pass while /state has not either; and anew each
			// time, since steps of the engine may come after it.
			end := look(v, t, "ANNA", last)
			if m.catchUp(); m.same(end) {
				return ""
			}
			return fmt.Sprintf("it has %v\n/state says %v", m.mirror, end)
		})
	}
	if len(constant.client.Messages()) < restarts {
		t.Errorf("only %d messages: there was no load", len(constant.client.Messages()))
	}
}
