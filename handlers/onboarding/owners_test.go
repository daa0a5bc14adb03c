package onboarding_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	domain "github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/trading/tradingtest"
	"github.com/perpetua-exchange/perpetua/streams/seal"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

const anna = `{"external_id":"p-1","first_name":"Anna","last_name":"Øst","nationality":"DEU","birth_date":"1990-02-28","email":"anna@example.org",` +
	`"phone":"+4915112345678","tax_identification_number":"12 345","tax_country":"AUT","address":{"street":"Long Lane","house_number":"1a",` +
	`"postal_code":"10115","city":"Berlin","region":"Berlin","country":"DEU"}}`

// shownAnna is what anna is shown as, between its id and its times.
const shownAnna = `"external_id":"p-1","first_name":"Anna","last_name":"Øst","nationality":"DEU","birth_date":"1990-02-28","email":"anna@example.org",` +
	`"phone":"+4915112345678","tax_identification_number":"12 345","tax_country":"AUT","address":{"street":"Long Lane","house_number":"1a",` +
	`"postal_code":"10115","city":"Berlin","region":"Berlin","country":"DEU"},"state":"active","created_at":"2026-03-31T08:00:00.000000Z",` +
	`"updated_at":"2026-03-31T08:00:00.000000Z"}`

// TestPersons: a person is shown as it was told, null for what was not; no part of it stands in the log, save under its own key.
func TestPersons(t *testing.T) {
	h := newHouse(t)
	made := h.Send("broker-a", "POST", api+"/persons", anna).Want(201)
	id := made.Text("id")
	path := api + "/persons/" + id
	if want := `{"id":"` + id + `",` + shownAnna; made.Body != want {
		t.Errorf("got  %s\nwant %s", made.Body, want)
	}
	if got := h.Send("broker-a", "GET", path, "").Want(200); got.Body != made.Body {
		t.Errorf("read again %s, made %s", got.Body, made.Body)
	}
	least := h.Send("broker-a", "POST", api+"/persons", `{"external_id":"p-2","first_name":"B","last_name":"C","email":null,"address":null}`).Want(201)
	if want := `{"id":"` + least.Text("id") + `","external_id":"p-2","first_name":"B","last_name":"C","nationality":null,"birth_date":null,"email":null,"phone":null,` +
		`"tax_identification_number":null,"tax_country":null,"address":null,"state":"active","created_at":"2026-03-31T08:00:00.000000Z","updated_at":"2026-03-31T08:00:00.000000Z"}`; least.Body != want {
		t.Errorf("got  %s\nwant %s", least.Body, want)
	}
	for _, e := range h.Onboarding.Entries() {
		for _, secret := range []string{"p-1", "Anna", "Øst", "1990", "example.org", "4915112345678", "12 345", "Long Lane", "10115"} {
			if strings.Contains(string(e.Value), secret) {
				t.Errorf("record %d holds %s: %s", e.Record.Sequence, secret, e.Value)
			}
		}
	}
}

func TestCorporates(t *testing.T) {
	h := newHouse(t)
	made := h.Send("broker-a", "POST", api+"/corporates", `{"external_id":"c-1","legal_name":"Acme","legal_form":"GmbH","registration_number":"HRB 1","incorporation_country":"DEU","address":{"country":"AUT"}}`).Want(201)
	id := made.Text("id")
	if want := `{"id":"` + id + `","external_id":"c-1","legal_name":"Acme","legal_form":"GmbH","registration_number":"HRB 1","incorporation_country":"DEU",` +
		`"address":{"street":null,"house_number":null,"postal_code":null,"city":null,"region":null,"country":"AUT"},"state":"active",` +
		`"created_at":"2026-03-31T08:00:00.000000Z","updated_at":"2026-03-31T08:00:00.000000Z"}`; made.Body != want {
		t.Errorf("got  %s\nwant %s", made.Body, want)
	}
	path := api + "/corporates/" + id
	want(t, h.Send("broker-a", "PATCH", path, `{"legal_name":"Acme Holding","registration_number":"","address":{"city":"Graz"}}`).Want(200),
		"legal_name", "Acme Holding", "registration_number", "", "legal_form", "GmbH",
		"address", `{"city":"Graz","country":"AUT","house_number":null,"postal_code":null,"region":null,"street":null}`)
	want(t, h.Send("broker-a", "GET", path, "").Want(200), "legal_name", "Acme Holding", "external_id", "c-1")
	h.Send("broker-a", "GET", api+"/persons/"+id, "").Detail(404, "PERSON_NOT_FOUND")
}

// TestChangingAPerson: what is absent or null stays, what is empty is taken back, and what is required can't be.
func TestChangingAPerson(t *testing.T) {
	h := newHouse(t)
	path := api + "/persons/" + h.make("broker-a", api+"/persons", anna)
	h.Advance(1_000_000)
	changed := h.Send("broker-a", "PATCH", path, `{"first_name":"Ann","email":"","phone":null,"address":{"city":"Potsdam","region":"","street":null}}`).Want(200)
	want(t, changed, "first_name", "Ann", "last_name", "Øst", "email", "", "phone", "+4915112345678", "created_at", "2026-03-31T08:00:00.000000Z", "updated_at", "2026-03-31T08:00:01.000000Z",
		"address", `{"city":"Potsdam","country":"DEU","house_number":"1a","postal_code":"10115","region":null,"street":"Long Lane"}`)
	if got := h.Send("broker-a", "GET", path, "").Want(200); got.Body != changed.Body {
		t.Errorf("read again %s, changed %s", got.Body, changed.Body)
	}
	want(t, h.Send("broker-a", "PATCH", path, `{}`).Want(200), "first_name", "Ann")
	same(t, "taken back", h.Send("broker-a", "PATCH", path, `{"first_name":"","external_id":" ","nationality":"de"}`).Details(),
		[]string{"missing body.external_id", "missing body.first_name", "value_error body.nationality"})
	other := h.make("broker-a", api+"/persons", strings.Replace(anna, "p-1", "p-2", 1))
	h.Send("broker-a", "PATCH", api+"/persons/"+other, `{"external_id":"p-1"}`).Detail(409, "EXTERNAL_ID_TAKEN")
	h.Send("broker-a", "PATCH", path, `{"external_id":"p-9"}`).Want(200)
	want(t, h.Send("broker-a", "PATCH", api+"/persons/"+other, `{"external_id":"p-1"}`).Want(200), "external_id", "p-1")
}

// TestBlanks: a text without a visible character is an error of the request that has it. A stored one is none of a change
// of something else.
func TestBlanks(t *testing.T) {
	h := newHouse(t)
	same(t, "a person", h.Send("broker-a", "POST", api+"/persons", `{"external_id":"\u2800","first_name":"\u200b\u2060","last_name":" ","email":" ",`+
		`"tax_identification_number":"\u00a0","address":{"city":" ","region":"\u3164","street":"x"}}`).Details(),
		[]string{"missing body.last_name", "value_error body.email", "value_error body.external_id", "value_error body.first_name",
			"value_error body.tax_identification_number", "value_error body.address.city", "value_error body.address.region"})
	same(t, "a corporate", h.Send("broker-a", "POST", api+"/corporates", `{"external_id":"c","legal_name":"A","legal_form":" ","registration_number":"\ufeff"}`).Details(),
		[]string{"value_error body.legal_form", "value_error body.registration_number"})
	path := api + "/persons/" + h.make("broker-a", api+"/persons", strings.NewReplacer("Anna", "A\u200d", "12 345", " 1 ").Replace(anna))
	same(t, "a change", h.Send("broker-a", "PATCH", path, `{"tax_identification_number":" "}`).Details(), []string{"value_error body.tax_identification_number"})
	h.Send("broker-a", "PATCH", path, `{"tax_identification_number":""}`).Want(200)
}

// TestChangingAMalformedID: the error of the path comes with those of the body, and with no others.
func TestChangingAMalformedID(t *testing.T) {
	h := newHouse(t)
	for _, tt := range []struct {
		path, body string
		want       []string
	}{
		{"/persons/x", `{}`, []string{"uuid_parsing path.person_id"}},
		{"/persons/x", `{"first_name":"Anna","address":{"city":"Berlin"}}`, []string{"uuid_parsing path.person_id"}},
		{"/persons/x", `{"last_name":null}`, []string{"uuid_parsing path.person_id"}},
		{"/persons/x", `{"first_name":"","nationality":"de","address":{"zip":1},"x":1}`,
			[]string{"uuid_parsing path.person_id", "missing body.first_name", "value_error body.nationality", "extra_forbidden body.address.zip", "extra_forbidden body.x"}},
		{"/corporates/x", `{"legal_form":"GmbH","first_name":"Anna"}`, []string{"uuid_parsing path.corporate_id", "extra_forbidden body.first_name"}},
	} {
		got := h.Send("broker-a", "PATCH", api+tt.path, tt.body).Details()
		slices.Sort(got)
		slices.Sort(tt.want)
		same(t, tt.path+" "+tt.body, got, tt.want)
	}
}

// TestExternalIDs are unique within a tenant and a type of owner.
func TestExternalIDs(t *testing.T) {
	h := newHouse(t)
	h.make("broker-a", api+"/persons", anna)
	h.Send("broker-a", "POST", api+"/persons", anna).Detail(409, "EXTERNAL_ID_TAKEN")
	h.Send("broker-b", "POST", api+"/persons", anna).Want(201)
	h.Send("broker-a", "POST", api+"/corporates", `{"external_id":"p-1","legal_name":"Acme"}`).Want(201)
}

// TestFaultsOfOwners: every fault of a body is told at once, in its place.
func TestFaultsOfOwners(t *testing.T) {
	h := newHouse(t)
	before := h.Onboarding.Tip()
	for _, tt := range []struct {
		path, body string
		want       []string
	}{
		{"/persons", `{}`, []string{"missing body.external_id", "missing body.first_name", "missing body.last_name"}},
		{"/persons", `{"external_id":null,"first_name":"  ","last_name":""}`, []string{"missing body.external_id", "missing body.first_name", "missing body.last_name"}},
		{"/persons", `{"external_id":1,"first_name":["a"],"last_name":{}}`, []string{"string_type body.external_id", "string_type body.first_name", "string_type body.last_name"}},
		{"/persons", `{"external_id":"1","first_name":"a\u0000","last_name":"` + strings.Repeat("é", 256) + `"}`, []string{"value_error body.first_name", "string_too_long body.last_name"}},
		{"/persons", `{"external_id":"1","first_name":"\ud800","last_name":"b\udc00"}`, []string{"string_unicode body.first_name", "string_unicode body.last_name"}},
		{"/persons", "{\"external_id\":\"1\",\"first_name\":\"a\xff\",\"last_name\":\"b\"}", []string{"string_unicode body.first_name"}},
		{"/persons", `{"external_id":"1","first_name":"a","last_name":"b","nationality":"DE","birth_date":"2999-01-01","email":"a","phone":"1","tax_country":"XXX","address":{"country":"de","city":5,"zip":1},"x":1}`,
			[]string{"string_type body.address.city", "value_error body.nationality", "value_error body.birth_date", "value_error body.email", "value_error body.phone",
				"value_error body.tax_country", "value_error body.address.country", "extra_forbidden body.x", "extra_forbidden body.address.zip"}},
		{"/persons", `{"external_id":"1","first_name":"a","last_name":"b","birth_date":"2026-04-01"}`, []string{"value_error body.birth_date"}}, // tomorrow
		{"/persons", `{"external_id":"1","first_name":"a","last_name":"b","address":"Berlin"}`, []string{"model_attributes_type body.address"}},
		{"/persons", `{"external_id":"1","first_name":"a","first_name":"c","last_name":"b"}`, []string{"value_error body.first_name"}},
		{"/persons", `[]`, []string{"model_attributes_type body"}},
		{"/persons", `{"external_id":"1",`, []string{"json_invalid body.19"}},
		{"/persons?a=1", `{"first_name":"a","last_name":"b"}`, []string{"extra_forbidden query.a", "missing body.external_id"}},
		{"/corporates", `{"legal_form":"x","first_name":"y"}`, []string{"missing body.external_id", "missing body.legal_name", "extra_forbidden body.first_name"}},
		{"/corporates", `{"external_id":"1","legal_name":"a\nb","incorporation_country":"EUR"}`, []string{"value_error body.legal_name", "value_error body.incorporation_country"}},
	} {
		got := h.Send("broker-a", "POST", api+tt.path, tt.body).Details()
		slices.Sort(got)
		slices.Sort(tt.want)
		same(t, tt.path+" "+tt.body, got, tt.want)
	}
	h.Send("broker-a", "POST", api+"/persons", anna, "Content-Type", "text/plain").Detail(415, "UNSUPPORTED_MEDIA_TYPE")
	h.Send("broker-a", "POST", api+"/persons", `{"first_name":"`+strings.Repeat("x", 1<<20)+`"}`).Detail(413, "BODY_TOO_LARGE")
	same(t, "a bad key", h.Send("broker-a", "POST", api+"/persons", `{}`, "Idempotency-Key", "a b").Details(),
		[]string{"value_error header.Idempotency-Key", "missing body.external_id", "missing body.first_name", "missing body.last_name"})
	if h.Onboarding.Tip() != before {
		t.Error("something was changed")
	}
}

// TestARequestIsRepeated: the first answer comes again for 24 hours, whatever happened since, and another body with the key is
// refused. What the log keeps of the request tells nothing of it.
func TestARequestIsRepeated(t *testing.T) {
	h := newHouse(t)
	first := h.Send("broker-a", "POST", api+"/persons", anna, "Idempotency-Key", "k").Want(201)
	path := api + "/persons/" + first.Text("id")
	changed := h.Send("broker-a", "PATCH", path, `{"first_name":"Ann"}`, "Idempotency-Key", "k").Want(200)
	h.Send("broker-a", "PATCH", path, `{"first_name":"Bea"}`).Want(200)
	tip := h.Onboarding.Tip()
	if again := h.Send("broker-a", "POST", api+"/persons", anna, "Idempotency-Key", "k").Want(201); again.Body != first.Body {
		t.Errorf("again %s, first %s", again.Body, first.Body)
	}
	if again := h.Send("broker-a", "PATCH", path, `{"first_name":"Ann"}`, "Idempotency-Key", "k").Want(200); again.Body != changed.Body {
		t.Errorf("again %s, first %s", again.Body, changed.Body)
	}
	h.Send("broker-a", "POST", api+"/persons", strings.Replace(anna, "Anna", "Bob", 1), "Idempotency-Key", "k").Detail(422, "IDEMPOTENCY_KEY_REUSED")
	h.Send("broker-a", "PATCH", path, `{"first_name":"Cee"}`, "Idempotency-Key", "k").Detail(422, "IDEMPOTENCY_KEY_REUSED")
	if h.Onboarding.Tip() != tip {
		t.Error("a repeated request has left a record")
	}
	// Another tenant's key and body are the same, its fingerprint is not.
	h.Send("broker-b", "POST", api+"/persons", anna, "Idempotency-Key", "k").Want(201)
	prints := map[string]bool{}
	for _, e := range h.Onboarding.Entries() {
		if f := e.Record.Command.Metadata.Fingerprint; f != "" {
			prints[f] = true
		}
	}
	if len(prints) != 3 {
		t.Errorf("%d fingerprints", len(prints))
	}
	h.Advance(24 * 3600 * 1_000_000)
	h.Send("broker-a", "POST", api+"/persons", anna, "Idempotency-Key", "k").Detail(409, "EXTERNAL_ID_TAKEN")
}

// TestChangesAtOnce: each is made, whichever comes first, and none undoes another.
func TestChangesAtOnce(t *testing.T) {
	h := newHouse(t)
	path := h.person("p-1")
	var wait sync.WaitGroup
	for i, body := range []string{`{"first_name":"Ann"}`, `{"email":"a@example.org"}`, `{"phone":"+491"}`} {
		wait.Go(func() {
			if got := h.Send("broker-a", "PATCH", path, body); got.Status != http.StatusOK {
				t.Errorf("change %d: %d %s", i, got.Status, got.Body)
			}
		})
	}
	wait.Wait()
	want(t, h.Send("broker-a", "GET", path, "").Want(200), "first_name", "Ann", "email", "a@example.org", "phone", "+491")
}

// outrun makes others change the owner at path n times, each time shortly before another change is decided.
func (h *house) outrun(path string, n int, meanwhile func()) (left *int) {
	left, inside := &n, false
	h.Fail(func(c decide.Command) error {
		if c.Type != domain.CommandChangeOwner || *left == 0 || inside {
			return nil
		}
		*left--
		inside = true
		h.Send("broker-a", "PATCH", path, fmt.Sprintf(`{"last_name":"Name %d"}`, *left)).Want(200)
		inside = false
		meanwhile()
		return nil
	})
	return left
}

// TestAChangeIsMadeAnew from the fields as they are by then, if somebody else is faster. It ends.
func TestAChangeIsMadeAnew(t *testing.T) {
	h := newHouse(t)
	path := h.person("p-1")
	h.outrun(path, 20, func() {})
	want(t, h.Send("broker-a", "PATCH", path, `{"first_name":"Ann"}`).Want(200), "first_name", "Ann", "last_name", "Name 0")
	left := h.outrun(path, 100, func() {})
	h.Send("broker-a", "PATCH", path, `{"first_name":"Bea"}`).Detail(409, "OWNER_CHANGED")
	if *left != 68 {
		t.Errorf("%d tries", 100-*left)
	}
	left = h.outrun(path, 100, func() { h.Advance(4 * scalar.Second) })
	h.Send("broker-a", "PATCH", path, `{"first_name":"Bea"}`).Detail(409, "OWNER_CHANGED")
	if *left != 97 {
		t.Errorf("%d tries in 12 seconds", 100-*left)
	}
	h.Fail(func(decide.Command) error { return errors.New("boom") })
	h.Send("broker-a", "PATCH", path, `{"first_name":"Bea"}`).Detail(500, "Internal Server Error")
}

// TestAChangeOfOldRows: a revision that was refused is not sent again.
func TestAChangeOfOldRows(t *testing.T) {
	h := newHouse(t)
	path := h.person("p-1")
	sent := 0
	h.Fail(func(decide.Command) error {
		sent++
		return &submit.RefusedError{Refusal: &decide.Refusal{Kind: decide.Conflict, Code: domain.CodeOwnerChanged}, AsOf: h.Onboarding.Tip()}
	})
	h.Send("broker-a", "PATCH", path, `{"first_name":"Ann"}`).Detail(503, "NOT_ACCEPTED")
	if sent != 1 {
		t.Errorf("%d commands", sent)
	}
}

// TestListsOfOwners: newest first, by pages, with all five fields; past the end there is nothing.
func TestListsOfOwners(t *testing.T) {
	h := newHouse(t)
	var all []string
	for i := range 3 {
		path := h.person(fmt.Sprint("p-", i))
		all = append([]string{strings.TrimPrefix(path, api+"/persons/")}, all...)
	}
	h.corporate("c-1")
	h.Send("broker-b", "POST", api+"/persons", anna).Want(201)
	page := h.Send("broker-a", "GET", api+"/persons", "").Want(200)
	want(t, page, "total", "3", "page", "1", "size", "50", "pages", "1")
	same(t, "all", ids(page.Items()), all)
	page = h.Send("broker-a", "GET", api+"/persons?page=2&size=2", "").Want(200)
	want(t, page, "total", "3", "page", "2", "size", "2", "pages", "2")
	same(t, "the second page", ids(page.Items()), all[2:])
	page = h.Send("broker-a", "GET", api+"/persons?page=9", "").Want(200)
	want(t, page, "total", "3", "page", "9", "items", "[]")
	want(t, h.Send("broker-a", "GET", api+"/corporates?size=100", "").Want(200), "total", "1", "size", "100")
	want(t, h.Send("auditor", "GET", api+"/persons", "").Want(200), "total", "4")
	same(t, "faults", h.Send("broker-a", "GET", api+"/persons?size=101&page=0&after=x", "").Details(),
		[]string{"greater_than_equal query.page", "less_than_equal query.size", "extra_forbidden query.after"})
}

// TestNoKeyIsLeftWithoutAnOwner: whoever asks for an owner and does not get one, however often, leaves nothing in the key store. A
// key stays only while a record may yet need it.
func TestNoKeyIsLeftWithoutAnOwner(t *testing.T) {
	h := newHouse(t)
	var named []owner.Ref // that keys were made for
	var fault error
	h.Fail(func(c decide.Command) error {
		if p, ok := c.Payload.(*domain.RegisterOwner); ok {
			named = append(named, p.Ref)
			if _, err := h.Owners.KeyID(t.Context(), p.Ref.String()); err != nil {
				t.Errorf("there is no key before the command: %v", err)
			}
			return fault
		}
		return nil
	})
	register := func(headers ...string) *tradingtest.Reply {
		return h.Send("broker-a", "POST", api+"/persons", anna, headers...)
	}
	first := register("Idempotency-Key", "k").Want(201)
	kept := h.refOf(api + "/persons/" + first.Text("id"))
	for range 3 {
		register().Detail(409, "EXTERNAL_ID_TAKEN")
		if again := register("Idempotency-Key", "k").Want(201); again.Body != first.Body {
			t.Errorf("again %s", again.Body)
		}
	}
	register("Idempotency-Key", "bad key").Details()
	gone, leave := context.WithCancel(t.Context())
	leave()
	r := httptest.NewRequestWithContext(gone, "POST", api+"/persons", strings.NewReader(anna))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+h.Token("broker-a"))
	h.Server.ServeHTTP(httptest.NewRecorder(), r)
	fault = &submit.NotAcceptedError{}
	register().Detail(503, "NOT_ACCEPTED")
	if len(named) != 9 {
		t.Errorf("%d commands were given", len(named))
	}
	for _, ref := range named {
		if _, err := h.Owners.KeyID(t.Context(), ref.String()); (err == nil) != (ref == kept) || err != nil && !errors.Is(err, seal.ErrMissing) {
			t.Errorf("%s: %v", ref, err)
		}
	}
	fault = &submit.OutcomeUnknownError{}
	register().Want(503)
	if _, err := h.Owners.KeyID(t.Context(), named[len(named)-1].String()); err != nil {
		t.Errorf("after %T: %v", fault, err)
	}
}
