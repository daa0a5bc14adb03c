package trading_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/trading/tradingtest"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	states "github.com/perpetua-exchange/perpetua/streams/past"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// ranking is the path of the margin ranking, which operators read.
const ranking = "/admin/v1/margin-ranking"

// wholeReads are the reads that are made of a whole state.
var wholeReads = []string{"/v1/orderbook/" + btc, "/v1/orderbook/" + btc + "?depth=1", "/v1/instruments", a1 + "/account-summary", a1 + "/state", a1 + "/fee-profile", a1 + "/margin-profile",
	"/v1/account-summaries?page_size=1", ranking, ranking + "?risk_state=normal&size=1",
	"/v1/positions", "/v1/positions?page_size=1&symbol=" + btc, "/v1/tickers", "/v1/tickers?symbol=BTC*", "/v1/orders", "/v1/orders?status=partially_filled&symbol=" + btc, "/v1/customers", "/v1/customers?page_size=1",
	operated, operated + "/" + btc, "/admin/v1/insurance"}

// operated is the path of the instruments with their settings.
const operated = "/admin/v1/instruments"

// askerOf returns the user who may ask for a path.
func askerOf(path string) string {
	switch {
	case strings.HasPrefix(path, "/admin/"):
		return "operator"
	case strings.HasPrefix(path, "/v1/orders"), strings.HasPrefix(path, "/v1/positions"):
		return "auditor" // sees those of several brokers
	}
	return "broker-a"
}

// TestWholeStatesAreWhatWasAnswered keeps the answers after each record of a random venue, in which profiles and instruments change
// too, and asks for them again as of their positions: the same bytes come back.
func TestWholeStatesAreWhatWasAnswered(t *testing.T) {
	v, seed := funded(t), rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	type answer struct{ path, at, body string }
	var kept []answer
	trade(v, random, func() {
		switch random.IntN(8) {
		case 0:
			if r := v.Send("broker-a", "PUT", a1+"/margin-profile/"+btc, fmt.Sprintf(`{"leverage":%d}`, 1+random.IntN(13))); r.Status != 200 {
				r.Code(422, "INSUFFICIENT_MARGIN") // for the orders and positions so far
			}
		case 1:
			v.Send("broker-a", "PUT", a1+"/fee-profile/"+btc, fmt.Sprintf(`{"maker_fee":"1","taker_fee":"%d"}`, 1+random.IntN(9))).Want(200)
		case 2:
			v.Send("operator", "POST", "/admin/v1/index-prices/"+btc, fmt.Sprintf(`{"price":"%d"}`, 64900+random.IntN(200))).Want(200)
		case 3:
			v.Send("operator", "PATCH", operated+"/"+btc, fmt.Sprintf(`{"maker_fee":"%d"}`, random.IntN(5))).Want(200)
		case 4:
			v.Send("operator", "POST", "/admin/v1/insurance/deposits", fmt.Sprintf(`{"amount":"%d","reference_id":"%d"}`, 1+random.IntN(5), random.Int64())).Want(201)
		case 5:
			v.Send("broker-a", "POST", "/v1/customers", `{}`).Want(201)
		}
		for _, path := range wholeReads {
			r := v.Send(askerOf(path), "GET", path, "").Want(200)
			kept = append(kept, answer{path, r.Header.Get(operation.HeaderLogPosition), r.Body})
		}
	})
	for _, a := range append(kept, kept[:len(wholeReads)]...) { // the first ones a second time
		r := past(v, askerOf(a.path), a.path, a.at).Want(200)
		if r.Body != a.body || r.Header.Get(operation.HeaderLogPosition) != a.at || r.Header.Get(operation.HeaderLogPositionFinal) != "" {
			t.Fatalf("%s as of %s:\n%s\nwas\n%s", a.path, a.at, r.Body, a.body)
		}
	}
}

// TestWholeStatesBeforeAndAfter asks as of records before objects exist, and after the end of the log. Rights are those of today.
func TestWholeStatesBeforeAndAfter(t *testing.T) {
	v := funded(t)
	tip := v.Trading.Tip()
	for _, path := range wholeReads {
		user := askerOf(path)
		past(v, user, path, "trading/0@-1").Code(404, "NOT_YET")
		past(v, user, path, fmt.Sprintf("trading/0@%d", tip.Sequence+1)).Code(409, "NOT_YET_DECIDED")
		past(v, user, path, "trading/0@x").Code(400, "VALIDATION_FAILED")
		past(v, user, path, tip.String()+":"+someRoot).Want(409)
	}
	for _, path := range []string{"/v1/orderbook/" + btc, a1 + "/account-summary", a1 + "/state", a1 + "/fee-profile", a1 + "/margin-profile",
		"/v1/account-summaries?customer_code=A-1", "/v1/positions?customer_code=A-1", "/v1/orders?customer_code=A-1"} {
		past(v, "broker-a", path, "trading/0@1").Code(404, "NOT_YET")
	}
	past(v, "operator", operated+"/"+btc, "trading/0@1").Code(404, "NOT_YET")
	past(v, "operator", operated+"/XRPUSDC_PERP", tip.String()).Code(404, "UNKNOWN_SYMBOL")
	for _, path := range []string{"/v1/account-summaries", ranking, "/v1/positions", "/v1/orders", "/v1/customers", "/v1/tickers", operated} { // there were no accounts, and that is known
		if r := past(v, askerOf(path), path, "trading/0@1").Want(200); !strings.Contains(r.Body, "[]") {
			t.Error(r.Body)
		}
	}
	past(v, "", "/v1/orderbook/XRPUSDC_PERP", tip.String()).Code(404, "UNKNOWN_SYMBOL")
	past(v, "broker-b", a1+"/account-summary", tip.String()).Code(404, "UNKNOWN_CUSTOMER")
	past(v, "broker-a", ranking, tip.String()).Want(403)
	past(v, "auditor", ranking, tip.String()).Want(200)

	// A time means the last record before it.
	v.Advance(10 * scalar.Second)
	v.Send("broker-a", "POST", a1+"/orders", entry("buy", "0.3", "64000")).Want(201)
	at := v.Trading.Entries()[tip.Sequence].Record.Time
	if r := past(v, "", "/v1/orderbook/"+btc, at.String()).Want(200); r.Text("bids") != "[]" || r.Header.Get(operation.HeaderLogPosition) != tip.String() {
		t.Errorf("%s as of %v", r.Body, r.Header.Values(operation.HeaderLogPosition))
	}
}

// TestMarginRanking ranks accounts by their distance to liquidation.
func TestMarginRanking(t *testing.T) {
	v := funded(t)
	v.Send("broker-a", "POST", a1+"/orders", entry("sell", "5", "65000")).Want(201)
	v.Send("broker-b", "POST", b1+"/orders", entry("buy", "5", "65000")).Want(201)
	v.Send("broker-a", "POST", "/v1/customers/A-2/orders", entry("sell", "1", "65000")).Want(201)
	v.Send("broker-b", "POST", b1+"/orders", entry("buy", "1", "65000")).Want(201)
	before := v.Trading.Tip()
	v.Send("operator", "POST", "/admin/v1/index-prices/"+btc, `{"price":"70000"}`).Want(200)
	order := func(r *tradingtest.Reply) (codes string) {
		for _, a := range r.Want(200).Items() {
			codes += a.Text("customer_code") + " " + a.Text("broker") + " "
		}
		return codes
	}
	if got := order(v.Send("auditor", "GET", ranking, "")); got != "A-1 alpha B-1 beta A-2 alpha " {
		t.Errorf("ranked %s", got)
	}
	if got := order(past(v, "auditor", ranking, before.String())); got != "B-1 beta A-1 alpha A-2 alpha " {
		t.Errorf("before, ranked %s", got)
	}
	if got := order(v.Send("auditor", "GET", ranking+"?page=2&size=1", "")); got != "B-1 beta " {
		t.Errorf("the second page is %s", got)
	}
	v.Send("auditor", "GET", ranking+"?risk_state=ruined", "").Code(400, "VALIDATION_FAILED")
}

// TestOneWholeStateForEach: while a past state is made for somebody, the same one gets no other and no list of past owners or cases, and
// everybody else does. A question about a record that does not exist waits for nobody.
func TestOneWholeStateForEach(t *testing.T) {
	v := funded(t)
	v.Send("broker-a", "POST", "/api/v1/persons", `{"external_id":"p","first_name":"Anna","last_name":"Øst"}`).Want(201)
	tip, owners, book := v.Trading.Tip().String(), v.Onboarding.Tip().String(), "/v1/orderbook/"+btc
	reads := []struct{ user, path, at string }{{"broker-a", a1 + "/account-summary", tip}, {"broker-b", b1 + "/account-summary", tip}, {"operator", ranking, tip}, {"auditor", ranking, tip}, {"", book, tip},
		{"broker-a", "/api/v1/persons", owners}, {"operator", "/admin/v1/persons", owners}, {"operator", "/admin/v1/entitlement_triggers", owners}}
	for _, n := range []int{0, 2, 4} { // each takes as long as the last of its own questions waits
		slow := reads[n]
		entered, release := v.Trading.SlowState()
		first := make(chan *tradingtest.Reply, 1)
		go func() { first <- past(v, slow.user, slow.path, slow.at) }()
		select {
		case <-entered:
		case <-time.After(time.Minute):
			t.Fatalf("no state is made for %q", slow.user)
		}
		for _, other := range reads {
			r := past(v, other.user, other.path, other.at)
			switch {
			case other.user != slow.user:
				r.Want(200)
			case r.Want(503).Header.Get("Retry-After") == "" || !strings.Contains(r.Body, "TOO_MANY_PAST_STATES"):
				t.Error(r.Header, r.Body)
			}
		}
		past(v, slow.user, slow.path, "trading/0@100000").Code(409, "NOT_YET_DECIDED")
		release()
		(<-first).Want(200)
		past(v, slow.user, slow.path, slow.at).Want(200)
	}
}

// TestPastStatesFail has the states fail.
func TestPastStatesFail(t *testing.T) {
	v := funded(t)
	tip, path := v.Trading.Tip().String(), a1+"/account-summary"
	for _, tt := range []struct {
		err    error
		status int
		code   string
	}{
		{&states.BusyError{RetryAfter: time.Second}, 503, "TOO_MANY_PAST_STATES"},
		{&record.TrimmedError{Base: record.Base{Sequence: 65536}}, 409, "LOG_TRIMMED"},
		{errors.New("the bucket is away"), 503, "SOURCE_UNAVAILABLE"},
	} {
		v.Trading.FailDeciding(tt.err)
		r := pastOf(v, path, tip).Code(tt.status, tt.code)
		if tt.status == 503 && r.Header.Get("Retry-After") == "" {
			t.Error(r.Header)
		}
	}
	v.Trading.FailDeciding(nil)
	pastOf(v, path, tip).Want(200)
}

func pastOf(v *tradingtest.Venue, path, at string) *tradingtest.Reply {
	return v.Send("broker-a", "GET", path+"?as_of="+at, "")
}
