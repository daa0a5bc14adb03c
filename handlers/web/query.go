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

	"github.com/perpetua-exchange/perpetua/domain/validation"
)

// Query reads the request's query. Unknown and repeated parameters are errors.
func Query(c echo.Context) *Form { return RequestOf(c).Query() }

// Query is like the function Query.
func (a Request) Query() *Form {
	f := &Form{where: inQuery, errs: newErrors(validation.InQuery), root: &node{kind: '{'}}
	raw := a.transport.query()
	if raw == "" {
		return f
	}
	f.root.members = make(map[string]*node)
	values, err := url.ParseQuery(raw)
	if err != nil {
		f.problem = NewProblem(http.StatusBadRequest, malformedQuery, "The query string is not valid.")
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
			f.Fault(name, validation.InvalidUTF8, "the value is not valid UTF-8")
		}
		if len(values[name]) > 1 {
			f.Fault(name, validation.DuplicateField, "the parameter is given more than once")
		}
		f.root.members[name] = n
	}
	return f
}

// malformedQuery is the code for a query that cannot be decoded.
const malformedQuery = "MALFORMED_QUERY"

// Path returns a form of the route's parameters, for parameters that must be valid. In the onboarding interface, an
// invalid ID in the path is a validation error.
func Path(c echo.Context) *Form { return RequestOf(c).Path() }

// Path is like the function Path.
func (a Request) Path() *Form {
	f := &Form{where: inPath, errs: newErrors(validation.InPath), root: &node{kind: '{', members: make(map[string]*node)}}
	_, _, names := a.transport.route()
	for _, name := range names {
		f.root.members[name] = &node{kind: '"', text: a.Param(name)}
	}
	return f
}

// NoQuery returns an error if the request has query parameters.
func NoQuery(c echo.Context) error { return RequestOf(c).NoQuery() }

// NoQuery is like the function NoQuery.
func (a Request) NoQuery() error {
	if a.transport.query() == "" {
		return nil
	}
	return a.Query().Done()
}

// NoBody returns an error unless the request has no query and its body is absent, empty or {}.
func NoBody(c echo.Context) error { return RequestOf(c).NoBody() }

// NoBody is like the function NoBody.
func (a Request) NoBody() error {
	if err := a.NoQuery(); err != nil {
		return err
	}
	return a.BodyAbsent()
}

// OptionalBody is BodyOnly for a write with an optional body. An absent body counts as {}.
func OptionalBody(c echo.Context) *Form {
	r := c.Request()
	raw, err := io.ReadAll(io.LimitReader(r.Body, MaxBody+1))
	if err == nil && len(raw) == 0 {
		return RequestOf(c).OnlyForm([]byte("{}"), nil)
	}
	r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(raw), r.Body))
	return BodyOnly(c)
}

// BodyAbsent is NoBody for a route with a query.
func BodyAbsent(c echo.Context) error { return RequestOf(c).BodyAbsent() }

// BodyAbsent is like the function BodyAbsent.
func (a Request) BodyAbsent() error { return a.transport.noContent() }

// noContent implements transport.
func (r *request) noContent() error {
	in := r.Request()
	raw, err := io.ReadAll(io.LimitReader(in.Body, MaxBody+1))
	if err == nil && len(raw) == 0 {
		return nil
	}
	in.Body = io.NopCloser(io.MultiReader(bytes.NewReader(raw), in.Body))
	return Body(r).Done()
}

// Param returns a route parameter, unescaped and sanitized. Control characters and invalid UTF-8, which no code can
// contain, are replaced, so the parameter matches nothing and is safe to log and store.
func Param(c echo.Context, name string) string { return RequestOf(c).Param(name) }

// sanitize replaces control characters and invalid UTF-8.
func sanitize(v string) string {
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

// plain reports whether s is ASCII without control characters.
func plain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return true
}
