package rows

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"pgregory.net/rapid"

	"github.com/perpetua-exchange/perpetua/handlers/web/input"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

func query(text string) *input.Form {
	return rest.Query(echo.New().NewContext(httptest.NewRequest("GET", "/v1/things?"+text, nil), httptest.NewRecorder()))
}

// faults lists what is wrong as "field CODE".
func faults(err error) string {
	var p *problem.Problem
	if !errors.As(err, &p) {
		return ""
	}
	var out []string
	for _, f := range p.Errors {
		out = append(out, f.Path.String()+" "+f.Code)
	}
	return strings.Join(out, ", ")
}

func TestReadPaging(t *testing.T) {
	at := projections.Key{Sequence: 17, Ordinal: 3}
	for _, tt := range []struct {
		query string
		page  projections.Page
		want  string
	}{
		{"", projections.Page{Size: 100, Descending: true}, ""},
		{"page_size=1000&sort=asc", projections.Page{Size: 1000}, ""},
		{"after=" + Cursor(at), projections.Page{Size: 100, Descending: true, After: &at}, ""},
		{"before=" + Cursor(at), projections.Page{Size: 100, Descending: true, Before: &at}, ""},
		{"page_size=0", projections.Page{}, "page_size OUT_OF_RANGE"},
		{"page_size=1001&sort=up", projections.Page{}, "page_size OUT_OF_RANGE, sort INVALID_VALUE"},
		{"after=17", projections.Page{}, "after INVALID_VALUE"},
		{"after=0", projections.Page{}, "after INVALID_VALUE"},
		{"after=MTox", projections.Page{}, "after INVALID_VALUE"}, // 1:1
		{"after=MTovMS4xAA", projections.Page{}, "after INVALID_VALUE"},
		{"after=" + Cursor(projections.Key{Sequence: 5, Ordinal: 1 << 31}), projections.Page{}, "after INVALID_VALUE"}, // of no row
		{"after=%00", projections.Page{}, "after CONTROL_CHARACTER"},
		{"before=2026-03-31T08:00:00Z", projections.Page{}, "before INVALID_VALUE"},
		{"after=" + Cursor(at) + "&before=" + Cursor(at), projections.Page{}, "before INVALID_VALUE"},
	} {
		q := query(tt.query)
		p := ReadPaging(q, false)
		if got := faults(q.Done()); got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.query, got, tt.want)
		}
		same := func(a, b *projections.Key) bool { return (a == nil) == (b == nil) && (a == nil || *a == *b) }
		if tt.want == "" && (p.Size != tt.page.Size || p.Descending != tt.page.Descending || !same(p.After, tt.page.After) || !same(p.Before, tt.page.Before)) {
			t.Errorf("%q: %+v", tt.query, p)
		}
	}
	if ReadPaging(query(""), true).Descending {
		t.Error("the default order is lost")
	}
}

// TestReadHistory: before is a cursor or a time.
func TestReadHistory(t *testing.T) {
	const span = "from=2026-03-31T08:00:00Z&to=2026-04-01T00:00:00Z"
	at := projections.Key{Sequence: 17}
	for _, tt := range []struct {
		query  string
		before bool
		time   int64
		want   string
	}{
		{span, false, 0, ""},
		{span + "&before=" + Cursor(at), true, 0, ""},
		{span + "&before=2026-03-31T09:00:00Z", false, 1_774_947_600_000_000, ""},
		{span + "&before=1774947600000", false, 1_774_947_600_000_000, ""},
		{span + "&before=soon", false, 0, "before INVALID_VALUE"},
		{"from=0", false, 0, "to REQUIRED"},
		{"from=2&to=1", false, 0, "to OUT_OF_RANGE"},
	} {
		q := query(tt.query)
		p, _ := ReadHistory(q)
		if got := faults(q.Done()); got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.query, got, tt.want)
		}
		if (p.Before != nil) != tt.before || int64(p.BeforeTime) != tt.time || p.Descending {
			t.Errorf("%q: %+v", tt.query, p)
		}
	}
}

func TestShow(t *testing.T) {
	row := func(i int64) projections.Row[string] {
		return projections.Row[string]{Key: projections.Key{Sequence: i}, Value: "x"}
	}
	cursor := func(i int64) string { return Cursor(projections.Key{Sequence: i}) }
	for _, tt := range []struct {
		page projections.Paged[string]
		want string
	}{
		{projections.Paged[string]{}, `{"records":[],"response_metadata":{"has_next":false,"has_previous":false,"start_cursor":null,"end_cursor":null}}`},
		{projections.Paged[string]{Rows: []projections.Row[string]{row(1), row(2)}, HasNext: true},
			`{"records":["x","x"],"response_metadata":{"has_next":true,"has_previous":false,"start_cursor":"` + cursor(1) + `","end_cursor":"` + cursor(2) + `"}}`},
	} {
		got, err := json.Marshal(Show(tt.page, func(s *string) string { return *s }))
		if err != nil || string(got) != tt.want {
			t.Errorf("got %s, %v\nwant %s", got, err, tt.want)
		}
	}
}

// TestTake holds the pages of a list in memory against its slices: all pages in a row give the list, in both orders and
// in both directions, and each says truly what is around it.
func TestTake(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfNDistinct(rapid.Int64Range(0, 30), 0, 20, rapid.ID).Draw(t, "list")
		slices.Sort(all)
		walk := func(beyond *projections.Key, descending bool) iter.Seq2[projections.Key, int64] {
			return func(yield func(projections.Key, int64) bool) {
				list := slices.Clone(all)
				if descending {
					slices.Reverse(list)
				}
				for _, v := range list {
					if beyond != nil && (v <= beyond.Sequence && !descending || v >= beyond.Sequence && descending) {
						continue
					}
					if !yield(projections.Key{Sequence: v}, v) {
						return
					}
				}
			}
		}
		p := projections.Page{Size: rapid.IntRange(1, 5).Draw(t, "size"), Descending: rapid.Bool().Draw(t, "descending")}
		list := slices.Clone(all)
		if p.Descending {
			slices.Reverse(list)
		}
		backwards := rapid.Bool().Draw(t, "backwards")
		from := projections.Key{Sequence: rapid.Int64Range(-1, 31).Draw(t, "from")}
		var want []int64
		for _, v := range list {
			before := v < from.Sequence != p.Descending && v != from.Sequence
			if v != from.Sequence && before == backwards {
				want = append(want, v)
			}
		}
		if p.After = &from; backwards {
			p.After, p.Before = nil, &from
		}
		beyond := len(want) > p.Size
		if beyond && backwards {
			want = want[len(want)-p.Size:]
		} else if beyond {
			want = want[:p.Size]
		}
		got := Take(p, walk)
		if !slices.Equal(got.Values(), append([]int64{}, want...)) {
			t.Fatalf("%+v of %v: %v, want %v", p, list, got.Values(), want)
		}
		if len(want) == 0 {
			return
		}
		if next, previous := want[len(want)-1] != list[len(list)-1], want[0] != list[0]; got.HasNext != next || got.HasPrevious != previous {
			t.Fatalf("%+v of %v: %v, next %v, previous %v", p, list, want, got.HasNext, got.HasPrevious)
		}
	})
}

// foldAt is a fold at a sequence.
type foldAt struct {
	record.Follower
	sequence int64
}

func (f foldAt) Position() record.Position { return record.Position{Sequence: f.sequence} }

// rowsAt are rows that stay at a sequence. limits has until when each wait may take.
type rowsAt struct {
	sequence int64
	limits   []time.Time
}

func (r *rowsAt) Wait(ctx context.Context, sequence int64) error {
	limit, _ := ctx.Deadline()
	r.limits = append(r.limits, limit)
	if sequence <= r.sequence {
		return nil
	}
	return context.DeadlineExceeded
}

// TestFindWaitsOnce: an object that is not found is not waited for after the time of the position that the client named.
func TestFindWaitsOnce(t *testing.T) {
	r := httptest.NewRequest("GET", "/v1/things/1", nil)
	r.Header.Set(operation.HeaderMinLogPosition, "trading/0@3")
	c := echo.New().NewContext(r, httptest.NewRecorder())
	behind := &rowsAt{sequence: 3}
	err := Source{Journal: "trading", Waiter: behind}.Find(c, foldAt{sequence: 5}, func(context.Context, projections.DB) (bool, int64, error) { return false, 3, nil })
	if p := new(problem.Problem); !errors.As(err, &p) || p.Code != "SOURCE_UNAVAILABLE" {
		t.Errorf("the error is %v", err)
	}
	if len(behind.limits) != 2 || behind.limits[1].After(behind.limits[0]) {
		t.Errorf("the waits end at %v", behind.limits)
	}
}

// TestFindAtOnce: what does not exist is unknown without a wait if the rows have every record of the fold.
func TestFindAtOnce(t *testing.T) {
	c := echo.New().NewContext(httptest.NewRequest("GET", "/v1/things/1", nil), httptest.NewRecorder())
	current := &rowsAt{sequence: 5}
	err := Source{Journal: "trading", Waiter: current}.Find(c, foldAt{sequence: 5}, func(context.Context, projections.DB) (bool, int64, error) { return false, 5, nil })
	if err != nil || len(current.limits) > 0 {
		t.Errorf("%d waits: %v", len(current.limits), err)
	}
}
