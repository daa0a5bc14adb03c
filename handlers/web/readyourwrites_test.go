package web

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
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
func refusedAt(name string, sequence int64) Journal {
	return Journal{Name: name, To: submitFunc(func(decide.Command) (submit.Result, error) {
		return submit.Result{}, &submit.RefusedError{Refusal: &decide.Refusal{Kind: decide.Conflict, Code: "X"},
			AsOf: record.LogPosition{Journal: name, Sequence: sequence}}
	})}
}

// as has a handler answer as if the user were authenticated.
func as(answered *readYourWrites, user string, h echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		n := scopeOf(c)
		n.principal, n.answered = &Principal{Username: user}, answered.of(user)
		return h(c)
	}
}

// TestAwaitAnswered waits as reads do: two seconds for writes, half a second for reads, and not for other users.
func TestAwaitAnswered(t *testing.T) {
	for _, test := range []struct {
		name, user    string
		written, read int64
		comes         int64
		waits         time.Duration
		at            int64
	}{
		{"a write is reached", "a", 8, -1, 8, 0, 8},
		{"a read is reached", "a", -1, 8, 8, 0, 8},
		{"a write is not reached", "a", 8, -1, 3, waitLimit, 3},
		{"a read is not reached", "a", 4, 8, 4, lookLimit, 4},
		{"another user", "b", 8, 8, 3, 0, 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				auth := &Auth{answered: newReadYourWrites()}
				user := auth.answered.of("a")
				user.wrote(record.LogPosition{Journal: "trading", Sequence: test.written})
				user.looked(record.LogPosition{Journal: "trading", Sequence: test.read})
				rows, began := &rowsAt{3, test.comes}, time.Now()
				auth.AwaitAnswered(t.Context(), test.user, "trading", rows)
				if waited := time.Since(began); waited != test.waits || rows.at != test.at {
					t.Errorf("after %v the rows are as of %d, want %d after %v", waited, rows.at, test.at, test.waits)
				}
			})
		})
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
				answered := newReadYourWrites()
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
	a := Request{&requestScope{principal: &Principal{Username: "a"}, answered: answered.of("a")}, &inProcess{ctx: t.Context()}}
	(Journal{Name: "trading"}).SubmitAll(a, outcomes{3, 7, 5}, make([]decide.Command, 3))
	if written, _ := a.answered.last("trading"); written != 7 {
		t.Errorf("%d is recorded", written)
	}
}

// outcomes answers the commands of a batch with positions.
type outcomes []int64

func (o outcomes) Submit(context.Context, string, decide.Command) (submit.Result, error) {
	panic("commands come together")
}

func (o outcomes) SubmitAll(context.Context, string, []decide.Command) []submit.Outcome {
	all := make([]submit.Outcome, len(o))
	for i, sequence := range o {
		all[i].Result.Position = record.LogPosition{Journal: "trading", Sequence: sequence}
	}
	return all
}

// TestPositionsAreRecordedByJournal: a write counts for its journal only.
func TestPositionsAreRecordedByJournal(t *testing.T) {
	a := newReadYourWrites().of("a")
	a.wrote(record.LogPosition{Journal: "onboarding", Sequence: 12})
	a.wrote(record.LogPosition{Journal: "trading", Sequence: 99})
	for name, want := range map[string]int64{"onboarding": 12, "trading": 99, "identity": -1} {
		if written, read := a.last(name); written != want || read != -1 {
			t.Errorf("%s: %d written and %d read, want %d", name, written, read, want)
		}
	}
	var none answers
	none.wrote(record.LogPosition{Journal: "trading"})
	if written, read := none.last("trading"); written != -1 || read != -1 {
		t.Error("no memory records something")
	}
}

// standsAt is a source that has reached a sequence.
type standsAt int64

func (s standsAt) Position() record.Position { return record.Position{Sequence: int64(s)} }

// TestRecordedPositionsThatAreForgotten: a full memory forgets what all sources have reached, and after that the
// oldest: never the position of a user who wrote just now, and whose write is not in all sources yet.
func TestRecordedPositionsThatAreForgotten(t *testing.T) {
	write := func(r *readYourWrites, user int, sequence int64) {
		r.of(strconv.Itoa(user)).wrote(record.LogPosition{Journal: "trading", Sequence: sequence})
	}
	t.Run("reached", func(t *testing.T) {
		auth := NewAuth(NewTokens(keyHolders(), issuer, time.Now))
		auth.ReadsFrom(map[string][]Positioned{"trading": {standsAt(9), standsAt(5)}})
		const early = 1000
		for i := range early {
			write(auth.answered, i, 6) // the fold has it, the rows have not
		}
		for i := range 4 * maxRecorded {
			write(auth.answered, early+i, 5)
		}
		for i := range early {
			if written, _ := auth.answered.of(strconv.Itoa(i)).last("trading"); written != 6 {
				t.Fatalf("the position of user %d is forgotten", i)
			}
		}
		if len(auth.answered.latest) > maxRecorded {
			t.Errorf("%d positions are recorded", len(auth.answered.latest))
		}
	})
	t.Run("not reached", func(t *testing.T) {
		r := newReadYourWrites()
		for i := range 4 * maxRecorded {
			write(r, i, 7)
			write(r, 0, int64(i)) // its user goes on writing
			for _, user := range []int{0, i, max(0, i-maxRecorded/2)} {
				if written, _ := r.of(strconv.Itoa(user)).last("trading"); written < 0 {
					t.Fatalf("user %d is forgotten after %d", user, i)
				}
			}
			if len(r.latest) > maxRecorded {
				t.Fatalf("%d positions are recorded", len(r.latest))
			}
		}
	})
}

// TestReadsOfLaterSources: what a user has read from a fold is waited for in rows, but not for as long as what it wrote.
func TestReadsOfLaterSources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, test := range []struct {
			name          string
			written, read int64
			rows          rowsAt
			asOf          int64
			took          time.Duration
		}{
			{"read, the rows reach it", -1, 8, rowsAt{3, 8}, 8, 0},
			{"read, the rows do not reach it", -1, 8, rowsAt{3, 3}, 3, lookLimit},
			{"written, the rows do not reach it", 8, -1, rowsAt{3, 3}, 3, waitLimit},
			{"written, and later ones read, which the rows do not reach", 5, 8, rowsAt{3, 5}, 5, lookLimit},
		} {
			answered := newReadYourWrites()
			e := echo.New()
			e.GET("/v1/rows", as(answered, "a", func(c echo.Context) error {
				n := scopeOf(c)
				n.answered.wrote(record.LogPosition{Journal: "trading", Sequence: test.written})
				n.answered.looked(record.LogPosition{Journal: "trading", Sequence: test.read})
				rows := test.rows
				return ReadRows(c, "trading", &rows, func(context.Context) (int64, error) { return rows.at, nil })
			}))
			start := time.Now()
			at := ask(e, "GET", "/v1/rows", "").Header().Get(HeaderLogPosition)
			if want := "trading/0@" + strconv.FormatInt(test.asOf, 10); at != want {
				t.Errorf("%s: as of %q, want %q", test.name, at, want)
			}
			if took := time.Since(start); took < test.took || took > test.took+rereadAfter {
				t.Errorf("%s: took %v, want %v", test.name, took, test.took)
			}
		}
	})
}

// TestAnswersToSocketsAreRecorded: what was answered to a call, as those of a socket are, is in what the user reads
// over HTTP.
func TestAnswersToSocketsAreRecorded(t *testing.T) {
	s, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	auth := NewAuth(NewTokens(keyHolders(), issuer, time.Now))
	write := OperationRoute("POST", "/v1/things", func(a Request) (int, Appender, error) {
		a.answerAt(record.LogPosition{Journal: "trading", Sequence: 7})
		return http.StatusOK, written(`{}`), nil
	}, ScopeTrade)
	read := Get("/v1/things", func(c echo.Context) error {
		rows := rowsAt{3, 9}
		return ReadRows(c, "trading", &rows, func(context.Context) (int64, error) { return rows.at, nil })
	}, ScopeTrade)
	auth.Register(s.Echo, []Route{write, read})
	s.RegisterOperations(auth, []Route{write})
	if r := s.Do(t.Context(), &Call{Method: "POST", Route: "/v1/things", Token: newKey, Address: "127.0.0.1"}); r.Status != http.StatusOK {
		t.Fatalf("%d %s", r.Status, r.Body)
	}
	if at := ask(s.Echo, "GET", "/v1/things", "", "Authorization", "Bearer "+newKey).Header().Get(HeaderLogPosition); at != "trading/0@7" {
		t.Errorf("the read is as of %q", at)
	}
}

// TestPublicReadsHoldTheUsersOwnWrites: a public route waits for what the user of a good token was answered. A bad token is
// still answered 200, and the answer is not made private or counted.
func TestPublicReadsHoldTheUsersOwnWrites(t *testing.T) {
	auth := NewAuth(NewTokens(keyHolders(), issuer, time.Now))
	e := echo.New()
	auth.Register(e, []Route{
		Post("/v1/things", func(c echo.Context) error {
			SetPosition(c, record.LogPosition{Journal: "trading", Sequence: 7})
			return c.NoContent(http.StatusOK)
		}, ScopeTrade),
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
		if at := w.Header().Get(HeaderLogPosition); w.Code != http.StatusOK || at != want {
			t.Errorf("%q: %d as of %q, want %q", token, w.Code, at, want)
		}
		if h := w.Header(); h.Get("Cache-Control") != "" || h.Get(headerRateLimit) != "" {
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

// TestViewsOfAllJournals: each journal has what the user was answered in it, and what is shown is recorded.
func TestViewsOfAllJournals(t *testing.T) {
	user := newReadYourWrites().of("a")
	for _, name := range []string{"onboarding", "trading"} {
		user.wrote(record.LogPosition{Journal: name, Sequence: 7})
	}
	e := echo.New()
	e.GET("/", func(c echo.Context) error {
		scopeOf(c).answered = user
		folds := map[string]record.Follower{"identity": &fold{rowsAt: rowsAt{4, 9}}, "onboarding": &fold{rowsAt: rowsAt{3, 9}}, "trading": &fold{rowsAt: rowsAt{3, 9}}}
		return ViewAll(c, folds, func(string, decide.State) {})
	})
	got := ask(e, "GET", "/", "").Header()[HeaderLogPosition]
	if want := []string{"identity/0@4", "onboarding/0@7", "trading/0@7"}; !slices.Equal(got, want) {
		t.Errorf("as of %q, want %q", got, want)
	}
	if _, read := user.last("identity"); read != 4 {
		t.Errorf("%d is recorded", read)
	}
}
