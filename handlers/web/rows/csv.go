package rows

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/projections"
)

const (
	jsonType = "application/json"
	csvType  = "text/csv"
)

// List responds with a page of a list or, if the client prefers text/csv, with all rows as CSV.
func List[Row, Shown any](c echo.Context, s Source, p projections.Page, read PageOf[Row], show func(*Row) Shown) error {
	c.Response().Header().Add(echo.HeaderVary, echo.HeaderAccept)
	if !rest.Prefers(c, csvType, jsonType) {
		return Page(c, s, p, read, show)
	}
	return sendCSV(c, s, p, read, show)
}

// last is a key after every row.
var last = projections.Key{Sequence: math.MaxInt64, Ordinal: math.MaxInt32}

// sendCSV responds with all rows of a list from the page's After, or from the beginning, up to its Before.
//
// It reads the rows page by page, each page in a separate snapshot, so a slow client occupies neither a connection
// nor old row versions. Rows that were created after the response's position are left out, so the response ends. The
// other rows have the state at the time when their page was read.
func sendCSV[Row, Shown any](c echo.Context, s Source, p projections.Page, read PageOf[Row], show func(*Row) Shown) error {
	p.Size = rest.MaxPageSize
	if p.After == nil { // without After, a page with Before would be the last one before it
		p.After = &projections.Key{Sequence: -1}
		if p.Descending {
			p.After = &last
		}
	}
	var page projections.Paged[Row]
	err := s.Read(c, func(ctx context.Context, db projections.DB) (_ int64, err error) {
		page, err = read(ctx, db, p)
		return page.AsOf, err
	})
	if err != nil {
		return err
	}
	asOf := page.AsOf
	return rest.Stream(c, csvType+"; charset=utf-8; header=present", func(w io.Writer, next func() error) error {
		out := newTable[Shown](w)
		for {
			for i := range page.Rows {
				if page.Rows[i].Key.Sequence > asOf && !p.Descending {
					return out.end(next)
				}
				if page.Rows[i].Key.Sequence <= asOf {
					out.add(show(&page.Rows[i].Value))
				}
			}
			if !page.HasNext || len(page.Rows) == 0 {
				return out.end(next)
			}
			if err := out.end(next); err != nil {
				return err
			}
			p.After = &page.Rows[len(page.Rows)-1].Key
			var err error
			if page, err = read(c.Request().Context(), s.DB, p); err != nil {
				return err
			}
			if page.AsOf < asOf { // Postgres has lost its last transactions
				return errWentBack
			}
		}
	})
}

var errWentBack = errors.New("the rows went back while they were read")

// table writes records as lines of CSV (RFC 4180). Its columns are the members of the records' JSON form, in order. A
// field is the text of a member, or "" if the member is null or missing.
type table struct {
	out     *csv.Writer
	columns map[string]int
	line    []string
	encoded bytes.Buffer
	err     error
}

func newTable[Shown any](w io.Writer) *table {
	columns := columnsOf[Shown]()
	t := &table{out: csv.NewWriter(w), columns: make(map[string]int, len(columns)), line: make([]string, len(columns))}
	for i, name := range columns {
		t.columns[name] = i
	}
	t.out.UseCRLF = true
	t.err = t.out.Write(columns)
	return t
}

// Columned is a record that writes its JSON form itself.
type Columned interface {
	// Columns returns the names of all members of the JSON form, in order.
	Columns() []string
}

// columnsOf returns the columns of a type of records.
func columnsOf[Shown any]() []string {
	var zero Shown
	if c, ok := any(zero).(Columned); ok {
		return c.Columns()
	}
	return members(reflect.TypeFor[Shown]())
}

// members returns the JSON names of a struct's fields.
func members(of reflect.Type) []string {
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	var names []string
	for i := range of.NumField() {
		f := of.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			names = append(names, members(f.Type)...)
		case name != "":
			names = append(names, name)
		}
	}
	return names
}

// add writes a record, unless an earlier one failed.
func (t *table) add(record any) {
	if t.err != nil {
		return
	}
	t.encoded.Reset()
	if t.err = json.MarshalWrite(&t.encoded, record); t.err != nil {
		return
	}
	clear(t.line)
	if t.err = t.read(jsontext.NewDecoder(&t.encoded)); t.err == nil {
		t.err = t.out.Write(t.line)
	}
}

// read copies the members of an object to their columns.
func (t *table) read(d *jsontext.Decoder) error {
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() == '"' {
		token, err := d.ReadToken()
		if err != nil {
			return err
		}
		column, known := t.columns[token.String()]
		if !known {
			return fmt.Errorf("%s is no column", token)
		}
		value, err := d.ReadToken()
		if err != nil {
			return err
		}
		if value.Kind() != 'n' {
			t.line[column] = value.String()
		}
	}
	_, err := d.ReadToken()
	return err
}

// end sends the lines written so far.
func (t *table) end(next func() error) error {
	t.out.Flush()
	if t.err != nil {
		return t.err
	}
	if err := t.out.Error(); err != nil {
		return err
	}
	return next()
}
