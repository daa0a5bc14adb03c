package web

import (
	"context"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/journal"
)

// rowsAt are rows as of a sequence, which come to a later one when they are waited for.
type rowsAt struct{ at, comes int64 }

func (r *rowsAt) Wait(ctx context.Context, sequence int64) error {
	if sequence <= r.comes {
		r.at = max(r.at, sequence)
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

// refusedAt is a journal that refuses every command as of a position.
func refusedAt(name string, sequence int64) Journal {
	return Journal{Name: name, To: submitFunc(func(decide.Command) (journal.Result, error) {
		return journal.Result{}, &journal.RefusedError{Refusal: &decide.Refusal{Kind: decide.Conflict, Code: "X"},
			AsOf: journal.LogPosition{Journal: name, Sequence: sequence}}
	})}
}

// as has a handler answer as if the user were authenticated.
func as(answered *readYourWrites, user string, h echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		n := notesOf(c)
		n.principal, n.answered = &Principal{Username: user}, answered
		return h(c)
	}
}

// TestReadsWaitForTheUsersOwnWrites: a read of rows and one of a fold hold what the user was answered last, unless they do not
// come to it within two seconds. Other users wait for nothing.
func TestReadsWaitForTheUsersOwnWrites(t *testing.T) {
	for _, test := range []struct {
		name, user string
		rows       rowsAt
		min        string
		status     int
		asOf       int64
	}{
		{"the source reaches it", "a", rowsAt{3, 8}, "", 200, 8},
		{"another user", "b", rowsAt{3, 8}, "", 200, 3},
		{"the source does not reach it", "a", rowsAt{3, 3}, "", 200, 3},
		{"a later position is named", "a", rowsAt{3, 9}, "trading/0@9", 200, 9},
		{"a position is named that is not reached", "a", rowsAt{3, 8}, "trading/0@9", 412, 0},
	} {
		for kind, read := range map[string]func(c echo.Context, rows *rowsAt) error{
			"rows": func(c echo.Context, rows *rowsAt) error {
				return ReadRows(c, "trading", rows, func(context.Context) (int64, error) { return rows.at, nil })
			},
			"fold": func(c echo.Context, rows *rowsAt) error {
				if err := Await(c, "trading", rows); err != nil {
					return err
				}
				SetReadPosition(c, "trading", rows.at)
				return nil
			},
		} {
			t.Run(test.name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				answered := newReadYourWrites()
				e := serve(t, Options{}, as(answered, "a", func(c echo.Context) error {
					_, err := refusedAt("trading", 8).Execute(AskOf(c), named("thing.make"))
					return err
				}))
				e.GET("/v1/rows", as(answered, test.user, func(c echo.Context) error {
					rows := test.rows
					if err := read(c, &rows); err != nil {
						return err
					}
					return c.JSON(http.StatusOK, struct{}{})
				}))
				if w := ask(e, "POST", "/v1/things", "{}"); w.Code != http.StatusConflict {
					t.Fatalf("%d %s", w.Code, w.Body)
				}
				w := ask(e, "GET", "/v1/rows", "", HeaderMinLogPosition, test.min)
				asOf := ""
				if test.status == http.StatusOK {
					asOf = "trading/0@" + strconv.FormatInt(test.asOf, 10)
				}
				if w.Code != test.status || w.Header().Get(HeaderLogPosition) != asOf {
					t.Errorf("%d as of %q, want %d as of %q: %s", w.Code, w.Header().Get(HeaderLogPosition), test.status, asOf, w.Body)
				}
			})
		}
	}
}

// TestBatchesAreRecorded: the latest position of a batch counts as answered.
func TestBatchesAreRecorded(t *testing.T) {
	answered := newReadYourWrites()
	a := Ask{&notes{principal: &Principal{Username: "a"}, answered: answered}, &inside{}}
	if _, err := (Journal{Name: "trading"}).SubmitAll(a, outcomes{3, 7, 5}, make([]decide.Command, 3)); err != nil {
		t.Fatal(err)
	}
	if got := answered.last(a, "trading"); got != 7 {
		t.Errorf("%d is recorded", got)
	}
}

// outcomes answers the commands of a batch with positions.
type outcomes []int64

func (o outcomes) Submit(context.Context, string, decide.Command) (journal.Result, error) {
	panic("commands come together")
}

func (o outcomes) SubmitAll(context.Context, string, []decide.Command) []journal.Outcome {
	all := make([]journal.Outcome, len(o))
	for i, sequence := range o {
		all[i].Result.Position = journal.LogPosition{Journal: "trading", Sequence: sequence}
	}
	return all
}

// TestAnswersOfOtherNodesAreRecorded: a write that this node passed on counts, each journal apart, and the memory is bounded.
func TestAnswersOfOtherNodesAreRecorded(t *testing.T) {
	answered := newReadYourWrites()
	a := Ask{&notes{principal: &Principal{Username: "a"}}, nil}
	answered.recordHeaders(a, http.Header{HeaderLogPosition: {"onboarding/0@12"}})
	answered.recordHeaders(a, http.Header{HeaderLogPosition: {"trading/0@99"}})
	answered.recordHeaders(a, http.Header{})
	if got := answered.last(a, "onboarding"); got != 12 {
		t.Errorf("onboarding %d", got)
	}
	if got := answered.last(a, "trading"); got != 99 {
		t.Errorf("trading %d", got)
	}
	for i := range 2 * maxRecorded {
		answered.record(Ask{&notes{principal: &Principal{Username: strconv.Itoa(i)}}, nil}, journal.LogPosition{Journal: "trading", Sequence: 1})
	}
	if len(answered.latest) > maxRecorded {
		t.Errorf("%d positions are recorded", len(answered.latest))
	}
	var none *readYourWrites
	none.record(a, journal.LogPosition{})
	if none.last(a, "trading") != -1 {
		t.Error("no memory records something")
	}
}

// TestAnswersToSocketsAreRecorded: what was answered to a call, as those of a socket are, is in what the user reads over HTTP.
func TestAnswersToSocketsAreRecorded(t *testing.T) {
	s, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	auth := NewAuth(NewTokens(keyHolders(true), issuer, time.Now))
	write := Asked("POST", "/v1/things", func(a Ask) (int, Appender, error) {
		a.answerAt(journal.LogPosition{Journal: "trading", Sequence: 7})
		return http.StatusOK, written(`{}`), nil
	}, ScopeTrade)
	read := Get("/v1/things", func(c echo.Context) error {
		rows := rowsAt{3, 9}
		return ReadRows(c, "trading", &rows, func(context.Context) (int64, error) { return rows.at, nil })
	}, ScopeTrade)
	auth.Register(s.Echo, []Route{write, read})
	s.Take(auth, []Route{write})
	if r := s.Do(t.Context(), &Call{Method: "POST", Route: "/v1/things", Token: newKey, Address: "127.0.0.1"}); r.Status != http.StatusOK {
		t.Fatalf("%d %s", r.Status, r.Body)
	}
	if at := ask(s.Echo, "GET", "/v1/things", "", "Authorization", "Bearer "+newKey).Header().Get(HeaderLogPosition); at != "trading/0@7" {
		t.Errorf("the read is as of %q", at)
	}
}
