package trading

import (
	"strings"

	"github.com/perpetua-exchange/perpetua/handlers/web"
)

// maxFilter bounds the text of a filter, and with it the work of matching.
const maxFilter = 1000

// filter is a set of patterns, of which one must match the whole of a value, without regard to case. In a pattern *
// stands for any sequence of characters. A filter without patterns matches everything.
type filter []string

// readFilter reads patterns separated by pipes.
func readFilter(f *web.Form, name string) filter {
	text := f.OptionalString(name, web.MaxLength(maxFilter), func(s string) (code, message string) {
		for _, pattern := range strings.Split(s, "|") {
			if pattern == "" {
				return web.InvalidValue, "the filter must not hold an empty value"
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

// glob matches the whole of a value. It goes back to the last * only, so its time is bounded by the product of the
// two lengths.
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
