package web

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"
)

// The page sizes of cursor paging and of operator lists.
const (
	DefaultPageSize = 100
	MaxPageSize     = 1000
	DefaultSize     = 50
	MaxSize         = 100
)

// Page is what a client asks of a list that can grow without bound. After and Before are the positions inside the
// cursors, exclusive, in whatever text the list made them with; the order of the answer is that of Ascending in
// both cases: after continues behind a record, before ends ahead of it.
type Page struct {
	Size      int
	After     string
	Before    string
	Ascending bool
}

// Page reads page_size, after, before and sort. Only one of after and before may be given.
func (f *Form) Page(ascendingByDefault bool) Page {
	p := Page{Size: int(f.OptionalInteger("page_size", 1, MaxPageSize).Or(DefaultPageSize))}
	fallback := "desc"
	if ascendingByDefault {
		fallback = "asc"
	}
	p.Ascending = f.OptionalEnum("sort", "asc", "desc").Or(fallback) == "asc"
	p.After = f.cursor("after")
	p.Before = f.cursor("before")
	if p.After != "" && p.Before != "" {
		f.Fault("before", InvalidValue, "only one of after and before may be given")
	}
	return p
}

const cursorVersion = "1:"

func (f *Form) cursor(name string) string {
	s := f.OptionalString(name)
	if !s.Set {
		return ""
	}
	b, err := base64.RawURLEncoding.DecodeString(s.Value)
	position, ok := strings.CutPrefix(string(b), cursorVersion)
	if err != nil || !ok || position == "" || len(b) > 256 || !utf8.Valid(b) || strings.ContainsRune(position, 0) {
		f.Fault(name, InvalidValue, "the cursor is not one that this interface handed out")
		return ""
	}
	return position
}

// Cursor makes the opaque text of a position.
func Cursor(position string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(cursorVersion + position))
}

// Records is the answer of a list with cursors.
type Records[T any] struct {
	Records  []T      `json:"records"`
	Metadata Metadata `json:"response_metadata"`
}

// Metadata says what is around a page. The cursors are null on an empty page.
type Metadata struct {
	HasNext     bool    `json:"has_next"`
	HasPrevious bool    `json:"has_previous"`
	StartCursor *string `json:"start_cursor"`
	EndCursor   *string `json:"end_cursor"`
}

// NewRecords makes the answer to a page. The records are in the order of the answer; more says whether there are
// records beyond them in the direction that was read: behind the last one, or with Before ahead of the first one. In
// the other direction there is something exactly when a cursor was given.
func NewRecords[T any](p Page, records []T, more bool, position func(T) string) Records[T] {
	out := Records[T]{Records: records}
	if records == nil {
		out.Records = []T{}
	}
	if p.Before != "" {
		out.Metadata.HasNext, out.Metadata.HasPrevious = true, more
	} else {
		out.Metadata.HasNext, out.Metadata.HasPrevious = more, p.After != ""
	}
	if n := len(records); n > 0 {
		start, end := Cursor(position(records[0])), Cursor(position(records[n-1]))
		out.Metadata.StartCursor, out.Metadata.EndCursor = &start, &end
	}
	return out
}

// Numbered is what a client asks of an operator's list: a page from 1 and its size.
type Numbered struct{ Page, Size int }

// Numbered reads page and size.
func (f *Form) Numbered() Numbered {
	return Numbered{
		Page: int(f.OptionalInteger("page", 1, 1_000_000_000).Or(1)),
		Size: int(f.OptionalInteger("size", 1, MaxSize).Or(DefaultSize)),
	}
}

// Offset is how many items come before the page.
func (n Numbered) Offset() int { return (n.Page - 1) * n.Size }

// Items is the answer of an operator's list.
type Items[T any] struct {
	Items []T `json:"items"`
	Total int `json:"total"`
	Page  int `json:"page"`
	Size  int `json:"size"`
	Pages int `json:"pages"`
}

// NewItems makes the answer to a page out of the items on it and the number of all of them.
func NewItems[T any](n Numbered, items []T, total int) Items[T] {
	if items == nil {
		items = []T{}
	}
	return Items[T]{Items: items, Total: total, Page: n.Page, Size: n.Size, Pages: (total + n.Size - 1) / n.Size}
}

// Slice makes the answer to a page out of all the items.
func Slice[T any](n Numbered, all []T) Items[T] {
	from := min(n.Offset(), len(all))
	return NewItems(n, all[from:min(from+n.Size, len(all))], len(all))
}
