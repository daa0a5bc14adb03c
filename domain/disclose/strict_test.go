package disclose_test

import (
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/disclose/disclosetest"
	"github.com/perpetua-exchange/perpetua/schemas"
)

const (
	wholeActor = `{"sub":"desk","broker":"alpha","customer":"C1","system":"engine"}`
	wholeData  = `{"key":"k","fingerprint":"00ff","session":"b1000000-0000-0000-0000-000000000000","source":{"journal":"onboarding","sequence":9},"input":{"a":[1,{"b":null}],"c":{}}}`
)

// places returns where each of the bytes in one of occurs outside of strings.
func places(text string, of string) (out []int) {
	for i := 0; i < len(text); i++ {
		if text[i] == '"' {
			for i++; text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		} else if strings.IndexByte(of, text[i]) >= 0 {
			out = append(out, i)
		}
	}
	return out
}

// everything returns events of a journal that have every member in its schemas.
func everything(t testing.TB, journal string) map[string]string {
	out := disclosetest.Full(t, schemas.Events(), journal, false)
	for name, event := range disclosetest.Full(t, schemas.Events(), journal, true) {
		if event != out[name] {
			out[name+", second alternative"] = event
		}
	}
	return out
}

// TestEveryMember splits records with every member of every schema. No object in them takes one more member, or one that is
// there already.
func TestEveryMember(t *testing.T) {
	objects := 0
	for _, journal := range []string{"trading", "onboarding", "identity"} {
		s := splitter(t, journal)
		for name, event := range everything(t, journal) {
			value := string(record(wholeActor, wholeData, event))
			disclosetest.Check(t, s, []byte(value))
			from, to := strings.Index(value, `"input":`), strings.Index(value, `,"outcome"`)
			for _, at := range places(value, "{") {
				if at > from && at < to {
					continue
				}
				rest := value[at+1:]
				for _, more := range []string{`"internal_note":"x"`, `"counterparty":{}`, rest[:strings.IndexByte(rest, ':')] + ":1"} {
					more = value[:at+1] + more + "," + rest
					if _, err := s.Split([]byte(more), disclosetest.Hash); err == nil {
						t.Errorf("%s with one more member is split: %s", name, more)
					}
				}
				objects++
			}
		}
	}
	if objects < 500 {
		t.Errorf("only %d objects were tried", objects)
	}
}

// TestEveryByte: a record in which a byte between strings is another one, or is not there, is not split.
func TestEveryByte(t *testing.T) {
	others := []string{"", "{", "}", "[", "]", ":", ",", "x", " ", `"`, "7"}
	for _, journal := range []string{"trading", "onboarding", "identity"} {
		s := splitter(t, journal)
		for name, event := range disclosetest.Full(t, schemas.Events(), journal, false) {
			value := string(record(wholeActor, wholeData, event))
			for _, at := range places(value, "{}[]:,") {
				for i := range 3 {
					other := others[(at+i)%len(others)]
					if other == value[at:at+1] {
						continue
					}
					changed := value[:at] + other + value[at+1:]
					if units, err := s.Split([]byte(changed), disclosetest.Hash); err == nil {
						t.Errorf("%s is split into %d units: %s", name, len(units), changed)
					}
				}
			}
		}
	}
}

// TestFormsThatAreRefused: a value that is not in the form of its schema is refused and not left out.
func TestFormsThatAreRefused(t *testing.T) {
	s := splitter(t, "trading")
	for name, event := range map[string]string{
		"a cut object":          event("trade.executed", 1, `{"code":"T"x"taker":{"customer_code":"bob"}}`),
		"a number for data":     event("trade.executed", 1, `7`),
		"a list for data":       event("trade.executed", 1, `[]`),
		"an object for a list":  event("trade.executed", 1, `{"positions":{"customer_code":"bob"}}`),
		"a string for a list":   event("trade.executed", 1, `{"positions":"none"}`),
		"a list for an object":  event("trade.executed", 1, `{"taker":[]}`),
		"an object for a value": event("trade.executed", 1, `{"code":{}}`),
		"a list for a value":    event("trade.executed", 1, `{"code":["T"]}`),
		"no value":              event("trade.executed", 1, `{"code":}`),
		"a comma at the end":    event("trade.executed", 1, `{"code":"T",}`),
		"two commas":            event("trade.executed", 1, `{"code":"T",,"symbol":"S"}`),
		"an escaped name":       event("trade.executed", 1, `{"c\u006fde":"T"}`),
	} {
		if units, err := s.Split(record(wholeActor, wholeData, event), disclosetest.Hash); err == nil {
			t.Errorf("%s: %s", name, units[len(units)-1].Bytes)
		}
	}
}

// TestWhereAnErrorIs: an error names the event, or the members around the events also after a record that failed in an event.
func TestWhereAnErrorIs(t *testing.T) {
	s := splitter(t, "trading")
	_, err := s.Split(record(wholeActor, wholeData, event("order.opened", 1, `{"more":1}`)), disclosetest.Hash)
	if err == nil || !strings.Contains(err.Error(), "order.opened.v1") || !strings.Contains(err.Error(), `"more"`) {
		t.Errorf("%v", err)
	}
	_, err = s.Split(record(wholeActor, `{"more":1}`, event("order.opened", 1, `{}`)), disclosetest.Hash)
	if err == nil || strings.Contains(err.Error(), "order.opened") || !strings.Contains(err.Error(), "around the events") {
		t.Errorf("%v", err)
	}
}

// TestEmptyValues: an empty object or list without a class of its own goes to the party that owns the enclosing object.
func TestEmptyValues(t *testing.T) {
	s := splitter(t, "trading")
	for text, want := range map[string]string{
		event("order.opened", 1, `{}`):                                        `{"class":"venue","event":0,"type":"order.opened","version":1,"data":{}}`,
		event("instrument.listed", 1, `{}`):                                   `{"class":"venue","event":0,"type":"instrument.listed","version":1,"data":{}}`,
		event("funding.posted", 1, `{"customer_code":"bob","postings":[]}`):   `{"class":"customer","owner":"customer/bob","event":0,"type":"funding.posted","version":1,"data":{"customer_code":"bob","postings":[]}}`,
		event("funding.posted", 1, `{"customer_code":"bob","postings":[{}]}`): `{"class":"venue","event":0,"type":"funding.posted","version":1,"data":{"postings":[{}]}}`,
		event("trade.executed", 1, `{"taker":{}}`):                            `{"class":"venue","event":0,"type":"trade.executed","version":1,"data":{"taker":{}}}`,
	} {
		units := disclosetest.Check(t, s, record(wholeActor, wholeData, text))
		if got := string(units[len(units)-1].Bytes); got != want {
			t.Errorf("%s goes to %s", text, got)
		}
	}
}

// TestACustomerOnBothSides: the unit of a customer that traded with itself has both sides, and the class of the second.
func TestACustomerOnBothSides(t *testing.T) {
	s := splitter(t, "trading")
	units := disclosetest.Check(t, s, record(wholeActor, wholeData, event("trade.executed", 1, `{"taker":{"customer_code":"bob","fee":"1"},"maker":{"customer_code":"bob","fee":"2"}}`)))
	want := `{"class":"maker","owner":"customer/bob","event":0,"type":"trade.executed","version":1,"data":{"taker":{"customer_code":"bob","fee":"1"},"maker":{"customer_code":"bob","fee":"2"}}}`
	if got := string(units[len(units)-1].Bytes); got != want {
		t.Errorf("the unit is %s", got)
	}
}
