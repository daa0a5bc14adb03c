package trading

import (
	"strings"

	"github.com/perpetua-exchange/perpetua/domain/validation"
	"github.com/perpetua-exchange/perpetua/handlers/web/input"
)

// maxFilter limits the length of a filter and therefore the cost of matching.
const maxFilter = 1000

// filter is a list of patterns. A value matches if one pattern matches the whole value, ignoring case. In a pattern,
// * matches any sequence of characters. A filter without patterns matches everything.
type filter []string

// readFilter reads patterns separated by pipes.
func readFilter(f *input.Form, name string) filter {
	text := f.OptionalString(name, input.MaxLength(maxFilter), func(s string) (code, message string) {
		for _, pattern := range strings.Split(s, "|") {
			if pattern == "" {
				return validation.InvalidValue, "the filter must not hold an empty value"
			}
		}
		return "", ""
	})
	if !text.Set {
		return nil
	}
	return strings.Split(strings.ToUpper(text.Value), "|")
}

func (f filter) match(value string) bool {
	if len(f) == 0 {
		return true
	}
	value = strings.ToUpper(value)
	for _, pattern := range f {
		if glob(pattern, value) {
			return true
		}
	}
	return false
}

// glob matches the whole value. It backtracks only to the last *, so its time is at most proportional to the product
// of the lengths.
func glob(pattern, value string) bool {
	p, v := 0, 0
	star, resume := -1, 0
	for v < len(value) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, resume = p, v
			p++
		case p < len(pattern) && pattern[p] == value[v]:
			p++
			v++
		case star >= 0:
			resume++
			p, v = star+1, resume
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}
