package web

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
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
		cmd, err := RequestOf(c).NewCommand(named("thing.make"), b)
		if err != nil {
			return err
		}
		_, err = Submit(RequestOf(c), submitFunc(func(decide.Command) (submit.Result, error) {
			return submit.Result{Position: record.LogPosition{Journal: "trading", Sequence: 8}}, failed()
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

// TestAWrongOwnerSaysSo sends a request to a node that is the owner no more, and to one that is gone: both have not
// taken it, and it goes to the owner that is found after them, once.
func TestAWrongOwnerSaysSo(t *testing.T) {
	o := Options{ForwardKey: []byte("shared")}
	var decided int
	owner := startWith(t, o, func() error { decided++; return nil })
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for name, says := range map[string]error{
		"which names another":   &submit.ElsewhereError{URL: "http://nobody"},
		"which names nobody":    &submit.NotAcceptedError{Unowned: true},
		"which is not there":    nil,
		"which is full instead": &submit.NotAcceptedError{},
	} {
		wrong := gone
		if says != nil {
			wrong = startWith(t, o, func() error { return says })
		}
		decided = 0
		asked := 0
		first := startWith(t, o, func() error {
			return &submit.ElsewhereError{URL: wrong.URL, Next: func(context.Context) *submit.ElsewhereError {
				asked++
				return &submit.ElsewhereError{URL: owner.URL}
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
	wrong := startWith(t, o, func() error { passed++; return &submit.NotAcceptedError{Unowned: true} })
	for _, found := range []int{0, 1, 100} {
		passed = 0
		left := found
		var next func(context.Context) *submit.ElsewhereError
		next = func(context.Context) *submit.ElsewhereError {
			if left == 0 {
				return nil
			}
			left--
			return &submit.ElsewhereError{URL: wrong.URL, Next: next}
		}
		first := startWith(t, o, func() error { return &submit.ElsewhereError{URL: wrong.URL, Next: next} })
		status, _, answer := send(t, first.URL+"/v1/things")
		if want := min(found+1, maxOwners); status != 503 || answer["code"] != "NOT_ACCEPTED" || passed != want {
			t.Errorf("%d more owners are found: %d %v, passed on %d times instead of %d", found, status, answer, passed, want)
		}
	}
}

// TestAClientIsToldNothingOfOwners: without a node's proof, the answer of a node that is not the owner is the usual one.
func TestAClientIsToldNothingOfOwners(t *testing.T) {
	n := startWith(t, Options{ForwardKey: []byte("shared")}, func() error { return &submit.NotAcceptedError{Unowned: true} })
	status, header, _ := send(t, n.URL+"/v1/things", headerForwarded, "01890a5d-ac96-774b-bcce-b302099a8057.00.01890a5d-ac96-774b-bcce-b302099a8058.7.203.0.113.5")
	if status != 503 || header.Get(headerNotOwner) != "" {
		t.Errorf("%d %v", status, header)
	}
}

// TestTheAnswerOfAnOwnerOfThePast is not waited for: the log names a later owner, so what the first has not answered by
// then it may never answer.
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
	first := startWith(t, o, func() error { return &submit.ElsewhereError{URL: stopped.URL, Superseded: superseded} })
	go func() {
		<-arrived
		close(superseded)
	}()
	if status, _, answer := send(t, first.URL+"/v1/things"); status != 503 || answer["code"] != "OUTCOME_UNKNOWN" {
		t.Errorf("%d %v", status, answer)
	}
}

// outcomesFunc answers the commands of a batch.
type outcomesFunc func(cs []decide.Command) []submit.Outcome

func (f outcomesFunc) SubmitAll(_ context.Context, _ string, cs []decide.Command) []submit.Outcome {
	return f(cs)
}

func (f outcomesFunc) Submit(context.Context, string, decide.Command) (submit.Result, error) {
	panic("a batch is submitted as one")
}

// startBatches serves a batch of as many commands as there are errors. A command with the error nil is decided. The answer
// lists the codes of the commands.
func startBatches(t *testing.T, o Options, errs func() []error) *httptest.Server {
	t.Helper()
	e := serve(t, o, func(c echo.Context) error {
		a := RequestOf(c)
		if _, err := a.Content(); err != nil {
			return err
		}
		outcomes := errs()
		tried, err := (Journal{Name: "trading"}).SubmitAll(a, outcomesFunc(func(cs []decide.Command) []submit.Outcome {
			out := make([]submit.Outcome, len(cs))
			for i := range out {
				out[i].Result.Position, out[i].Err = record.LogPosition{Journal: "trading", Sequence: 8}, outcomes[i]
			}
			return out
		}), make([]decide.Command, len(outcomes)))
		if err != nil {
			return err
		}
		codes := make([]string, len(tried))
		for i, x := range tried {
			if x.Err != nil {
				codes[i] = a.PartProblem(x.Err).Code
			}
		}
		return c.JSON(http.StatusOK, map[string]any{"codes": codes})
	})
	s := httptest.NewServer(e)
	t.Cleanup(s.Close)
	return s
}

// TestABatchAtAWrongOwner: a batch goes on to the next owner if the node that it was passed on to is not the owner and
// decided no command. If that node decided one, its answer stands: sent again, the command could take effect twice.
func TestABatchAtAWrongOwner(t *testing.T) {
	var (
		unowned = &submit.NotAcceptedError{Unowned: true}
		full    = &submit.NotAcceptedError{}
		unknown = &submit.OutcomeUnknownError{}
		refused = &submit.RefusedError{Refusal: decide.Refuse(decide.NotFound, "UNKNOWN_ORDER", "")}
	)
	const none = "NOT_ACCEPTED"
	o := Options{ForwardKey: []byte("shared")}
	for name, c := range map[string]struct {
		wrong []error  // outcomes at the node that the batch is passed on to
		codes []string // that the client gets; nil if the next owner answers
	}{
		"names the owner":               {[]error{&submit.ElsewhereError{URL: "http://nobody"}, &submit.ElsewhereError{URL: "http://nobody"}}, nil},
		"names nobody":                  {[]error{unowned, unowned}, nil},
		"lost its term before it ended": {[]error{full, unowned}, nil},
		"is full":                       {[]error{full, full}, []string{none, none}},
		"decided the first":             {[]error{nil, unowned}, []string{"", none}},
		"refused the last":              {[]error{unowned, refused}, []string{none, "UNKNOWN_ORDER"}},
		"may have decided the first":    {[]error{unknown, unowned}, []string{"OUTCOME_UNKNOWN", none}},
	} {
		decided := 0
		owner := startBatches(t, o, func() []error { decided++; return []error{nil, nil} })
		wrong := startBatches(t, o, func() []error { return c.wrong })
		first := startBatches(t, o, func() []error {
			err := &submit.ElsewhereError{URL: wrong.URL, Next: func(context.Context) *submit.ElsewhereError {
				return &submit.ElsewhereError{URL: owner.URL}
			}}
			return []error{err, err}
		})
		want, decidedThere := c.codes, 0
		if want == nil {
			want, decidedThere = []string{"", ""}, 1
		}
		status, header, answer := send(t, first.URL+"/v1/things")
		if status != 200 || fmt.Sprint(answer["codes"]) != fmt.Sprint(want) || decided != decidedThere {
			t.Errorf("the node %s: %d %v, decided %d times by the owner", name, status, answer, decided)
		}
		if header.Get(headerNotOwner) != "" {
			t.Errorf("the node %s: the client gets the header between nodes", name)
		}
	}
}

// TestABatchOfAClientAtAWrongOwner: a client whose node finds no owner gets an outcome for each command of its batch.
func TestABatchOfAClientAtAWrongOwner(t *testing.T) {
	unowned := &submit.NotAcceptedError{Unowned: true}
	n := startBatches(t, Options{ForwardKey: []byte("shared")}, func() []error { return []error{unowned, unowned} })
	status, _, answer := send(t, n.URL+"/v1/things")
	if status != 200 || fmt.Sprint(answer["codes"]) != "[NOT_ACCEPTED NOT_ACCEPTED]" {
		t.Errorf("%d %v", status, answer)
	}
}
