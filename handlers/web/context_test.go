package web

import (
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// TestNothingIsLeftOfARequest has requests leave behind whatever a handler may note, whether they end well, with an
// error or with a panic, and looks what the next one finds.
func TestNothingIsLeftOfARequest(t *testing.T) {
	var found []requestScope
	e := serve(t, Options{}, func(c echo.Context) error {
		n := scopeOf(c)
		before := *n
		before.id, before.room, before.answer = "", nil, nil
		found = append(found, before)
		n.principal, n.command, n.traced.Command = &Principal{Username: "u"}, NewID(), NewID()
		b := Body(c)
		name := b.String("name")
		if err := b.Done(); err != nil {
			return err
		}
		switch name {
		case "panics":
			panic("for a test")
		case "fails":
			return NotFound("UNKNOWN_THING", "There is no such thing.")
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
		if n.spare.IsZero() || spares[n.spare] {
			t.Fatalf("a request finds the id %s for its command", n.spare)
		}
		spares[n.spare] = true
		n.spare = scalar.ID{}
		if !reflect.DeepEqual(n, requestScope{}) {
			t.Fatalf("a request finds %+v", n)
		}
	}
}

// TestRoomIsNotKeptForever answers with more than is usual.
func TestRoomIsNotKeptForever(t *testing.T) {
	r := &request{requestScope: requestScope{id: "x", command: scalar.ID{1}, room: make([]byte, maxRoom), answer: make([]byte, maxRoom+1)}}
	r.reset()
	if len(r.room) != maxRoom || r.answer != nil || r.id != "" || !r.command.IsZero() {
		t.Errorf("what is left is %+v", r.requestScope)
	}
}
