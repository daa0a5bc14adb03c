package onboarding_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/document/format/formattest"
	domain "github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	operators "github.com/perpetua-exchange/perpetua/handlers/admin"
	"github.com/perpetua-exchange/perpetua/handlers/trading/tradingtest"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// answered is a write with its first answer.
type answered struct {
	write
	first *tradingtest.Reply
}

// independent is that of the house, and remembers the answers.
func (f *furnished) independent(writes ...write) {
	f.T.Helper()
	f.house.independent(writes...)
	for _, w := range writes {
		f.sent = append(f.sent, answered{w, f.write(w)})
	}
}

// stands wants all that was sent to have its first answer still, whatever has happened since.
func (f *furnished) stands() {
	f.T.Helper()
	for _, s := range f.sent {
		if again := f.write(s.write); again.Status != s.first.Status || again.Body != s.first.Body {
			f.T.Errorf("%v later on: %d %s, first %d %s", s.write, again.Status, again.Body, s.first.Status, s.first.Body)
		}
	}
}

// write is a request that changes something.
type write struct{ method, path, body string }

func (h *house) write(w write) *tradingtest.Reply {
	h.T.Helper()
	reply := h.Send(user(w.path), w.method, w.path, w.body, "Idempotency-Key", "the-key")
	h.Onboarding.Drain()
	h.Trading.Drain()
	return reply
}

// independent sends writes to routes that make one type of command, all with one key, and all of them again: each takes
// effect once, and has its own first answer. Another request with the key is refused on each.
func (h *house) independent(writes ...write) {
	h.T.Helper()
	first := make([]*tradingtest.Reply, len(writes))
	for i, w := range writes {
		if first[i] = h.write(w); first[i].Status >= 300 {
			h.T.Errorf("%v: %d %s", w, first[i].Status, first[i].Body)
		}
	}
	tips := []record.LogPosition{h.Trading.Tip(), h.Onboarding.Tip()}
	for i, w := range writes {
		if again := h.write(w); again.Status != first[i].Status || again.Body != first[i].Body {
			h.T.Errorf("%v again: %d %s, first %d %s", w, again.Status, again.Body, first[i].Status, first[i].Body)
		}
	}
	if !slices.Equal(tips, []record.LogPosition{h.Trading.Tip(), h.Onboarding.Tip()}) {
		h.T.Errorf("%v: what was sent again took effect", writes)
	}
}

// reused wants requests to be refused since their key was used for another on their route.
func (h *house) reused(writes ...write) {
	h.T.Helper()
	for _, w := range writes {
		if reply := h.write(w); strings.HasPrefix(w.path, api) {
			reply.Detail(422, "IDEMPOTENCY_KEY_REUSED")
		} else {
			reply.Code(409, "IDEMPOTENCY_KEY_REUSED")
		}
	}
}

// TestOneKeyOnTheRoutesOfOwners: what is for persons and what is for corporates are routes of their own.
func TestOneKeyOnTheRoutesOfOwners(t *testing.T) {
	f := furnish(t)
	persons, corporates := api+"/persons", api+"/corporates"
	f.independent(write{"POST", persons, `{"external_id":"n","first_name":"A","last_name":"B"}`}, write{"POST", corporates, `{"external_id":"n","legal_name":"A"}`})
	f.reused(write{"POST", persons, `{"external_id":"m","first_name":"A","last_name":"B"}`}, write{"POST", corporates, `{"external_id":"m","legal_name":"A"}`})
	person, corporate := f.owners["person"], f.owners["corporate"]
	f.independent(write{"PATCH", person, `{"last_name":"C"}`}, write{"PATCH", corporate, `{"legal_name":"C"}`})
	f.reused(write{"PATCH", person, `{"last_name":"D"}`}, write{"PATCH", corporate, `{"legal_name":"D"}`})
	response := func(kind, text string) write {
		q := f.questionnaires[kind]
		return write{"POST", f.owners[kind] + "/questionnaires/" + q.id + "/response", q.text(text)}
	}
	f.independent(response("person", "x"), response("corporate", "x"))
	f.reused(response("person", "y"), response("corporate", "y"))
	trigger := func(kind string) write {
		return write{"POST", f.owners[kind] + "/entitlement_triggers", `{"entitlement_id":"` + f.house.entitlement(owner.Type(kind), `,"approval":"manual"`) + `"}`}
	}
	f.independent(trigger("person"), trigger("corporate"))
	f.reused(trigger("person"), trigger("corporate"))

	upload := func(kind, name string) *tradingtest.Reply {
		return f.send("broker-a", f.owners[kind], name, formattest.PDF(), "", "Idempotency-Key", "the-key")
	}
	one, two := upload("person", "a.pdf").Want(201), upload("corporate", "a.pdf").Want(201)
	if upload("person", "a.pdf").Want(201).Body != one.Body || upload("corporate", "a.pdf").Want(201).Body != two.Body || len(f.bucket()) != 2 {
		t.Errorf("the uploads again are not the first ones; %q lies there", f.bucket())
	}
	upload("person", "b.pdf").Detail(422, "IDEMPOTENCY_KEY_REUSED")
	upload("corporate", "b.pdf").Detail(422, "IDEMPOTENCY_KEY_REUSED")

	operated := func(kind string) string { return admin + strings.TrimPrefix(f.owners[kind], api) }
	document := func(kind string, upload *tradingtest.Reply, category string) write {
		return write{"PATCH", operated(kind) + "/documents/" + upload.Text("id"), `{"category":"` + category + `"}`}
	}
	f.independent(document("person", one, "cv"), document("corporate", two, "cv"))
	f.reused(document("person", one, "poa"), document("corporate", two, "poa"))
	for kind, path := range f.owners {
		f.Send("broker-a", "PATCH", path, `{"external_id":"later"}`).Want(200)
		f.Send("operator", "POST", admin+"/questionnaires/"+f.questionnaires[kind].id+"/unpublish", "").Want(200)
	}
	f.stands()
	for _, end := range []string{"/hold", "/release-hold", "/erase"} {
		f.independent(write{"POST", operated("person") + end, `{"reason":"r"}`}, write{"POST", operated("corporate") + end, `{"reason":"r"}`})
		f.reused(write{"POST", operated("person") + end, `{"reason":"s"}`}, write{"POST", operated("corporate") + end, `{"reason":"s"}`})
	}
}

// TestOneKeyOnTheRoutesOfActions: each action on a trigger is a route of its own.
func TestOneKeyOnTheRoutesOfActions(t *testing.T) {
	f := furnish(t)
	at := admin + "/entitlement_triggers/" + f.triggers["person"]
	because := func(action string) write { return write{"POST", at + "/" + action, `{"code":"A","reason":"because"}`} }
	f.independent(because("block"), because("release"), because("request_video_identification"),
		write{"POST", at + "/complete_video_identification", `{"code":"A","reason":"because","outcome":"passed"}`}, because("approve"))
	f.stands()
	f.reused(write{"POST", at + "/approve", `{"code":"B","reason":"because"}`},
		write{"POST", admin + "/entitlement_triggers/" + f.triggers["corporate"] + "/block", `{"code":"A","reason":"because"}`})
	want(t, f.Send("auditor", "GET", at, "").Want(200), "status", "finished", "result", "success")
}

// TestOneKeyOnTheRoutesOfTrading: an order is canceled by its code and by its reference_id, a leverage is set and taken
// back, and fees are set by brokers and by operators, on routes of their own.
func TestOneKeyOnTheRoutesOfTrading(t *testing.T) {
	h := newHouse(t)
	h.Send("broker-a", "POST", "/v1/customers", `{"customer_code":"A-1"}`).Want(201)
	h.Send("operator", "POST", admin+"/customers/A-1/deposits", `{"currency":"USDC","amount":"100000","reference_id":"d"}`).Want(201)
	h.Send("operator", "POST", admin+"/index-prices/BTCUSDC_PERP", `{"price":"65000"}`).Want(200)
	a1 := "/v1/customers/A-1"
	order := func(reference string) string {
		return h.Send("broker-a", "POST", a1+"/orders", `{"symbol":"BTCUSDC_PERP","action":"buy","type":"limit","amount":"0.1","limit_price":"64000","reference_id":"`+reference+`"}`).Want(201).Text("code")
	}
	one, two, three := order("r-1"), order("r-2"), order("r-3")
	h.independent(write{"DELETE", a1 + "/orders/" + one, ""}, write{"DELETE", a1 + "/orders/by-reference/r-2", ""},
		write{"DELETE", a1 + "/orders/batch", `{"orders":[{"reference_id":"r-3"}]}`})
	h.reused(write{"DELETE", a1 + "/orders/" + two, ""}, write{"DELETE", a1 + "/orders/by-reference/r-3", ""},
		write{"DELETE", a1 + "/orders/batch", `{"orders":[{"order_code":"` + three + `"}]}`})
	h.independent(write{"PUT", a1 + "/margin-profile/BTCUSDC_PERP", `{"leverage":5}`}, write{"DELETE", a1 + "/margin-profile/BTCUSDC_PERP", ""})
	h.reused(write{"PUT", a1 + "/margin-profile/BTCUSDC_PERP", `{"leverage":6}`}, write{"DELETE", a1 + "/margin-profile/ETHUSDC_PERP", ""})
	h.independent(write{"PUT", a1 + "/fee-profile/BTCUSDC_PERP", `{"maker_fee":"1","taker_fee":"2"}`},
		write{"PUT", admin + "/customers/A-1/fee-profile/BTCUSDC_PERP", `{"maker_fee":"2","taker_fee":"3"}`})
	h.reused(write{"PUT", a1 + "/fee-profile/BTCUSDC_PERP", `{"maker_fee":"2","taker_fee":"2"}`},
		write{"PUT", admin + "/customers/A-1/fee-profile/BTCUSDC_PERP", `{"maker_fee":"3","taker_fee":"3"}`})
}

// TestOneKeyForTwoJournals: of what every journal takes, another journal's is another request of the same route.
func TestOneKeyForTwoJournals(t *testing.T) {
	f := furnish(t)
	f.Send("broker-a", "POST", "/v1/customers", `{"customer_code":"A-1"}`).Want(201)
	f.Send("broker-a", "POST", "/v1/customers/A-1/cancel-all-after", `{"timeout_seconds":10}`).Want(200)
	deadline := f.house.entitlement(owner.PersonType, `,"approval":"manual","deadline_seconds":10`)
	trigger := f.make("broker-a", f.owners["person"]+"/entitlement_triggers", `{"entitlement_id":"`+deadline+`"}`)
	f.Advance(11 * scalar.Second)
	f.Trading.SetAside("it panicked")
	f.Onboarding.SetAside("it panicked")
	put := func(entry string) write { return write{"POST", admin + "/due/" + entry + "/put-back", ""} }
	trading, onboarding := put("cancel_all_after%2FA-1"), put("trigger_deadline%2F"+trigger)
	f.independent(trading)
	f.reused(onboarding, write{"POST", trading.path + "?journal=onboarding", ""}, write{"POST", onboarding.path + "?journal=onboarding", ""})
	f.independent(trading, write{"POST", trading.path + "?journal=trading", ""})
	f.Send("operator", "POST", onboarding.path, "").Want(200)

	rules := write{"POST", admin + "/rules/onboarding", `{"rules":2}`}
	f.Nodes = []operators.Node{{Name: "http://a", Rules: map[string]int{"onboarding": 2, "trading": 2}}}
	f.independent(rules)
	f.reused(write{"POST", admin + "/rules/trading", rules.body}, write{"POST", rules.path, `{"rules":1}`})
	f.Nodes[0].Rules["onboarding"] = 1 // one that has joined since
	f.independent(rules)
	f.Send("operator", rules.method, rules.path, rules.body).Code(409, "RULES_NOT_KNOWN")
}

// TestWritesToARegistrationThatIsGone: what was asked of it before has its first answers, and nothing new is taken.
func TestWritesToARegistrationThatIsGone(t *testing.T) {
	f := furnish(t)
	id, err := scalar.ParseID(f.delivery)
	if err != nil {
		t.Fatal(err)
	}
	failed := &domain.RecordAttempt{ID: id, Number: 1, Started: scalar.TimeOf(tradingtest.Start), StatusCode: 500}
	sender := decide.Command{ID: operation.NewID(), Type: failed.CommandType(), Actor: decide.Actor{System: "sender"}, Payload: failed}
	if _, err := f.Submit(t.Context(), "onboarding", sender); err != nil {
		t.Fatal(err)
	}
	one := api + "/webhooks/" + f.webhook
	first := []write{{"POST", one + "/test", ""}, {"POST", one + "/rotate", ""}, {"POST", one + "/deliveries/" + f.delivery + "/replay", ""}}
	f.independent(first...)
	var answers []string
	for _, w := range first {
		answers = append(answers, f.write(w).Body)
	}
	f.independent(write{"DELETE", one, ""})
	for i, w := range first {
		if again := f.write(w); again.Status >= 300 || again.Body != answers[i] {
			t.Errorf("%v: %d %s, first %s", w, again.Status, again.Body, answers[i])
		}
		f.Send("broker-a", w.method, w.path, "").Detail(404, "WEBHOOK_NOT_FOUND")
	}
	f.reused(write{"POST", api + "/webhooks/" + nothing + "/deliveries/" + f.delivery + "/replay", ""})
	f.Send("broker-b", "POST", one+"/deliveries/"+f.delivery+"/replay", "", "Idempotency-Key", "the-key").Detail(404, "WEBHOOK_NOT_FOUND")
}

// TestAKeyIsForNullAndAbsentAlike: a request is the same with members that are null and without them, except where null
// clears something.
func TestAKeyIsForNullAndAbsentAlike(t *testing.T) {
	h := newHouse(t)
	with := `{"external_id":"n","first_name":"A","email":null,"last_name":"B","address":{"city":null,"street":"S"}}`
	without := `{"external_id":"n","first_name":"A","last_name":"B","address":{"street":"S"}}`
	same := func(method, path, one, other string) {
		t.Helper()
		first := h.write(write{method, path, one})
		made := h.Onboarding.Tip()
		if again := h.write(write{method, path, other}); first.Status >= 300 || again.Body != first.Body || h.Onboarding.Tip() != made {
			t.Errorf("%s and %s: %s and %s", one, other, first.Body, again.Body)
		}
	}
	same("POST", api+"/persons", with, without)
	h.reused(write{"POST", api + "/persons", strings.Replace(with, `"S"`, "null", 1)})
	same("POST", api+"/corporates", `{"external_id":"n","legal_name":"A"}`, `{"external_id":"n","legal_name":"A","address":null,"legal_form":null}`)
	entitlement := admin + "/entitlements/" + h.entitlement("person", `,"approval":"manual","deadline_seconds":60`)
	h.write(write{"PATCH", entitlement, `{"name":"x"}`}).Want(200)
	h.reused(write{"PATCH", entitlement, `{"name":"x","deadline_seconds":null}`})
}

// TestANullBeforeAnUpgrade: an earlier build gave a body with null another fingerprint, which is in the log.
func TestANullBeforeAnUpgrade(t *testing.T) {
	h := newHouse(t)
	h.Fail(func(decide.Command) error { // so that the record has the fingerprint of the earlier build
		h.Fail(nil)
		return &submit.RefusedError{Refusal: decide.KeyReused().(*decide.Refusal)}
	})
	with := `{"external_id":"n","first_name":"A","email":null,"last_name":"B"}`
	first := h.write(write{"POST", api + "/persons", with}).Want(201)
	made := h.Onboarding.Tip()
	if again := h.write(write{"POST", api + "/persons", with}).Want(201); again.Body != first.Body || h.Onboarding.Tip() != made {
		t.Errorf("again: %s, first %s", again.Body, first.Body)
	}
	h.reused(write{"POST", api + "/persons", strings.Replace(with, `"A"`, `"C"`, 1)})
}

// TestAKeyUsedBeforeAnUpgrade is still the same request's: that of a record whose fingerprint does not tell the route.
// And it is refused to other requests, since nobody knows which route it was used on.
func TestAKeyUsedBeforeAnUpgrade(t *testing.T) {
	h := newHouse(t)
	var asked scalar.ID
	h.Fail(func(c decide.Command) error {
		h.Fail(nil)
		asked = c.ID
		c.Metadata.Fingerprint = c.Metadata.Fingerprint[8:]
		if _, err := h.Submit(t.Context(), "onboarding", c); err != nil {
			t.Error(err)
		}
		return &submit.OutcomeUnknownError{CommandID: c.ID}
	})
	unknown := h.write(write{"POST", api + "/persons", anna})
	unknown.Detail(503, "OUTCOME_UNKNOWN")
	if got := unknown.Header.Get("X-Command-Id"); got != asked.String() {
		t.Errorf("the command is told to be %q, and is %v", got, asked)
	}
	made := h.Onboarding.Tip()
	again := h.write(write{"POST", api + "/persons", anna}).Want(201)
	if tip := h.Onboarding.Tip(); tip != made || again.Header.Get(operation.HeaderLogPosition) != made.String() {
		t.Errorf("the log is at %v after the request was made at %v and sent again: %v", tip, made, again.Header)
	}
	h.reused(write{"POST", api + "/persons", strings.Replace(anna, "Anna", "Bob", 1)}, write{"POST", api + "/corporates", `{"external_id":"c","legal_name":"A"}`})
	h.Advance(25 * scalar.Hour)
	h.write(write{"POST", api + "/corporates", `{"external_id":"c","legal_name":"A"}`}).Want(201)
}
