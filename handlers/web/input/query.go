package input

import (
	"net/http"
	"net/url"
	"sort"
	"strconv"
	"unicode/utf8"

	"github.com/perpetua-exchange/perpetua/domain/validation"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
)

// Query parses the raw query string of a request. Unknown and repeated parameters are errors.
func Query(raw string) *Form {
	f := &Form{where: inQuery, errs: newErrors(validation.InQuery), root: &node{kind: '{'}}
	if raw == "" {
		return f
	}
	f.root.members = make(map[string]*node)
	values, err := url.ParseQuery(raw)
	if err != nil {
		f.problem = problem.New(http.StatusBadRequest, problem.MalformedQuery, "The query string is not valid.")
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

// Path returns a form of a route's parameters, for parameters that must be valid. value returns a parameter.
func Path(names []string, value func(name string) string) *Form {
	f := &Form{where: inPath, errs: newErrors(validation.InPath), root: &node{kind: '{', members: make(map[string]*node)}}
	for _, name := range names {
		f.root.members[name] = &node{kind: '"', text: value(name)}
	}
	return f
}

// Number reads a number in a path: digits without a sign or a leading zero, so that a resource has one path. It returns false for
// anything else, which names no resource.
func Number(text string) (n int64, ok bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && n >= 0 && strconv.FormatInt(n, 10) == text
}
