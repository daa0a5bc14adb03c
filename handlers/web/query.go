package web

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/labstack/echo/v4"
)

// Query reads the request's query. A parameter that no method asks for, and one that is given twice, are faults.
func Query(c echo.Context) *Form {
	f := &Form{c: c, where: inQuery, faults: &faults{}, root: &node{kind: '{'}}
	if c.Request().URL.RawQuery == "" {
		return f
	}
	f.root.members = make(map[string]*node)
	values, err := url.ParseQuery(c.Request().URL.RawQuery)
	if err != nil {
		f.problem = NewProblem(http.StatusBadRequest, "MALFORMED_QUERY", "The query string is not valid.")
		return f
	}
	f.raw = []byte(values.Encode())
	for name := range values {
		f.root.names = append(f.root.names, name)
	}
	sort.Strings(f.root.names)
	for _, name := range f.root.names {
		n := &node{kind: '"', text: values[name][0]}
		if !utf8.ValidString(n.text) {
			n.broken = true
			f.Fault(name, InvalidUTF8, "the value is not valid UTF-8")
		}
		if len(values[name]) > 1 {
			f.Fault(name, DuplicateField, "the parameter is given more than once")
		}
		f.root.members[name] = n
	}
	return f
}

// NoQuery is for routes that take no parameters.
func NoQuery(c echo.Context) error {
	if c.Request().URL.RawQuery == "" {
		return nil
	}
	return Query(c).Done()
}

// NoBody is for writes without content: it accepts no body, an empty one or {}, and no query.
func NoBody(c echo.Context) error {
	if err := NoQuery(c); err != nil {
		return err
	}
	return BodyAbsent(c)
}

// BodyAbsent is NoBody for a route that takes a query.
func BodyAbsent(c echo.Context) error {
	r := c.Request()
	raw, err := io.ReadAll(io.LimitReader(r.Body, MaxBody+1))
	if err == nil && len(raw) == 0 {
		return nil
	}
	r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(raw), r.Body))
	return Body(c).Done()
}

// Param returns a route parameter, unescaped. What no code of ours can hold (control characters, bytes that are not
// UTF-8) is replaced, so that such a parameter names nothing and does no harm further down.
func Param(c echo.Context, name string) string {
	v := c.Param(name)
	if c.Request().URL.RawPath != "" {
		if s, err := url.PathUnescape(v); err == nil {
			v = s
		}
	}
	if plain(v) {
		return v
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(v, string(utf8.RuneError)))
}

// plain reports whether a text is ASCII without control characters.
func plain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return true
}
