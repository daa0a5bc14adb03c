package onboarding_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/document/format/formattest"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// TestListsOfAFollower: a node that follows a venue has no keys of owners. It answers 404 for a person or a document, and lists count none.
func TestListsOfAFollower(t *testing.T) {
	h := newHouse(t)
	person := h.person("p-1")
	document := person + "/documents/" + h.send("broker-a", person, "a.pdf", formattest.PDF()).Want(201).Text("id")
	h.Onboarding.Drain()
	lists := map[string]string{
		"/persons": api + "/persons", "a later page": api + "/persons?page=2&size=1", "of operators": admin + "/persons",
		"documents": person + "/documents", "as of a record": api + "/persons?as_of=" + h.Send("broker-a", "GET", person, "").Header.Get("X-Log-Position"),
	}
	users := map[string]string{"of operators": "operator"}
	total := func(want string) {
		t.Helper()
		for name, path := range lists {
			user := "broker-a"
			if other := users[name]; other != "" {
				user = other
			}
			if r := h.Send(user, "GET", path, "").Want(200); !strings.Contains(r.Body, `"total":`+want+",") {
				t.Errorf("%s: %s, want a total of %s", name, r.Body, want)
			}
		}
	}
	total("1")
	other, err := seal.New(bytes.Repeat([]byte{1}, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	*h.Box = *other.Foreign()
	if err := h.Owners.Discard(t.Context(), h.refOf(person).String()); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{person, document} {
		h.Send("broker-a", "GET", path, "").Want(404)
	}
	total("0")
	if r := h.Send("operator", "GET", strings.Replace(lists["as of a record"], api, admin, 1), "").Want(200); !strings.Contains(r.Body, `"total":1,`) || !strings.Contains(r.Body, `"erased":true`) {
		t.Errorf("as of a record, for operators: %s", r.Body)
	}
}
