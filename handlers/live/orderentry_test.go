package live

import (
	"bytes"
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
)

// TestEntryIsTheRESTRequest lists what order entry becomes: method, path, query, key and body of a REST route.
func TestEntryIsTheRESTRequest(t *testing.T) {
	for _, test := range []struct{ op, data, want string }{
		{opPlace, `{"customer_code":"C","symbol":"X", "amount" : "1","idempotency_key":"k"}`, `POST v1/customers/C/orders k {"symbol":"X","amount":"1"}`},
		{opPlace, `{"amount":1,"amount":2,"reference_id":"r","customer_code":"C"}`, `POST v1/customers/C/orders {"amount":1,"amount":2,"reference_id":"r"}`},
		{opPlace, `{"customer_code":"C","idempotency_key":7}`, `POST v1/customers/C/orders  {}`},
		{opAmend, `{"customer_code":"C","order_code":"O","amount":"1"}`, `PATCH v1/customers/C/orders/O {"amount":"1"}`},
		{opCancel, `{"order_code":"O","customer_code":"C"}`, `DELETE v1/customers/C/orders/O`},
		{opAmend, `{"reference_id":"r","customer_code":"C","amount":"2"}`, `PATCH v1/customers/C/orders/by-reference/r {"amount":"2"}`},
		{opAmendBatch, `{"customer_code":"C","orders":[{"reference_id":"r","amount":"2"}]}`, `PATCH v1/customers/C/orders/batch {"orders":[{"reference_id":"r","amount":"2"}]}`},
		{opCancel, `{"reference_id":"r","customer_code":"C","idempotency_key":"k"}`, `DELETE v1/customers/C/orders/by-reference/r k`},
		{opPlaceBatch, `{"customer_code":"C","orders":[{}]}`, `POST v1/customers/C/orders/batch {"orders":[{}]}`},
		{opCancelBatch, `{"customer_code":"C","orders":[{}],"x":1}`, `DELETE v1/customers/C/orders/batch {"orders":[{}],"x":1}`},
		{opPlace, `{ "symbol" : "X" , "customer_code":"C" ,"idempotency_key":"k" }`, `POST v1/customers/C/orders k {"symbol":"X"}`},
		{opPlace, `{"customer_code":"C", "symbol":"X" ,"idempotency_key":"k","amount":"1"}`, `POST v1/customers/C/orders k {"symbol":"X","amount":"1"}`},
		{opCancelAll, `{"customer_code":"C"}`, `DELETE v1/customers/C/orders`},
		{opCancelAll, `{"symbol":"X|","customer_code":"C"}`, `DELETE v1/customers/C/orders?symbol=X%7C`},
		{opCancelAll, `{"symbol":null,"customer_code":"C","idempotency_key":null}`, `DELETE v1/customers/C/orders`},
		{opCancel, `{"order_code":null,"reference_id":"r","customer_code":"C"}`, `DELETE v1/customers/C/orders/by-reference/r`},
		{opAmend, `{"order_code":"O","reference_id":null,"customer_code":"C","amount":null}`, `PATCH v1/customers/C/orders/O {"amount":null}`},
	} {
		e, err := parseEntry([]byte(`{"op":"` + test.op + `","id":"i","data":` + test.data + `}`))
		if err != nil {
			t.Errorf("%s %s: %v", test.op, test.data, err)
			continue
		}
		c := &e.call
		got := c.Method + " " + strings.TrimPrefix(c.Path(), "/")
		if c.Query != nil {
			got += "?" + c.Query.Encode()
		}
		if c.Keyed {
			got += " " + c.Key
		}
		if c.Body != nil {
			got += " " + string(compact(t, c.Body))
		}
		if got != test.want {
			t.Errorf("%s %s is\n%s, want\n%s", test.op, test.data, got, test.want)
		}
	}
}

// compact returns an object without spaces. It may have members twice.
func compact(t *testing.T, object []byte) jsontext.Value {
	t.Helper()
	v := jsontext.Value(bytes.Clone(object))
	if err := v.Compact(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)); err != nil || v.Kind() != '{' {
		t.Fatalf("%q is no object: %v", object, err)
	}
	return v
}

// TestEntryIsStrict lists what is no request for order entry, and what other requests are left alone.
func TestEntryIsStrict(t *testing.T) {
	for text, want := range map[string]string{
		`{"op":"order.cancel_all","data":{"customer_code":"C"}}`:                                        "needs an id",
		`{"op":"order.cancel_all","id":null,"data":{"customer_code":"C"}}`:                              "needs an id",
		`{"op":"order.cancel_all","id":1}`:                                                              "data must be",
		`{"op":"order.cancel_all","id":1,"data":[]}`:                                                    "data must be",
		`{"op":"order.cancel_all","id":1,"data":{}}`:                                                    "customer_code is required",
		`{"op":"order.cancel_all","id":1,"data":{"customer_code":""}}`:                                  "customer_code must be",
		`{"op":"order.cancel_all","id":1,"data":{"customer_code":7}}`:                                   "customer_code must be",
		`{"op":"order.cancel_all","id":1,"data":{"customer_code":null}}`:                                "customer_code is required",
		`{"op":"order.cancel_all","id":1,"data":{"customer_code":"C","symbol":null,"symbol":"X"}}`:      "given twice",
		`{"op":"order.cancel","id":1,"data":{"customer_code":"C","order_code":null}}`:                   "one of data.order_code",
		`{"op":"order.cancel_all","id":1,"data":{"customer_code":"C","customer_code":"D"}}`:             "given twice",
		`{"op":"order.cancel_all","id":1,"data":{"customer_code":"C","amount":"1"}}`:                    `order.cancel_all takes no field "data.amount"`,
		`{"op":"order.cancel_all","id":1,"data":{"customer_code":"C","symbol":""}}`:                     "symbol must be",
		`{"op":"order.cancel_all","id":1,"data":{"customer_code":"C"},"args":[]}`:                       "takes no field",
		`{"op":"order.cancel_all","id":1,"id":2,"data":{"customer_code":"C"}}`:                          "given twice",
		`{"op":"order.cancel","id":1,"data":{"customer_code":"C"}}`:                                     "one of data.order_code",
		`{"op":"order.cancel","id":1,"data":{"customer_code":"C","order_code":"O","reference_id":"r"}}`: "not both",
		`{"op":"order.amend","id":1,"data":{"customer_code":"C","amount":"1"}}`:                         "one of data.order_code",
	} {
		if e, err := parseEntry([]byte(text)); e == nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	for _, text := range []string{`{"op":"ping"}`, `{"op":"order.none","id":1}`, `{"op":"order.cancel_all","id":1,"data":{"customer_code":"C"}`,
		`{"op":"order.cancel_all"} {}`, `[]`, ``, `{"op":7}`} {
		if e, err := parseEntry([]byte(text)); e != nil || err != nil {
			t.Errorf("%s is taken for order entry: %v", text, err)
		}
	}
}

// FuzzParseEntry: the body of a request is a JSON object with all members of data that are not in the path, the query, or the
// headers, as they were sent. A message that is no order entry, or an invalid one, is not changed.
func FuzzParseEntry(f *testing.F) {
	for _, text := range []string{
		`{"op":"order.place","id":1,"data":{"customer_code":"C","symbol":"X","idempotency_key":"k"}}`,
		`{"op":"order.place_batch","id":"\u0041","data":{"customer\u005fcode":"C","orders":[{"a":"}"}]}}`,
		`{"op":"order.cancel","id":1e3,"data":{"customer_code":"C","reference_id":"r"}}`, `{"op":"order.cancel_all","id":1,"data":{"symbol":"\ud800"}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		kept := bytes.Clone(raw)
		e, err := parseEntry(raw)
		if e == nil || err != nil {
			if !bytes.Equal(raw, kept) {
				t.Fatalf("%q was changed", kept)
			}
			return
		}
		allow := []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}
		if e.call.Body != nil {
			if body, want := compact(t, e.call.Body), rebuilt(t, kept, entryShapes[e.op]); string(body) != string(want) {
				t.Fatalf("%q has the body %q, want %q", kept, body, want)
			}
		}
		if len(e.call.Params) == 0 || e.call.Params[0] == "" || e.call.Method == "" {
			t.Fatalf("%q goes to %s", raw, e.call.Path())
		}
		if message := jsontext.Value(resultMessage(e.id, nothingReplied())); message.Compact(allow...) != nil {
			t.Fatalf("%q is answered %q", raw, message)
		}
	})
}

// rebuilt returns the body of a request, built anew from the other members of data.
func rebuilt(t *testing.T, raw []byte, shape entryShape) jsontext.Value {
	t.Helper()
	body := []byte("{")
	outer := cutter{raw: raw}
	defer outer.done()
	for outer.next() {
		if string(outer.name) != "data" {
			continue
		}
		inner := cutter{raw: outer.value}
		defer inner.done()
		for inner.next() {
			switch name := string(inner.name); {
			case name == "customer_code", name == "idempotency_key", shape.order && (name == "order_code" || name == "reference_id"):
				continue
			}
			if len(body) > 1 {
				body = append(body, ',')
			}
			body = append(append(append(body, inner.quoted...), ':'), inner.value...)
		}
	}
	return compact(t, append(body, '}'))
}

func nothingReplied() *rest.Reply { return &rest.Reply{Status: 200} }

// TestEntriesShareNothing: what was read of one request stays when others are read, and a request that breaks off leaves
// nothing to the next.
func TestEntriesShareNothing(t *testing.T) {
	read := func(n string) *entry {
		e, err := parseEntry([]byte(`{"op":"order.amend","id":"` + n + `","data":{"customer_code":"C` + n + `","order_code":"O` + n + `","amount":"` + n + `"}}`))
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	first := read("1")
	for _, broken := range []string{`{"op":"order.amend","id":"2","data":{"customer_code":"C`, `{"op":`, `{"op":"order.amend","id":2,"data":{"x":{"y":[`} {
		if e, err := parseEntry([]byte(broken)); e != nil || err != nil {
			t.Errorf("%s: %v", broken, err)
		}
	}
	for e, n := range map[*entry]string{read("3"): "3", first: "1", read("4"): "4"} {
		if string(e.id) != `"`+n+`"` || e.call.Params[0] != "C"+n || e.call.Params[1] != "O"+n || string(compact(t, e.call.Body)) != `{"amount":"`+n+`"}` {
			t.Errorf("%s is %s %v %s", n, e.id, e.call.Params, e.call.Body)
		}
	}
}

// created is a REST interface that answers each call with 201.
type created struct{}

func (created) Do(context.Context, *rest.Call) rest.Reply { return rest.Reply{Status: 201} }

// TestAnEntryIsNotUnderWayAfterItsResult: a client that has the result may send another request.
func TestAnEntryIsNotUnderWayAfterItsResult(t *testing.T) {
	s, r, h := recorded()
	h.rest, s.ctx = created{}, t.Context()
	close(r.proceed)
	h.shutdown.add()
	s.inFlightOrders.Add(1)
	answered := make(chan struct{})
	s.mu.Lock() // so that no result is sent
	go func() {
		defer close(answered)
		h.answer(s, &entry{id: jsontext.Value("1")}, nil, make(chan struct{}))
	}()
	for deadline := time.Now().Add(time.Minute); s.inFlightOrders.Load() > 0; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Error("the request is under way until its result is sent")
			break
		}
	}
	s.mu.Unlock()
	<-answered
	h.serving.Wait()
	if len(r.writes) != 1 {
		t.Errorf("%d results were written", len(r.writes))
	}
}

// TestRepeatedMembers: only the members of order entry are compared with each other. A message may have thousands of others, and it is
// read before it counts towards a limit.
func TestRepeatedMembers(t *testing.T) {
	for text, again := range map[string]string{
		`{"op":1,"id":2,"op":3,"data":{"id":4},"data":5,"id":6}`: "op data id",
		`{"x":1,"x":2,"id":3,"x":4}`:                             "",
		`{"\u006fp":1,"op":2}`:                                   "op",
	} {
		var got []string
		cut := cutter{raw: []byte(text), enter: "data"}
		for cut.next() {
			if cut.again {
				got = append(got, string(cut.name))
			}
		}
		cut.done()
		if names := strings.Join(got, " "); names != again || cut.err != nil {
			t.Errorf("%s: %q are repeated, want %q; %v", text, names, again, cut.err)
		}
	}
}
