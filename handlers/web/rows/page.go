package rows

import (
	"encoding/base64"
	"strings"

	"github.com/perpetua-exchange/perpetua/domain/validation"
	"github.com/perpetua-exchange/perpetua/handlers/web/input"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/projections"
)

// ReadPaging reads page_size, after, before and sort. Only one of after and before may be given. Both are exclusive:
// after continues after a record, before ends before it, in the order of the response.
func ReadPaging(f *input.Form, ascendingByDefault bool) projections.Page {
	p := readPaging(f, ascendingByDefault)
	p.Before = readCursor(f, "before")
	return p
}

// ReadFeed reads page_size and after, for a list that clients follow as it grows. The oldest records come first.
func ReadFeed(f *input.Form) projections.Page {
	return projections.Page{Size: PageSize(f, "page_size"), After: readCursor(f, "after")}
}

// ReadHistory reads the paging and the time span of a list of historical data. from and to are required, the oldest
// records come first, and before may be a time.
func ReadHistory(f *input.Form) (projections.Page, projections.Span) {
	p := readPaging(f, true)
	if text := f.OptionalString("before"); text.Set {
		if k, ok := parseCursor(text.Value); ok {
			p.Before = &k
		} else {
			p.BeforeTime = f.Bound("before", false).Value
		}
	}
	return p, ReadSpan(f, true)
}

func readPaging(f *input.Form, ascendingByDefault bool) projections.Page {
	fallback := "desc"
	if ascendingByDefault {
		fallback = "asc"
	}
	p := projections.Page{
		Size:       PageSize(f, "page_size"),
		Descending: f.OptionalEnum("sort", "asc", "desc").Or(fallback) == "desc",
		After:      readCursor(f, "after"),
	}
	if f.Has("after") && f.Has("before") {
		f.Fault("before", validation.InvalidValue, "only one of after and before may be given")
	}
	return p
}

// PageSize reads the page size.
func PageSize(f *input.Form, name string) int {
	return int(f.OptionalInteger(name, 1, rest.MaxPageSize).Or(rest.DefaultPageSize))
}

// ReadSpan reads from (inclusive) and to (exclusive), which may be required.
func ReadSpan(f *input.Form, required bool) projections.Span {
	s := projections.Span{From: f.Bound("from", required).Value, To: f.Bound("to", required).Value}
	if s.From != 0 && s.To != 0 && s.To < s.From {
		f.Fault("to", validation.OutOfRange, "to must not be before from")
	}
	return s
}

const cursorVersion = "1:"

func readCursor(f *input.Form, name string) *projections.Key {
	text := f.OptionalString(name)
	if !text.Set {
		return nil
	}
	k, ok := parseCursor(text.Value)
	if !ok {
		f.Fault(name, validation.InvalidValue, "the cursor is not one that this interface handed out")
		return nil
	}
	return &k
}

func parseCursor(text string) (k projections.Key, ok bool) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	rest, ok := strings.CutPrefix(string(b), cursorVersion)
	if err != nil || !ok {
		return projections.Key{}, false
	}
	k, err = projections.ParseKey(rest)
	return k, err == nil
}

// Cursor returns the cursor for a key.
func Cursor(k projections.Key) string {
	return base64.RawURLEncoding.EncodeToString([]byte(cursorVersion + k.String()))
}

// Records is a page of a list with cursors.
type Records[T any] struct {
	Records  []T      `json:"records"`
	Metadata Metadata `json:"response_metadata"`
}

// Metadata describes the position of a page. The cursors are null for an empty page.
type Metadata struct {
	HasNext     bool    `json:"has_next"`
	HasPrevious bool    `json:"has_previous"`
	StartCursor *string `json:"start_cursor"`
	EndCursor   *string `json:"end_cursor"`
}

// Show converts a page to its JSON form.
func Show[Row, Shown any](p projections.Paged[Row], show func(*Row) Shown) Records[Shown] {
	out := Records[Shown]{Records: make([]Shown, 0, len(p.Rows)), Metadata: Metadata{HasNext: p.HasNext, HasPrevious: p.HasPrevious}}
	for i := range p.Rows {
		out.Records = append(out.Records, show(&p.Rows[i].Value))
	}
	if start, ok := p.Start(); ok {
		end, _ := p.End()
		out.Metadata.between(start, end)
	}
	return out
}

func (m *Metadata) between(start, end projections.Key) {
	from, to := Cursor(start), Cursor(end)
	m.StartCursor, m.EndCursor = &from, &to
}
