package trading_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/trading/tradingtest"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/streams/transparency"
)

// past asks as of something.
func past(v *tradingtest.Venue, user, path, asOf string) *tradingtest.Reply {
	separator := "?"
	if strings.Contains(path, "?") {
		separator = "&"
	}
	return v.Send(user, "GET", path+separator+"as_of="+url.QueryEscape(asOf), "")
}

// trade lets two customers trade at random, and returns the codes of the orders.
func trade(v *tradingtest.Venue, random *rand.Rand, each func()) (codes []string) {
	for i := range 60 {
		action := []string{"buy", "sell"}[random.IntN(2)]
		user, customer := "broker-a", a1
		if random.IntN(3) == 0 {
			user, customer = "broker-b", b1
		}
		body := entry(action, fmt.Sprintf("0.%02d", 1+random.IntN(20)), fmt.Sprint(64900+random.IntN(5)*50), fmt.Sprintf(`"reference_id":"r-%d"`, i))
		if r := v.Send(user, "POST", customer+"/orders", body); r.Status == 201 && customer == a1 {
			codes = append(codes, r.Text("code"))
		}
		if len(codes) > 0 && random.IntN(4) == 0 {
			v.Send("broker-a", "DELETE", a1+"/orders/"+codes[random.IntN(len(codes))], "")
		}
		v.Advance(scalar.Time(random.IntN(3)) * scalar.Millisecond)
		each()
	}
	return codes
}

// TestAsOfAnswersWhatWasAnswered keeps answers with their positions, and asks for them again as of these positions: now and
// at the end, the same bytes come back.
func TestAsOfAnswersWhatWasAnswered(t *testing.T) {
	v, seed := funded(t), rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	type answer struct{ path, at, body string }
	var kept []answer
	keep := func(path string) {
		r := v.Send("broker-a", "GET", path, "").Want(200)
		at := r.Header.Get(operation.HeaderLogPosition)
		kept = append(kept, answer{path, at, r.Body})
		if again := past(v, "broker-a", path, at).Want(200); again.Body != r.Body || again.Header.Get(operation.HeaderLogPosition) != at {
			t.Fatalf("%s as of %s:\n%s\nwas\n%s", path, at, again.Body, r.Body)
		}
	}
	positions := func(path string) {
		r := v.Send("broker-a", "GET", path, "").Want(200)
		at := r.Header.Get(operation.HeaderLogPosition)
		type held struct {
			Symbol     string `json:"symbol"`
			Amount     string `json:"amount"`
			EntryPrice string `json:"entry_price"`
			Updated    string `json:"updated"`
		}
		var now, then []held
		r.JSON(&now)
		again := past(v, "broker-a", path, at).Want(200).JSON(&then)
		if !slices.Equal(now, then) {
			t.Fatalf("as of %s: %s, was %s", at, again.Body, r.Body)
		}
		kept = append(kept, answer{path, at, again.Body})
	}
	paths := []string{a1 + "/orders", a1 + "/balances", "/v1/orders?customer_code=A-1", a1 + "/orders?status=partially_filled"}
	trade(v, random, func() {
		for _, path := range paths {
			keep(path)
		}
		positions(a1 + "/positions")
	})
	for _, a := range kept {
		for range 2 {
			if r := past(v, "broker-a", a.path, a.at).Want(200); r.Body != a.body || r.Header.Get(operation.HeaderLogPosition) != a.at ||
				r.Header.Get(operation.HeaderLogPositionFinal) != "" {
				t.Fatalf("%s as of %s:\n%s\nwas\n%s", a.path, a.at, r.Body, a.body)
			}
		}
	}
}

// TestAsOfOrders asks for an order at each record of its life, by its code and by its reference.
func TestAsOfOrders(t *testing.T) {
	v := funded(t)
	before := v.Trading.Tip()
	placed := v.Send("broker-a", "POST", a1+"/orders", entry("buy", "0.3", "64000", `"reference_id":"mine"`)).Want(201)
	code, at := placed.Text("code"), v.Trading.Tip()
	amended := v.Send("broker-a", "PATCH", a1+"/orders/"+code, `{"amount":"0.2"}`).Want(200)
	second := v.Trading.Tip()
	v.Send("broker-b", "POST", b1+"/orders", entry("sell", "0.1", "64000")).Want(201)
	third := v.Trading.Tip()
	filled := v.Send("broker-a", "GET", a1+"/orders/"+code, "").Want(200)
	v.Send("broker-a", "DELETE", a1+"/orders/"+code, "").Want(200)
	for _, path := range []string{a1 + "/orders/" + code, a1 + "/orders/by-reference/mine"} {
		past(v, "broker-a", path, before.String()).Code(404, "NOT_YET")
		for position, want := range map[string]string{at.String(): placed.Body, second.String(): amended.Body, third.String(): filled.Body} {
			if r := past(v, "broker-a", path, position).Want(200); r.Body != want {
				t.Errorf("%s as of %s: %s, was %s", path, position, r.Body, want)
			}
		}
	}
	past(v, "broker-a", a1+"/orders/00000000-0000-8000-8000-000000000000", at.String()).Code(404, "UNKNOWN_ORDER")
	past(v, "broker-a", a1+"/orders/by-reference/none", at.String()).Code(404, "UNKNOWN_ORDER")
	// Rights are those of today.
	past(v, "broker-b", a1+"/orders/"+code, at.String()).Code(404, "UNKNOWN_CUSTOMER")
}

// TestAsOfTimes asks as of times, and as of positions of another journal.
func TestAsOfTimes(t *testing.T) {
	v := funded(t)
	first := v.Trading.Tip()
	v.Advance(10 * scalar.Second)
	v.Send("broker-a", "POST", a1+"/orders", entry("buy", "0.3", "64000")).Want(201)
	order := v.Trading.Tip()
	entries := v.Trading.Entries()
	at := func(sequence int64) scalar.Time { return entries[sequence].Record.Time }
	open := func(asOf string) *tradingtest.Reply { return past(v, "broker-a", a1+"/orders", asOf) }
	named := func(r *tradingtest.Reply, position, final string) {
		t.Helper()
		if got := r.Want(200).Header.Get(operation.HeaderLogPosition); got != position || r.Header.Get(operation.HeaderLogPositionFinal) != final {
			t.Errorf("as of %s (%s), want %s (%s)", got, r.Header.Get(operation.HeaderLogPositionFinal), position, final)
		}
	}
	undecided := func(r *tradingtest.Reply) {
		t.Helper()
		if r.Code(409, "NOT_YET_DECIDED"); r.Header.Get(operation.HeaderLogPosition) != "" {
			t.Errorf("a record that does not exist yet has the position %s", r.Header.Get(operation.HeaderLogPosition))
		}
	}
	named(open(at(first.Sequence).String()), first.String(), "")
	named(open((at(order.Sequence) - 1).String()), first.String(), "")
	// The last record's time: another record with this time may come.
	undecided(open(at(order.Sequence).String()))
	v.Advance(2 * scalar.Second)
	named(open(at(order.Sequence).String()), order.String(), "false") // the journal is idle
	undecided(open((at(order.Sequence) + 5*scalar.Second).String()))
	undecided(open(strings.Replace(first.String(), fmt.Sprint(first.Sequence), fmt.Sprint(order.Sequence+1), 1)))
	v.Send("broker-a", "POST", a1+"/orders", entry("buy", "0.3", "64000")).Want(201)
	named(open(at(order.Sequence).String()), order.String(), "")

	// Another journal's record stands for its time.
	v.Send("operator", "POST", "/admin/v1/brokers", `{"broker":"gamma","name":"Gamma"}`).Want(201)
	identity := v.Identity.Tip()
	v.Send("operator", "GET", "/admin/v1/brokers", "").Want(200) // waits for the rows
	v.Advance(3 * scalar.Second)
	r := open(identity.String()).Want(200)
	if got := r.Header.Values(operation.HeaderLogPosition); len(got) != 2 || got[0] != identity.String() || got[1] != v.Trading.Tip().String() {
		t.Errorf("as of %v", got)
	}
	undecided(open("identity/0@100000"))
}

// someRoot is the root of no record.
var someRoot = base64.StdEncoding.EncodeToString(make([]byte, 32))

// TestAsOfRoots asks as of positions with roots, which it takes from receipts. There is no answer if the record has another root, does
// not exist, or is in no checkpoint yet.
func TestAsOfRoots(t *testing.T) {
	v := funded(t)
	placed := v.Send("broker-a", "POST", a1+"/orders", entry("buy", "0.3", "64000")).Want(201)
	code, at := placed.Text("code"), v.Trading.Tip()
	v.Send("broker-a", "DELETE", a1+"/orders/"+code, "").Want(200)
	rootOf := func(sequence int64) string {
		t.Helper()
		shown := v.Send("broker-a", "GET", fmt.Sprintf("%s/orders/%s/receipt?sequence=%d", a1, code, sequence), "").Want(200)
		entry, err := base64.StdEncoding.DecodeString(shown.Text("entry"))
		if err != nil || len(entry) != transparency.EntrySize {
			t.Fatalf("%v, %s", err, shown.Body)
		}
		return base64.StdEncoding.EncodeToString(entry[1:])
	}
	root, second := rootOf(at.Sequence), rootOf(at.Sequence+1)
	open := func(asOf string) *tradingtest.Reply { return past(v, "broker-a", a1+"/orders", asOf) }
	bare := open(at.String()).Want(200)
	for _, asOf := range []string{at.String() + ":" + root, at.String() + ":" + root + ",identity/0@0"} {
		if r := open(asOf).Want(200); r.Body != bare.Body || !strings.HasPrefix(bare.Body, `[{"code":"`+code) || r.Header.Get(operation.HeaderLogPosition) != at.String() {
			t.Errorf("as of %s: %s as of %v", asOf, r.Body, r.Header.Values(operation.HeaderLogPosition))
		}
	}
	for _, path := range []string{a1 + "/orders", "/v1/orders?customer_code=A-1", a1 + "/positions", a1 + "/balances", a1 + "/orders/" + code} {
		past(v, "broker-a", path, at.String()+":"+root).Want(200)
		for _, other := range []string{second, someRoot} {
			past(v, "broker-a", path, at.String()+":"+other).Code(409, "ROOT_MISMATCH")
		}
	}
	// The root is checked first: no answer says whether an object existed as of another record.
	open("trading/0@0:"+root).Code(409, "ROOT_MISMATCH")
	open("trading/0@3,onboarding/0@0:"+root).Code(409, "ROOT_MISMATCH")
	open(fmt.Sprintf("trading/0@%d:%s", v.Trading.Tip().Sequence+1, root)).Code(409, "NOT_YET_DECIDED")

	v.Receipts["trading"].Hold(true)
	v.Send("broker-a", "POST", a1+"/orders", entry("buy", "0.1", "64000")).Want(201)
	if r := open(v.Trading.Tip().String()+":"+root).Code(503, "ROOT_NOT_PUBLISHED"); r.Header.Get("Retry-After") != "1" {
		t.Error(r.Header)
	}
	v.Receipts["trading"].NoRoot = errors.New("the bucket is away")
	open(at.String()+":"+root).Code(503, "SOURCE_UNAVAILABLE")
	open(at.String()).Want(200)
}

// TestAsOfNonsense asks questions that have no meaning.
func TestAsOfNonsense(t *testing.T) {
	v := funded(t)
	for _, asOf := range []string{"", "yesterday", "trading/0@", "trading/1@3", "trading/0@-2", "trading/0@3:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "trading/0@3:",
		"trading/0@3:" + someRoot[1:], "trading/0@3:" + someRoot + "=", "trading/0@-1:" + someRoot, "trading/0:" + someRoot + "@3", "trading/0@3,", "trading/0@3,trading/0@4", "prices/0@3", "12:00", "trading/0@99999999999999999999"} {
		past(v, "broker-a", a1+"/balances", asOf).Code(400, "VALIDATION_FAILED")
	}
	past(v, "broker-a", a1+"/balances", "trading/0@-1").Code(404, "NOT_YET")
	past(v, "broker-a", a1+"/balances", "2001-01-01T00:00:00Z").Code(404, "NOT_YET")
	past(v, "broker-a", a1+"/balances", "trading/0@0").Code(404, "NOT_YET")
	var list []any
	if r := past(v, "broker-a", a1+"/positions", v.Trading.Tip().String()).Want(200).JSON(&list); r.Body != "[]" {
		t.Error(r.Body)
	}
}
