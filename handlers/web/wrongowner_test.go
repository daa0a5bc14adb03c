package web

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/journal"
)

// startWith serves a write that fails with an error, or is decided where that is nil.
func startWith(t *testing.T, o Options, failed func() error) *httptest.Server {
	t.Helper()
	e := serve(t, o, func(c echo.Context) error {
		b := Body(c)
		name := b.String("name")
		if err := b.Done(); err != nil {
			return err
		}
		cmd, err := NewCommand(c, named("thing.make"), b)
		if err != nil {
			return err
		}
		_, err = Submit(AskOf(c), submitFunc(func(decide.Command) (journal.Result, error) {
			return journal.Result{Position: journal.LogPosition{Journal: "trading", Sequence: 8}}, failed()
		}), "trading", cmd)
		if err != nil {
			return err
		}
		return c.JSON(http.StatusCreated, map[string]string{"name": name, "command": cmd.ID.String()})
	})
	s := httptest.NewServer(e)
	t.Cleanup(s.Close)
	return s
}

// TestAWrongOwnerSaysSo sends a request to a node that is the owner no more, and to one that is gone: both have not taken it,
// and it goes to the owner that is found after them, once.
func TestAWrongOwnerSaysSo(t *testing.T) {
	o := Options{ForwardKey: []byte("shared")}
	var decided int
	owner := startWith(t, o, func() error { decided++; return nil })
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for name, says := range map[string]error{
		"which names another":   &journal.ElsewhereError{URL: "http://nobody"},
		"which names nobody":    &journal.NotAcceptedError{Unowned: true},
		"which is not there":    nil,
		"which is full instead": &journal.NotAcceptedError{},
	} {
		wrong := gone
		if says != nil {
			wrong = startWith(t, o, func() error { return says })
		}
		decided = 0
		asked := 0
		first := startWith(t, o, func() error {
			return &journal.ElsewhereError{URL: wrong.URL, Next: func(context.Context) *journal.ElsewhereError {
				asked++
				return &journal.ElsewhereError{URL: owner.URL}
			}}
		})
		status, header, answer := send(t, first.URL+"/v1/things")
		if header.Get(headerNotOwner) != "" {
			t.Errorf("%s: a client is told who owns what", name)
		}
		if name == "which is full instead" {
			if status != 503 || answer["code"] != "NOT_ACCEPTED" || asked+decided != 0 {
				t.Errorf("%s: %d %v, %d other nodes were looked for", name, status, answer, asked)
			}
			continue
		}
		if status != 201 || answer["name"] != "x" || asked != 1 || decided != 1 {
			t.Errorf("%s: %d %v, %d other nodes were looked for, decided %d times", name, status, answer, asked, decided)
		}
	}
}

// TestNoEndOfWrongOwners: a request is passed on to a few nodes, and no longer than one is found.
func TestNoEndOfWrongOwners(t *testing.T) {
	o := Options{ForwardKey: []byte("shared")}
	passed := 0
	wrong := startWith(t, o, func() error { passed++; return &journal.NotAcceptedError{Unowned: true} })
	for _, found := range []int{0, 1, 100} {
		passed = 0
		left := found
		var next func(context.Context) *journal.ElsewhereError
		next = func(context.Context) *journal.ElsewhereError {
			if left == 0 {
				return nil
			}
			left--
			return &journal.ElsewhereError{URL: wrong.URL, Next: next}
		}
		first := startWith(t, o, func() error { return &journal.ElsewhereError{URL: wrong.URL, Next: next} })
		status, _, answer := send(t, first.URL+"/v1/things")
		if want := min(found+1, maxOwners); status != 503 || answer["code"] != "NOT_ACCEPTED" || passed != want {
			t.Errorf("%d more owners are found: %d %v, passed on %d times instead of %d", found, status, answer, passed, want)
		}
	}
}

// TestAClientIsToldNothingOfOwners: without a node's proof, the answer of a node that is not the owner is the usual one.
func TestAClientIsToldNothingOfOwners(t *testing.T) {
	n := startWith(t, Options{ForwardKey: []byte("shared")}, func() error { return &journal.NotAcceptedError{Unowned: true} })
	status, header, _ := send(t, n.URL+"/v1/things", headerForwarded, "01890a5d-ac96-774b-bcce-b302099a8057.00.01890a5d-ac96-774b-bcce-b302099a8058.7.203.0.113.5")
	if status != 503 || header.Get(headerNotOwner) != "" {
		t.Errorf("%d %v", status, header)
	}
}

// TestTheAnswerOfAnOwnerOfThePast is not waited for: the log names a later owner, so what the first has not answered by then
// it may never answer.
func TestTheAnswerOfAnOwnerOfThePast(t *testing.T) {
	o := Options{ForwardKey: []byte("shared"), Patience: time.Hour}
	arrived, release := make(chan struct{}), make(chan struct{})
	stopped := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(arrived)
		<-release
	}))
	defer stopped.Close()
	defer close(release)
	superseded := make(chan struct{})
	first := startWith(t, o, func() error { return &journal.ElsewhereError{URL: stopped.URL, Superseded: superseded} })
	go func() {
		<-arrived
		close(superseded)
	}()
	if status, _, answer := send(t, first.URL+"/v1/things"); status != 503 || answer["code"] != "OUTCOME_UNKNOWN" {
		t.Errorf("%d %v", status, answer)
	}
}
