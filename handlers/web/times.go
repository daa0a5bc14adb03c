package web

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/validation"
)

// Timestamps must be in the years 2000 to 2100. Bounds of a search may begin in 1970.
const (
	epoch    scalar.Time = 0
	earliest scalar.Time = 946684800 * scalar.Second
	latest   scalar.Time = 4133980800*scalar.Second - 1
)

// OptionalTime reads an optional timestamp.
func (f *Form) OptionalTime(name string) Optional[scalar.Time] { return f.time(name, false, earliest) }

// Bound reads a bound of a search, which may be any time since 1970. Its value is never zero if it is set.
func (f *Form) Bound(name string, required bool) Optional[scalar.Time] {
	t := f.time(name, required, epoch)
	if t.Set {
		t.Value = max(t.Value, 1) // no record is this old, so 0 and 1 are equivalent
	}
	return t
}

func (f *Form) time(name string, required bool, least scalar.Time) Optional[scalar.Time] {
	n := f.member(name, required)
	if n == nil || n.broken {
		return Optional[scalar.Time]{}
	}
	var t scalar.Time
	code, message := "", ""
	switch {
	case n.kind == '0', f.where == inQuery && isInteger(n.text):
		t, code, message = milliseconds(n.text)
	case n.kind != '"':
		code, message = validation.WrongType, "the timestamp must be a string or an integer of milliseconds since 1970"
	default:
		if e := stringError(n, nil); e.Code != "" {
			code, message = e.Code, e.Message
		} else {
			t, code, message = readTime(n.text)
		}
	}
	if code == "" {
		code, message = ofYears(t, least)
	}
	if code != "" {
		f.Fault(name, code, message)
		return Optional[scalar.Time]{}
	}
	return Optional[scalar.Time]{t, true}
}

// ParseTime parses a timestamp in the years 2000 to 2100. It returns an empty code if it is valid.
func ParseTime(text string) (t scalar.Time, code, message string) {
	if t, code, message = readTime(text); code == "" {
		code, message = ofYears(t, earliest)
	}
	return t, code, message
}

func ofYears(t, least scalar.Time) (code, message string) {
	if t < least || t > latest {
		return validation.OutOfRange, "the timestamp must be in the years " + strconv.Itoa(least.Std().Year()) + " to 2100"
	}
	return "", ""
}

func milliseconds(text string) (t scalar.Time, code, message string) {
	if !isInteger(text) {
		return 0, validation.InvalidValue, "the number must be an integer of milliseconds since 1970, in plain digits"
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > int64(latest/scalar.Millisecond) {
		return latest + 1, "", "" // outside the allowed years
	}
	return scalar.Time(n) * scalar.Millisecond, "", ""
}

// rfc3339 restricts time.Parse, which also accepts a decimal comma and hours of one digit.
var rfc3339 = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`)

func readTime(text string) (t scalar.Time, code, message string) {
	if t, err := scalar.ParseTime(text); err == nil { // the form that this program writes
		return t, "", ""
	}
	text = strings.ToUpper(text)
	parts := rfc3339.FindStringSubmatch(text)
	v, err := time.Parse(time.RFC3339Nano, text)
	switch {
	case parts == nil || err != nil:
		return 0, validation.InvalidValue, "the timestamp must be one of RFC 3339, like 2006-01-02T15:04:05.000000Z (a + in a query is written %2B)"
	case len(parts[1]) > len(".000000") && strings.Trim(parts[1][len(".000000"):], "0") != "":
		return 0, validation.TooManyDigits, "the timestamp must not be finer than a microsecond"
	}
	return scalar.TimeOf(v), "", ""
}
