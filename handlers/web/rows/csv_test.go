package rows

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/projections"
)

type inner struct {
	Name string  `json:"name"`
	Note *string `json:"note"`
}

type extra struct {
	More string `json:"more"`
}

type line struct {
	inner
	*extra
	Left int64 `json:"left,omitzero"`
	Full bool  `json:"full"`
}

// pages answers with one page after the other, and then fails.
func pages(all ...projections.Paged[line]) PageOf[line] {
	return func(context.Context, projections.DB, projections.Page) (projections.Paged[line], error) {
		if len(all) == 0 {
			return projections.Paged[line]{}, errors.New("Postgres is gone")
		}
		next := all[0]
		all = all[1:]
		return next, nil
	}
}

func pageOf(asOf int64, more bool, sequences ...int64) projections.Paged[line] {
	p := projections.Paged[line]{AsOf: asOf, HasNext: more}
	for _, s := range sequences {
		p.Rows = append(p.Rows, projections.Row[line]{Key: projections.Key{Sequence: s}, Value: line{inner{Name: `a "b", c`}, nil, s, s%2 == 0}})
	}
	return p
}

// ask serves the list and reads it as CSV.
func ask(t *testing.T, method string, p projections.Page, read PageOf[line]) (int, string, error) {
	t.Helper()
	e, err := rest.New(rest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e.GET("/list", func(c echo.Context) error {
		return List(c, Source{Journal: "trading"}, p, read, func(l *line) line { return *l })
	})
	server := httptest.NewServer(e)
	defer server.Close()
	r, err := http.NewRequestWithContext(t.Context(), method, server.URL+"/list", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/csv")
	resp, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), err
}

const head = "name,note,more,left,full\r\n"

// The list as of the first page is what is sent: of what was made since, nothing, and then it ends.
func TestCSVEnds(t *testing.T) {
	ascending := pages(pageOf(5, true, 1, 2), pageOf(9, true, 4, 6, 7))
	want := head + strings.Join([]string{`"a ""b"", c",,,1,false`, `"a ""b"", c",,,2,true`, `"a ""b"", c",,,4,true`, ""}, "\r\n")
	if _, body, err := ask(t, "GET", projections.Page{}, ascending); err != nil || body != want {
		t.Errorf("%q, %v, want %q", body, err, want)
	}
	descending := pages(pageOf(5, true, 5), pageOf(9, false, 2))
	want = head + strings.Join([]string{`"a ""b"", c",,,5,false`, `"a ""b"", c",,,2,true`, ""}, "\r\n")
	if _, body, err := ask(t, "GET", projections.Page{Descending: true}, descending); err != nil || body != want {
		t.Errorf("%q, %v, want %q", body, err, want)
	}
	if status, body, err := ask(t, "GET", projections.Page{}, pages(pageOf(5, false))); status != 200 || err != nil || body != head {
		t.Errorf("without rows: %d %q, %v", status, body, err)
	}
	if status, body, err := ask(t, "HEAD", projections.Page{}, pages(pageOf(5, true, 1))); status != 200 || err != nil || body != "" {
		t.Errorf("without a body: %d %q, %v", status, body, err)
	}
}

// A fault before the first row is a problem; one on the way cuts the answer off, so that nobody takes a part for the whole.
func TestCSVIsCutOffByAFault(t *testing.T) {
	if status, body, _ := ask(t, "GET", projections.Page{}, pages()); status != 503 || !strings.Contains(body, "SOURCE_UNAVAILABLE") {
		t.Errorf("%d %s", status, body)
	}
	if status, body, err := ask(t, "GET", projections.Page{}, pages(pageOf(5, true, 1))); status != 200 || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a fault on the second page: %d %q, %v", status, body, err)
	}
	if _, body, err := ask(t, "GET", projections.Page{}, pages(pageOf(5, true, 1), pageOf(4, false, 2))); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("rows that went back: %q, %v", body, err)
	}
}
