// Package disclosetest checks disclosure units against the record that they were split from. It reads JSON in the ordinary
// way and knows nothing of the schemas.
package disclosetest

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/disclose"
)

// Hash is the keyed hash that Check splits with.
func Hash(value []byte) (sum [32]byte) {
	h := hmac.New(sha256.New, []byte("a key for tests"))
	h.Write(value)
	h.Sum(sum[:0])
	return sum
}

type object = map[string]any

// Check splits the value of a record, and fails unless each member of the record but prev is in exactly one unit besides
// the first, each unit is in its form, the units are in their order, and no party's units hold what is another's.
func Check(t testing.TB, s *disclose.Splitter, value []byte) []disclose.Unit {
	t.Helper()
	units, err := s.Split(value, Hash)
	if err != nil {
		t.Fatalf("%v\n%s", err, value)
	}
	record := decode(t, value)
	if !bytes.Equal(units[0].Bytes, value) || units[0].Class != disclose.Venue || units[0].Event != disclose.NoEvent {
		t.Fatalf("the first unit of %s is %s", value, units[0].Bytes)
	}
	want := fmt.Sprintf(`{"class":"public","sequence":%v,"time":%q,"command":{"type":%q},"outcome":%q}`,
		record["sequence"], record["time"], record["command"].(object)["type"], record["outcome"])
	if string(units[1].Bytes) != want {
		t.Errorf("the second unit is %s, not %s", units[1].Bytes, want)
	}
	events := record["events"].([]any)
	delete(record, "events")
	delete(record, "prev")
	left := make(map[string]int) // how often each member is still to be found
	flatten(left, "", record, 1)
	for i, e := range events {
		flatten(left, fmt.Sprint(i), e.(object)["data"], 1)
	}
	last := ""
	for _, u := range units[1:] {
		last = ordered(t, u, last)
		part := shown(t, u, events)
		flatten(left, eventIndex(u.Event), part, -1)
		if u.Class != disclose.Venue {
			apart(t, u, part, record, events)
		}
	}
	for at, n := range left {
		if n != 0 {
			t.Errorf("the units lack %s %d times in\n%s", at, n, value)
		}
	}
	return units
}

func eventIndex(event int) string {
	if event == disclose.NoEvent {
		return ""
	}
	return fmt.Sprint(event)
}

// ordered checks that a unit comes after the last one.
func ordered(t testing.TB, u disclose.Unit, last string) string {
	t.Helper()
	at := fmt.Sprintf("%06d %d", u.Event+1, u.Class)
	if at < last || at == last && u.Owner == nil {
		t.Errorf("the unit %s is out of order", u.Bytes)
	}
	return at
}

// shown returns what a unit shows of the record or of the event, after checking the rest of the unit.
func shown(t testing.TB, u disclose.Unit, events []any) any {
	t.Helper()
	var compact bytes.Buffer
	if err := json.Compact(&compact, u.Bytes); err != nil || !bytes.Equal(compact.Bytes(), u.Bytes) {
		t.Fatalf("the unit %s is not compact: %v", u.Bytes, err)
	}
	got := decode(t, u.Bytes)
	if owner, ok := got["owner"].(string); got["class"] != u.Class.String() || ok != (u.Owner != nil) || owner != string(u.Owner) || ok == (u.Class == disclose.Public || u.Class == disclose.Venue) {
		t.Errorf("the class or the owner of %s are not %v and %q", u.Bytes, u.Class, u.Owner)
	}
	delete(got, "class")
	delete(got, "owner")
	if u.Event == disclose.NoEvent {
		return got
	}
	e := events[u.Event].(object)
	if fmt.Sprint(got["event"], got["type"], got["version"]) != fmt.Sprint(u.Event, e["type"], e["version"]) || len(got) != 4 {
		t.Errorf("the unit %s is not of the event %v", u.Bytes, e)
	}
	return got["data"]
}

// flatten counts the scalars of a value and its empty objects and lists, by path. Elements of a list have the same path. It counts
// a scalar and its keyed hash as the same.
func flatten(to map[string]int, at string, v any, by int) {
	switch v := v.(type) {
	case object:
		if len(v) == 0 {
			to[at+"/{}"] += by
		}
		for name, inner := range v {
			flatten(to, at+"/"+name, inner, by)
		}
	case []any:
		if len(v) == 0 {
			to[at+"/[]"] += by
		}
		for _, inner := range v {
			flatten(to, at+"/", inner, by)
		}
	default:
		text, _ := json.Marshal(v)
		// The hash of a position is that of a record. The others are of secrets.
		for _, hashed := range []string{"/command/data/fingerprint", "/hash"} {
			if strings.HasSuffix(at, hashed) && !strings.HasSuffix(at, "/position/hash") {
				if by < 0 {
					to[at+"="+strings.Trim(string(text), `"`)] += by
				} else {
					sum := Hash(text)
					to[at+"="+hex.EncodeToString(sum[:])] += by
				}
				return
			}
		}
		to[at+"="+string(text)] += by
	}
}

// private lists the members that only their party may know.
var private = []string{"code", "customer_code", "order_code", "reference_id", "fee", "balance", "cost", "entry_price", "amount",
	"owner_id", "username", "id", "broker", "tenant", "name", "fields", "external_id", "key", "fingerprint", "sub", "customer", "command_id"}

// apart fails if a party's unit holds a private member of another party, or a public one that of any.
func apart(t testing.TB, u disclose.Unit, part any, record object, events []any) {
	t.Helper()
	unitOwner := string(u.Owner)
	of := make(map[string][]string) // the private values of each party
	if u.Event == disclose.NoEvent {
		gather(of, "", record)
	} else {
		gather(of, "", events[u.Event].(object)["data"])
	}
	has := make(map[string][]string)
	gather(has, unitOwner, part)
	for _, values := range has {
		for _, v := range values {
			for party, theirs := range of {
				if party != unitOwner && party != "" && slices.Contains(theirs, v) && !slices.Contains(of[unitOwner], v) && !slices.Contains(of[""], v) {
					t.Errorf("the unit %s holds %q, which is of %s", u.Bytes, v, party)
				}
			}
		}
	}
}

// gather collects the private values of a value's parties. party is that of the enclosing object.
func gather(to map[string][]string, party string, v any) {
	switch v := v.(type) {
	case object:
		party = partyOf(v, party)
		for name, inner := range v {
			if text, is := inner.(string); is && slices.Contains(private, name) {
				to[party] = append(to[party], text)
			}
			gather(to, party, inner)
		}
	case []any:
		for _, inner := range v {
			gather(to, party, inner)
		}
	}
}

// partyOf returns the party that an object belongs to.
func partyOf(o object, otherwise string) string {
	text := func(name string) string { s, _ := o[name].(string); return s }
	actor, _ := o["actor"].(object)
	_, posting := o["account"]
	switch {
	case posting:
		return "venue"
	case text("owner_id") != "" && text("tenant") == "" || text("external_id") != "" || text("pending_questionnaire_ids") != "":
		return text("owner_type") + "/" + text("owner_id")
	case text("username") != "" && text("session") == "":
		return "user/" + text("username")
	case text("customer_code") != "":
		return "customer/" + text("customer_code")
	case actor["customer"] != nil:
		return "customer/" + actor["customer"].(string)
	case actor["broker"] != nil:
		return "broker/" + actor["broker"].(string)
	}
	return otherwise
}

func decode(t testing.TB, text []byte) object {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v object
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return v
}
