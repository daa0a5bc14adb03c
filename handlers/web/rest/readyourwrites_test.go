package rest

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/handlers/web/access"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
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
func refusedAt(name string, sequence int64) operation.Journal {
	return operation.Journal{Name: name, To: submitFunc(func(decide.Command) (submit.Result, error) {
		return submit.Result{}, &submit.RefusedError{Refusal: &decide.Refusal{Kind: decide.Conflict, Code: "X"},
			AsOf: record.LogPosition{Journal: name, Sequence: sequence}}
	})}
}

// as has a handler answer as if the user were authenticated.
func as(answered *operation.ReadYourWrites, user string, h echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		a := RequestOf(c)
		a.Admission.Principal, a.Answered = &access.Principal{Username: user}, answered.Of(user)
		return h(c)
	}
}

// TestReadsWaitForTheUsersOwnWrites: a read of rows and one of a fold hold what the user was answered last, unless they
// do not come to it within two seconds. Other users wait for nothing.
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
				answered := operation.NewReadYourWrites()
				e := serve(t, Options{}, as(answered, "a", func(c echo.Context) error {
					_, err := refusedAt("trading", 8).Execute(RequestOf(c), named("thing.make"))
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
				w := ask(e, "GET", "/v1/rows", "", operation.HeaderMinLogPosition, test.min)
				asOf := ""
				if test.status == http.StatusOK {
					asOf = "trading/0@" + strconv.FormatInt(test.asOf, 10)
				}
				if w.Code != test.status || w.Header().Get(operation.HeaderLogPosition) != asOf {
					t.Errorf("%d as of %q, want %d as of %q: %s", w.Code, w.Header().Get(operation.HeaderLogPosition), test.status, asOf, w.Body)
				}
			})
		}
	}
}

// TestAnswersToSocketsAreRecorded: what was answered to a call, as those of a socket are, is in what the user reads
// over HTTP.
func TestAnswersToSocketsAreRecorded(t *testing.T) {
	s, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	auth := NewAuth(keyHolders())
	write := OperationRoute("POST", "/v1/things", func(a operation.Request) (int, operation.Appender, error) {
		a.AnswerAt(record.LogPosition{Journal: "trading", Sequence: 7})
		return http.StatusOK, written(`{}`), nil
	}, access.ScopeTrade)
	read := Get("/v1/things", func(c echo.Context) error {
		rows := rowsAt{3, 9}
		return ReadRows(c, "trading", &rows, func(context.Context) (int64, error) { return rows.at, nil })
	}, access.ScopeTrade)
	auth.Register(s.Echo, []Route{write, read})
	s.RegisterOperations(auth, []Route{write})
	if r := s.Do(t.Context(), &Call{Method: "POST", Route: "/v1/things", Token: newKey, Address: "127.0.0.1"}); r.Status != http.StatusOK {
		t.Fatalf("%d %s", r.Status, r.Body)
	}
	if at := ask(s.Echo, "GET", "/v1/things", "", "Authorization", "Bearer "+newKey).Header().Get(operation.HeaderLogPosition); at != "trading/0@7" {
		t.Errorf("the read is as of %q", at)
	}
}

// TestPublicReadsHoldTheUsersOwnWrites: a public route waits for what the user of a good token was answered. A bad token is
// still answered 200, and the answer is not made private or counted.
func TestPublicReadsHoldTheUsersOwnWrites(t *testing.T) {
	auth := NewAuth(keyHolders())
	e := echo.New()
	auth.Register(e, []Route{
		Post("/v1/things", func(c echo.Context) error {
			RequestOf(c).AnswerAt(record.LogPosition{Journal: "trading", Sequence: 7})
			return c.NoContent(http.StatusOK)
		}, access.ScopeTrade),
		Get("/v1/public", func(c echo.Context) error {
			rows := rowsAt{3, 9}
			if PrincipalOf(c) != nil {
				t.Error("a public route has a principal")
			}
			return ReadRows(c, "trading", &rows, func(context.Context) (int64, error) { return rows.at, nil })
		}),
	})
	if w := ask(e, "POST", "/v1/things", "", "Authorization", "Bearer "+newKey); w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	for token, want := range map[string]string{"": "trading/0@3", "Bearer " + newKey: "trading/0@7", "Bearer x": "trading/0@3"} {
		w := ask(e, "GET", "/v1/public", "", "Authorization", token)
		if at := w.Header().Get(operation.HeaderLogPosition); w.Code != http.StatusOK || at != want {
			t.Errorf("%q: %d as of %q, want %q", token, w.Code, at, want)
		}
		if h := w.Header(); h.Get("Cache-Control") != "" || h.Get(access.HeaderRateLimit) != "" {
			t.Errorf("%q: %v", token, h)
		}
	}
}

// fold is a Follower of a journal that comes to a later sequence when it is waited for.
type fold struct {
	record.Follower
	rowsAt
}

func (f *fold) Wait(ctx context.Context, sequence int64) error { return f.rowsAt.Wait(ctx, sequence) }

func (f *fold) View(look func(s decide.State, at record.Position)) {
	look(nil, record.Position{Sequence: f.at})
}

func (f *fold) Err() error { return nil }

func (f *fold) CaughtUp() <-chan struct{} { return record.AtOnce() }

// TestViewsOfAllJournals: each journal has what the user was answered in it, and what is shown is recorded.
func TestViewsOfAllJournals(t *testing.T) {
	answered := operation.NewReadYourWrites()
	e := echo.New()
	e.GET("/", func(c echo.Context) error {
		a := RequestOf(c)
		a.Answered = answered.Of("a")
		for _, name := range []string{"onboarding", "trading"} {
			a.AnswerAt(record.LogPosition{Journal: name, Sequence: 7})
		}
		folds := map[string]record.Follower{"identity": &fold{rowsAt: rowsAt{4, 9}}, "onboarding": &fold{rowsAt: rowsAt{3, 9}}, "trading": &fold{rowsAt: rowsAt{3, 9}}}
		return ViewAll(c, folds, func(string, decide.State) {})
	})
	got := ask(e, "GET", "/", "").Header()[operation.HeaderLogPosition]
	if want := []string{"identity/0@4", "onboarding/0@7", "trading/0@7"}; !slices.Equal(got, want) {
		t.Errorf("as of %q, want %q", got, want)
	}
	later := &rowsAt{3, 9}
	if answered.AwaitAnswered(t.Context(), "a", "identity", later); later.at != 4 {
		t.Errorf("%d is recorded", later.at)
	}
}
