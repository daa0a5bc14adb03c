package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/shopspring/decimal"

	"github.com/perpetua-exchange/perpetua/handlers/live/livetest"
)

// demoSymbols are the instruments that the demo trades.
func demoSymbols() []string { return []string{bitcoin, ether, "SOLUSDC_PERP"} }

// ticker reads an instrument's ticker.
func (d *desk) ticker(symbol string) fields {
	for _, f := range d.list("", "/v1/tickers") {
		if f["symbol"] == symbol {
			return f
		}
	}
	return nil
}

// tip returns the sequence of the newest record of the trading journal.
func (d *desk) tip(t *testing.T) int64 {
	t.Helper()
	at := d.must(200, "operator", http.MethodGet, "/v1/orders", nil).Header.Get("X-Log-Position")
	n, err := strconv.ParseInt(at[strings.Index(at, "@")+1:], 10, 64)
	if err != nil {
		t.Fatalf("the position %q", at)
	}
	return n
}

// lively waits until an instrument has a book of several levels on both sides, has traded anew, and its prices have
// moved away from those of an earlier ticker.
func (d *desk) lively(t *testing.T, symbol string, before fields) {
	t.Helper()
	waitFor(t, symbol+" to trade and move", func() bool {
		now := d.ticker(symbol)
		return now["last_price"] != "null" && now["volume_24h"] != before["volume_24h"] &&
			now["index_price"] != before["index_price"] && now["mark_price"] != before["mark_price"]
	})
	waitFor(t, "the book of "+symbol, func() bool {
		var book struct{ Bids, Asks []livetest.Level }
		d.must(200, "", http.MethodGet, "/v1/orderbook/"+symbol, nil).decode(t, &book)
		return len(book.Bids) >= 5 && len(book.Asks) >= 5
	})
}

// seededOnboarding wants one questionnaire of every question type and one entitlement for each type of owners in the log of
// a venue that began with the demo.
func (d *desk) seededOnboarding(t *testing.T) {
	t.Helper()
	for event, parts := range map[string][]string{
		"questionnaire.version_added": {`"text"`, `"integer"`, `"bool"`, `"country"`, `"single_choice"`, `"multiple_choice"`, `"document"`, `"multiple_documents"`},
		"questionnaire.published":     {`"version_number":1`},
		"entitlement.created":         {`"approval":"manual"`},
	} {
		records := d.records("onboarding", "--type", event)
		if len(records) != 2 {
			t.Errorf("%d records of %s", len(records), event)
		}
		for _, r := range records {
			for _, part := range parts {
				if !strings.Contains(r, part) {
					t.Errorf("%s is missing in %s", part, r)
				}
			}
		}
	}
}

// TestDemo lets the demo market run, listens to it, stops it and starts it again.
func TestDemo(t *testing.T) {
	t.Parallel() // for most of its time it waits for the market to move
	d := &desk{venue: startVenue(t, "--demo")}
	public := livetest.Dial(t, d.WebSocket, "")
	for _, symbol := range demoSymbols() {
		public.Subscribe("orderbook-stream:"+symbol, "market-trades:"+symbol)
	}
	for _, symbol := range demoSymbols() {
		d.lively(t, symbol, fields{"index_price": "null", "mark_price": "null", "volume_24h": d.ticker(symbol)["volume_24h"]})
		public.Until("amendments and trades of "+symbol, func(all []livetest.Message) bool {
			updates, trades := 0, 0
			for _, m := range all {
				switch {
				case m.Channel == "orderbook-stream:"+symbol && m.Type == "update":
					updates++
				case m.Channel == "market-trades:"+symbol:
					trades++
				}
			}
			return updates >= 25 && trades >= 2
		})
		book := livetest.Book{}
		for _, m := range public.On("orderbook-stream:" + symbol) {
			if err := book.Apply(m); err != nil {
				t.Fatal(err)
			}
		}
	}
	public.Close()
	d.stop()
	if said := d.output.said(); !strings.Contains(said, "demo market trades") || !strings.Contains(said, "--demo=false") {
		t.Errorf("run does not say that the demo is on:\n%s", said)
	}
	d.sound(t)

	before := map[string]decimal.Decimal{}
	for _, e := range indexUpdates(t, d) {
		before[e.Symbol] = decimal.RequireFromString(e.IndexPrice)
	}
	d.seededOnboarding(t)
	registered, asked := d.records("identity"), d.records("onboarding")
	orders := len(d.records("trading", "--type", "order.opened"))
	d.start()
	for _, symbol := range demoSymbols() {
		now := d.ticker(symbol)
		d.lively(t, symbol, now)
		if moved := decimal.RequireFromString(now["index_price"]).Sub(before[symbol]).Abs(); moved.GreaterThan(before[symbol].Div(decimal.NewFromInt(50))) {
			t.Errorf("the index price of %s jumps from %s to %s", symbol, before[symbol], now["index_price"])
		}
	}
	d.stop()
	d.sound(t)
	if more := len(d.records("trading", "--type", "order.opened")); more <= orders || more > 5*orders+200 {
		t.Errorf("%d orders before the restart and %d after it", orders, more)
	}
	for _, r := range d.records("identity")[len(registered):] {
		if strings.Contains(r, "registered") || strings.Contains(r, "changed") {
			t.Errorf("the restart writes %.300s", r)
		}
	}
	for _, r := range d.records("onboarding")[len(asked):] {
		if strings.Contains(r, "questionnaire") || strings.Contains(r, "entitlement") {
			t.Errorf("the restart writes %.300s", r)
		}
	}
	if n := len(d.records("trading", "--type", "customer.registered")); n != 8 { // five of the demo's, and three of the newcomer's broker
		t.Errorf("%d customers", n)
	}
	first := 0
	for _, r := range d.records("trading", "--type", "deposit.completed") {
		if strings.Contains(r, `"demo-first"`) || strings.Contains(r, `"demo-newcomer"`) { // the others come during the show
			first++
		}
	}
	if first != 6 {
		t.Errorf("%d first deposits", first)
	}

	// Without the demo, nothing is written but what is asked for and what is due at that time.
	d.args = []string{"--demo=false"}
	d.start()
	written := len(d.records("trading"))
	for range 20 {
		d.must(200, "", http.MethodGet, "/v1/tickers", nil)
	}
	d.must(200, "operator", http.MethodPost, "/admin/v1/index-prices/"+bitcoin, `{"price":"65000"}`)
	more := slices.DeleteFunc(d.records("trading")[written:], func(r string) bool {
		return strings.Contains(r, `"type":"engine.step"`) || strings.Contains(r, `"type":"liabilities.record"`)
	})
	if len(more) != 1 || !strings.Contains(more[0], `"type":"index.set"`) {
		t.Errorf("one command adds to the log\n%s", strings.Join(more, "\n"))
	}
	d.stop()
	if said := d.output.said(); strings.Contains(said, "demo") {
		t.Errorf("run speaks of a demo that is off:\n%s", said)
	}
}

// TestDemoSeed wants a seed to be a number.
func TestDemoSeed(t *testing.T) {
	t.Parallel()
	v := newVenue(t)
	for _, seed := range []string{"x", "-1", "1.5", "18446744073709551616", ""} {
		if code, said := v.outcome(nil, "run", "--demo-seed="+seed); code != exitUsage || !strings.Contains(said, "demo-seed") {
			t.Errorf("--demo-seed=%s: %d %s", seed, code, said)
		}
	}
}

// sound holds the read models of a stopped venue against its log, and wants the demo to have been refused nothing.
func (d *desk) sound(t *testing.T) {
	t.Helper()
	if code, said := d.outcome(nil, "audit"); code != exitDone {
		t.Errorf("audit: %d\n%s", code, said)
	}
	for line := range strings.Lines(d.output.said()) {
		busy := strings.Contains(line, "NOT_ACCEPTED") || strings.Contains(line, "LOG_POSITION_NOT_REACHED") // a machine may be
		if strings.Contains(line, "part=demo") && !busy {
			t.Errorf("the demo complains: %s", line)
		}
	}
	for _, r := range d.records("trading", "--type", "order.rejected") {
		if r != "" && !strings.Contains(r, "cash_amount_too_small") && !strings.Contains(r, "no_liquidity") {
			t.Errorf("an order was rejected: %.600s", r)
		}
	}
}

// priced is an index.updated event.
type priced struct {
	Symbol     string
	IndexPrice string `json:"index_price"`
}

func indexUpdates(t *testing.T, d *desk) (out []priced) {
	t.Helper()
	for _, line := range d.records("trading", "--type", "index.updated") {
		var r struct{ Events []struct{ Data priced } }
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		out = append(out, r.Events[0].Data)
	}
	return out
}

// TestDemoRepeats runs the demo on two fresh venues with one seed: they get the same commands in the same order, and
// so the same orders and trades.
func TestDemoRepeats(t *testing.T) {
	t.Parallel() // for most of its time it waits for the markets to move
	const enough = 120
	first, second := newVenue(t, "--demo", "--demo-seed=42"), newVenue(t, "--demo", "--demo-seed=42")
	var told [2][]string
	for _, v := range []*venue{first, second} {
		v.start()
		t.Cleanup(v.stop)
	}
	for i, v := range []*venue{first, second} {
		d := &desk{venue: v}
		waitFor(t, "commands", func() bool { return d.tip(t) > enough+20 })
		v.stop()
		told[i] = repeatable(t, v.records("trading"))
	}
	n := min(len(told[0]), len(told[1]))
	if n < enough {
		t.Fatalf("%d and %d commands", len(told[0]), len(told[1]))
	}
	if !slices.Equal(told[0][:n], told[1][:n]) {
		for i := range n {
			if told[0][i] != told[1][i] {
				t.Fatalf("command %d is\n%s\nin one run and\n%s\nin the other", i, told[0][i], told[1][i])
			}
		}
	}
}

// repeatable returns what of the records does not depend on time and positions: command types and their events,
// without codes and times, and without what follows from the clock: marks, samples of the premium, funding, liabilities.
func repeatable(t *testing.T, records []string) (out []string) {
	t.Helper()
	var strip func(any)
	strip = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, name := range []string{"code", "order_code", "created", "updated", "reference_id", "timestamp", "mark_price", "premium"} {
				delete(v, name)
			}
			for _, member := range v {
				strip(member)
			}
		case []any:
			for _, item := range v {
				strip(item)
			}
		}
	}
	for _, line := range records {
		var r struct {
			Command struct{ Type string }
			Events  any
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		clock := slices.ContainsFunc([]string{"stale_guard", "funding", "settlement", "posting"}, func(work string) bool {
			return strings.Contains(line, `{"work":"`+work+`"}`)
		})
		if strings.HasPrefix(r.Command.Type, "journal.") || r.Command.Type == "instrument.list" || r.Command.Type == "liabilities.record" || clock {
			continue
		}
		strip(r.Events)
		events, err := json.Marshal(r.Events)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r.Command.Type+" "+string(events))
	}
	return out
}

// showVariable has TestDemoShow run: it takes two minutes.
const showVariable = "PERPETUA_TEST_DEMO_SHOW"

// TestDemoShow wants everything to happen within the demo's first minutes that it is to show: positions with leverage, a
// stop that fires, a funding payment and a liquidation, which is public, too.
func TestDemoShow(t *testing.T) {
	if os.Getenv(showVariable) == "" {
		t.Skip(showVariable + " is not set: make demo")
	}
	d := &desk{venue: startVenue(t, "--demo")}
	any := func(what, path, member, want string) {
		t.Helper()
		waitFor(t, what, func() bool {
			a := d.do("broker-a", http.MethodGet, "/v1/customers/"+path, nil)
			return a.Status == 200 && strings.Contains(string(a.Body), `"`+member+`":"`+want)
		})
	}
	any("CAREFUL to have a position", "CAREFUL/positions", "leverage", `5"`)
	any("GAMBLER to have a position", "GAMBLER/positions", "leverage", `13"`)
	any("a stop to wait", "CAREFUL/orders", "type", `stop_loss"`)
	any("GAMBLER to pay or get funding", "GAMBLER/transactions?type=funding", "funding_rate", "")
	any("the stop to fire", "CAREFUL/orders/history?status=filled", "type", `stop_loss"`)
	any("GAMBLER to be liquidated", "GAMBLER/trades?type=liquidation", "type", `liquidation"`)
	waitFor(t, "everybody to see it", func() bool {
		return strings.Contains(string(d.must(200, "", http.MethodGet, "/v1/market-trades?symbol=SOLUSDC_PERP&page_size=1000", nil).Body), `"type":"liquidation"`)
	})
	d.stop()
	d.sound(t)
}
