package onboarding_test

import (
	"net/http"
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
	"github.com/perpetua-exchange/perpetua/handlers/web"
	"github.com/perpetua-exchange/perpetua/streams/journal"
)

// writes are bodies that the routes take which write, of all interfaces; "" for none.
func (f *furnished) writes() map[string]string {
	const customer, because = "/v1/customers/:customer_code", `{"code":"A","reason":"because"}`
	order := `{"symbol":"BTCUSDC_PERP","action":"buy","type":"limit","amount":"1","limit_price":"64000"}`
	all := map[string]string{
		"POST /v1/customers": `{}`, "POST " + customer + "/orders": order, "DELETE " + customer + "/orders": "",
		"POST " + customer + "/orders/batch": `{"orders":[` + order + `]}`, "DELETE " + customer + "/orders/batch": `{"orders":[{"reference_id":"r"}]}`,
		"DELETE " + customer + "/orders/by-reference/:reference_id": "", "PATCH " + customer + "/orders/:order_code": `{"amount":"2"}`,
		"DELETE " + customer + "/orders/:order_code": "", "POST " + customer + "/cancel-all-after": `{"timeout_seconds":5}`,
		"PUT " + customer + "/margin-profile/:symbol": `{"leverage":5}`, "DELETE " + customer + "/margin-profile/:symbol": "",
		"PUT " + customer + "/fee-profile/:symbol": `{"maker_fee":"1","taker_fee":"1"}`,
		"POST /v1/api-keys":                        `{"name":"n","scopes":["read"]}`, "DELETE /v1/api-keys/:id": "",

		"POST /admin/v1/brokers": `{"broker":"gamma","name":"g"}`, "POST /admin/v1/users": `{"username":"u","broker":"alpha","scopes":["read"],"password":"a good password"}`,
		"PATCH /admin/v1/users/:username": `{"is_active":true}`, "PATCH /admin/v1/users/:username/api-keys/:id": `{"rate_limit":{"per_second":1,"burst":1}}`,
		"POST /admin/v1/signing-keys": "", "DELETE /admin/v1/signing-keys/:kid": "",
		"POST /admin/v1/instruments":          `{"symbol":"SOLUSDC_PERP","underlying":"SOL","price_tick":"0.1","amount_step":"1","max_amount":"10","init_margin_req":"10","maint_margin_req":"5","max_leverage":10}`,
		"PATCH /admin/v1/instruments/:symbol": `{"status":"post_only"}`, "DELETE /admin/v1/instruments/:symbol": "", "POST /admin/v1/index-prices/:symbol": `{"price":"1"}`,
		"POST /admin/v1/customers/:customer_code/deposits":    `{"currency":"USDC","amount":"1","reference_id":"r"}`,
		"POST /admin/v1/customers/:customer_code/withdrawals": `{"currency":"USDC","amount":"1","reference_id":"r"}`,
		"POST /admin/v1/withdrawals/:code/complete":           "", "POST /admin/v1/withdrawals/:code/cancel": "",
		"PUT /admin/v1/customers/:customer_code/margin-profile":      `{"leverage":5}`,
		"PUT /admin/v1/customers/:customer_code/fee-profile/:symbol": `{"maker_fee":"1","taker_fee":"1"}`,
		"POST /admin/v1/insurance/deposits":                          `{"amount":"1","reference_id":"r"}`,
		"POST /admin/v1/due/:entry/put-back":                         "", "POST /admin/v1/rules/:journal": `{"rules":2}`,

		"POST /admin/v1/questionnaires": `{"name":"n","owner_type":"person"}`, "PATCH /admin/v1/questionnaires/:id": `{"name":"n"}`,
		"POST /admin/v1/questionnaires/:id/versions": oneText, "POST /admin/v1/questionnaires/:id/publish": "", "POST /admin/v1/questionnaires/:id/unpublish": "",
		"POST /admin/v1/entitlements": `{"name":"n","owner_type":"person","approval":"manual"}`, "PATCH /admin/v1/entitlements/:id": `{"name":"n"}`,
		"PUT /admin/v1/retention": `{"seconds":5}`, "POST /admin/v1/webhook_deliveries/:id/replay": "",

		"POST /api/v1/webhooks": `{"url":"https://example.org/"}`, "DELETE /api/v1/webhooks/:webhook_id": "", "POST /api/v1/webhooks/:webhook_id/test": "",
		"POST /api/v1/webhooks/:webhook_id/rotate": "", "POST /api/v1/webhooks/:webhook_id/enable": "",
		"POST /api/v1/webhooks/:webhook_id/deliveries/:delivery_id/replay": "",
		"POST /api/v1/persons":    `{"external_id":"n","first_name":"A","last_name":"B"}`,
		"POST /api/v1/corporates": `{"external_id":"n","legal_name":"A"}`,
	}
	for _, action := range []string{"reject", "approve", "block", "release", "fail", "cancel", "terminate", "request_video_identification"} {
		all["POST /admin/v1/entitlement_triggers/:id/"+action] = because
	}
	all["POST /admin/v1/entitlement_triggers/:id/request_information"] = `{"code":"A","reason":"because","questionnaire_ids":["` + nothing + `"]}`
	all["POST /admin/v1/entitlement_triggers/:id/complete_video_identification"] = `{"code":"A","reason":"because","outcome":"passed"}`
	for kind, q := range f.questionnaires {
		one := "/" + kind + "s/:" + kind + "_id"
		all["PATCH /api/v1"+one], all["POST /api/v1"+one+"/documents"] = `{"external_id":"o"}`, ""
		all["POST /api/v1"+one+"/questionnaires/:questionnaire_id/response"] = q.text("x")
		all["POST /api/v1"+one+"/entitlement_triggers"] = `{"entitlement_id":"` + f.entitlements[kind] + `"}`
		for _, end := range []string{"erase", "hold", "release-hold"} {
			all["POST /admin/v1"+one+"/"+end] = `{"reason":"because"}`
		}
		all["PATCH /admin/v1"+one+"/documents/:document_id"] = `{"category":"cv"}`
	}
	return all
}

// furnished is a house with a person and a corporate who have something of everything, by "person" and "corporate".
type furnished struct {
	*house
	owners, entitlements, triggers map[string]string
	questionnaires                 map[string]*asked
	webhook, delivery              string
}

func furnish(t *testing.T) *furnished {
	t.Helper()
	h := newHouse(t)
	f := &furnished{house: h, owners: make(map[string]string), entitlements: make(map[string]string), triggers: make(map[string]string),
		questionnaires: make(map[string]*asked)}
	f.owners["person"], f.owners["corporate"] = h.person("p"), h.corporate("c")
	for kind, path := range f.owners {
		f.questionnaires[kind] = h.questionnaire("KYC", owner.Type(kind), oneText, "")
		f.entitlements[kind] = h.entitlement(owner.Type(kind), `,"approval":"manual"`)
		f.triggers[kind] = h.make("broker-a", path+"/entitlement_triggers", `{"entitlement_id":"`+f.entitlements[kind]+`"}`)
	}
	f.webhook = h.make("broker-a", api+"/webhooks", `{"url":"https://example.org/"}`)
	f.delivery = h.make("broker-a", api+"/webhooks/"+f.webhook+"/test", "")
	return f
}

// path puts something that is there into the parameters of a route that a write is asked for on.
func (f *furnished) path(route string) string {
	kind := "person"
	if strings.Contains(route, "corporate_id") {
		kind = "corporate"
	}
	id := func(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }
	trigger := "/entitlement_triggers/" + f.triggers[kind]
	return strings.NewReplacer("/entitlement_triggers/:id", trigger, ":person_id", id(f.owners["person"]), ":corporate_id", id(f.owners["corporate"]),
		":questionnaire_id", f.questionnaires[kind].id, ":customer_code", "A-1", ":symbol", "BTCUSDC_PERP", ":entry", "expiry%2F1", ":journal", "trading",
		":username", "broker-a", ":kid", "test", ":reference_id", "r", ":order_code", nothing, ":code", nothing, ":webhook_id", f.webhook,
		":delivery_id", f.delivery, ":document_id", nothing, ":id", nothing).Replace(route)
}

// user is one who may write at a path.
func user(path string) string {
	if strings.HasPrefix(path, admin) {
		return "operator"
	}
	return "broker-a"
}

// TestEveryRouteHasKeysOfItsOwn sends every write that there is with one Idempotency-Key, and looks at the command that comes of
// it: no two routes have it remembered as the same, and none has it remembered as the one or the other of two.
func TestEveryRouteHasKeysOfItsOwn(t *testing.T) {
	f := furnish(t)
	f.Nodes = []operators.Node{{Name: "http://a", Rules: map[string]int{"trading": 2}}}
	var made []decide.Command
	f.Fail(func(c decide.Command) error {
		made = append(made, c)
		return &journal.NotAcceptedError{}
	})
	writes, routesOf, scopes := f.writes(), make(map[string][]string), make(map[string]string)
	for _, r := range f.Routes() {
		route := r.Method + " " + r.Path
		body, described := writes[route]
		if delete(writes, route); r.Method == http.MethodGet {
			continue
		}
		path := f.path(r.Path)
		send := func(key string) *tradingtest.Reply {
			made = nil
			if strings.HasSuffix(path, "/documents") {
				return f.send("broker-a", strings.TrimSuffix(path, "/documents"), "a.pdf", formattest.PDF(), "", "Idempotency-Key", key)
			}
			return f.Send(user(path), r.Method, path, body, "Idempotency-Key", key)
		}
		for _, bad := range []string{"", "a b", "a/b", "a@b", strings.Repeat("k", 65)} {
			if reply := send(bad); len(made) > 0 || !strings.Contains(reply.Body, "Idempotency-Key") || reply.Status != 400 && reply.Status != 422 {
				t.Errorf("%s takes the key %q: %d %s", route, bad, reply.Status, reply.Body)
			}
		}
		reply := send("k")
		if !described || len(made) != 1 {
			t.Errorf("%s makes %d commands of the body %q (described: %t): %d %s", route, len(made), body, described, reply.Status, reply.Body)
			continue
		}
		c := made[0]
		scope, batch := c.Type, strings.HasPrefix(c.Kept.Key, "k/")
		if !batch {
			routesOf[c.Type] = append(routesOf[c.Type], route)
		}
		switch {
		case batch:
			scope += " in a batch"
		case len(c.Kept.Fingerprint) == 40:
			scope += " " + c.Kept.Fingerprint[:8]
		case len(c.Kept.Fingerprint) != 32:
			t.Errorf("%s: the fingerprint is %q", route, c.Kept.Fingerprint)
		}
		if other, taken := scopes[scope]; taken {
			t.Errorf("%s and %s have the same keys: %s", route, other, scope)
		}
		scopes[scope] = route
	}
	for route := range writes {
		t.Errorf("%s is not served", route)
	}
	for kind, routes := range routesOf {
		if _, told := scopes[kind]; told == (len(routes) > 1) {
			t.Errorf("%s is made by %q: whether the route is told has to follow from that", kind, routes)
		}
	}
	if len(scopes) < 70 {
		t.Errorf("%d routes write", len(scopes))
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

// independent sends writes to routes that make one type of command, all with one key, and all of them again: each takes effect
// once, and has its own first answer. Another request with the key is refused on each.
func (h *house) independent(writes ...write) {
	h.T.Helper()
	first := make([]*tradingtest.Reply, len(writes))
	for i, w := range writes {
		if first[i] = h.write(w); first[i].Status >= 300 {
			h.T.Errorf("%v: %d %s", w, first[i].Status, first[i].Body)
		}
	}
	tips := []journal.LogPosition{h.Trading.Tip(), h.Onboarding.Tip()}
	for i, w := range writes {
		if again := h.write(w); again.Status != first[i].Status || again.Body != first[i].Body {
			h.T.Errorf("%v again: %d %s, first %d %s", w, again.Status, again.Body, first[i].Status, first[i].Body)
		}
	}
	if !slices.Equal(tips, []journal.LogPosition{h.Trading.Tip(), h.Onboarding.Tip()}) {
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
	f.reused(write{"POST", at + "/approve", `{"code":"B","reason":"because"}`},
		write{"POST", admin + "/entitlement_triggers/" + f.triggers["corporate"] + "/block", `{"code":"A","reason":"because"}`})
	want(t, f.Send("auditor", "GET", at, "").Want(200), "status", "finished", "result", "success")
}

// TestOneKeyOnTheRoutesOfTrading: an order is canceled by its code and by its reference_id, a leverage is set and taken back, and
// fees are set by brokers and by operators, on routes of their own.
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
	f.Advance(scalar.Time(11) * scalar.Second)
	f.Trading.SetAside("it panicked")
	f.Onboarding.SetAside("it panicked")
	put := func(entry string) write { return write{"POST", admin + "/due/" + entry + "/put-back", ""} }
	trading, onboarding := put("cancel_all_after%2FA-1"), put("trigger_deadline%2F"+trigger)
	f.independent(trading)
	f.reused(onboarding, write{"POST", trading.path + "?journal=onboarding", ""}, write{"POST", onboarding.path + "?journal=onboarding", ""})
	f.independent(trading, write{"POST", trading.path + "?journal=trading", ""})
	f.Send("operator", "POST", onboarding.path, "").Want(200)
}

// TestWritesToARegistrationThatIsGone: what was asked of it before has its first answers, and nothing new is taken.
func TestWritesToARegistrationThatIsGone(t *testing.T) {
	f := furnish(t)
	id, err := scalar.ParseID(f.delivery)
	if err != nil {
		t.Fatal(err)
	}
	failed := &domain.RecordAttempt{ID: id, Number: 1, Started: scalar.TimeOf(tradingtest.Start), StatusCode: 500}
	sender := decide.Command{ID: web.NewID(), Type: failed.CommandType(), Actor: decide.Actor{System: "sender"}, Payload: failed}
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

// TestAKeyUsedBeforeAnUpgrade is still the same request's: that of a record whose fingerprint does not tell the route. And it is
// refused to other requests, since nobody knows which route it was used on.
func TestAKeyUsedBeforeAnUpgrade(t *testing.T) {
	h := newHouse(t)
	var asked scalar.ID
	h.Fail(func(c decide.Command) error {
		h.Fail(nil)
		asked = c.ID
		c.Kept.Fingerprint = c.Kept.Fingerprint[8:]
		if _, err := h.Submit(t.Context(), "onboarding", c); err != nil {
			t.Error(err)
		}
		return &journal.OutcomeUnknownError{CommandID: c.ID}
	})
	unknown := h.write(write{"POST", api + "/persons", anna})
	unknown.Detail(503, "OUTCOME_UNKNOWN")
	if got := unknown.Header.Get("X-Command-Id"); got != asked.String() {
		t.Errorf("the command is told to be %q, and is %v", got, asked)
	}
	made := h.Onboarding.Tip()
	again := h.write(write{"POST", api + "/persons", anna}).Want(201)
	if tip := h.Onboarding.Tip(); tip != made || again.Header.Get(web.HeaderLogPosition) != made.String() {
		t.Errorf("the log is at %v after the request was made at %v and sent again: %v", tip, made, again.Header)
	}
	h.reused(write{"POST", api + "/persons", strings.Replace(anna, "Anna", "Bob", 1)}, write{"POST", api + "/corporates", `{"external_id":"c","legal_name":"A"}`})
	h.Advance(25 * scalar.Hour)
	h.write(write{"POST", api + "/corporates", `{"external_id":"c","legal_name":"A"}`}).Want(201)
}
