package rest

import (
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/web/access"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
)

// TestNothingIsLeftOfARequest has requests leave behind whatever a handler may note, whether they end well, with an
// error or with a panic, and looks what the next one finds.
func TestNothingIsLeftOfARequest(t *testing.T) {
	var found []operation.Scope
	e := serve(t, Options{}, func(c echo.Context) error {
		a := RequestOf(c)
		before := *a.Scope
		before.ID = ""
		found = append(found, before)
		a.Admission.Principal, a.Traced.Command = &access.Principal{Username: "u"}, operation.NewID()
		if _, err := a.BareCommand(named("thing.make")); err != nil {
			return err
		}
		a.Traced.Command = operation.NewID()
		b := BodyOnly(c)
		name := b.String("name")
		if err := b.Done(); err != nil {
			return err
		}
		switch name {
		case "panics":
			panic("for a test")
		case "fails":
			return problem.NotFound("UNKNOWN_THING", "There is no such thing.")
		}
		return c.JSON(http.StatusOK, name)
	})
	for range 20 {
		for name, status := range map[string]int{"works": 200, "fails": 404, "panics": 500, strings.Repeat("long ", 10_000): 200, "": 400} {
			if w := ask(e, "POST", "/v1/things", `{"name":"`+name+`"}`); w.Code != status {
				t.Fatalf("%.20q is answered with %d: %.200s", name, w.Code, w.Body)
			}
		}
	}
	spares := make(map[scalar.ID]bool)
	for _, n := range found {
		if n.Spare.IsZero() || spares[n.Spare] {
			t.Fatalf("a request finds the id %s for its command", n.Spare)
		}
		spares[n.Spare] = true
		n.Spare = scalar.ID{}
		if !reflect.DeepEqual(n, operation.Scope{}) {
			t.Fatalf("a request finds %+v", n)
		}
	}
}

// TestRoomIsNotKeptForever answers with more than is usual.
func TestRoomIsNotKeptForever(t *testing.T) {
	r := &request{scope: operation.Scope{ID: "x", Session: scalar.ID{1}}, room: make([]byte, maxRoom), answer: make([]byte, maxRoom+1)}
	r.reset()
	if len(r.room) != maxRoom || r.answer != nil || r.scope.ID != "" || !r.scope.Session.IsZero() {
		t.Errorf("what is left is %+v", r.scope)
	}
}
