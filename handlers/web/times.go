package web

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// What a timestamp may be: from 2000, or for a bound of a search from 1970, to the end of 2100.
const (
	epoch    scalar.Time = 0
	earliest scalar.Time = 946684800 * scalar.Second
	latest   scalar.Time = 4133980800*scalar.Second - 1
)

// Time reads a required timestamp: any of RFC 3339 that is no finer than a microsecond, or an integer of milliseconds
// since 1970.
func (f *Form) Time(name string) scalar.Time { return f.time(name, true, earliest).Value }

// OptionalTime reads a timestamp that may be absent.
func (f *Form) OptionalTime(name string) Optional[scalar.Time] { return f.time(name, false, earliest) }

// Bound reads a timestamp that bounds a search, which may be of any time from 1970 on. It is never zero where it is set.
func (f *Form) Bound(name string, required bool) Optional[scalar.Time] {
	t := f.time(name, required, epoch)
	if t.Set {
		t.Value = max(t.Value, 1) // there is nothing as old as either
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
		code, message = WrongType, "the timestamp must be a string or an integer of milliseconds since 1970"
	default:
		if w := stringFlaw(n, nil); w.code != "" {
			code, message = w.code, w.message
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

// ParseTime reads the text of a timestamp in the years from 2000. It returns an empty code if there is nothing wrong.
func ParseTime(text string) (t scalar.Time, code, message string) {
	if t, code, message = readTime(text); code == "" {
		code, message = ofYears(t, earliest)
	}
	return t, code, message
}

func ofYears(t, least scalar.Time) (code, message string) {
	if t < least || t > latest {
		return OutOfRange, "the timestamp must be in the years " + strconv.Itoa(least.Std().Year()) + " to 2100"
	}
	return "", ""
}

func milliseconds(text string) (t scalar.Time, code, message string) {
	if !isInteger(text) {
		return 0, InvalidValue, "the number must be an integer of milliseconds since 1970, in plain digits"
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > int64(latest/scalar.Millisecond) {
		return latest + 1, "", "" // of no year that is allowed
	}
	return scalar.Time(n) * scalar.Millisecond, "", ""
}

// rfc3339 is what time.Parse is asked to read: by itself it takes a comma for a point, and hours of one digit, too.
var rfc3339 = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`)

func readTime(text string) (t scalar.Time, code, message string) {
	if t, err := scalar.ParseTime(text); err == nil { // as we write it ourselves
		return t, "", ""
	}
	text = strings.ToUpper(text)
	parts := rfc3339.FindStringSubmatch(text)
	v, err := time.Parse(time.RFC3339Nano, text)
	switch {
	case parts == nil || err != nil:
		return 0, InvalidValue, "the timestamp must be one of RFC 3339, like 2006-01-02T15:04:05.000000Z (a + in a query is written %2B)"
	case len(parts[1]) > len(".000000") && strings.Trim(parts[1][len(".000000"):], "0") != "":
		return 0, TooManyDigits, "the timestamp must not be finer than a microsecond"
	}
	return scalar.TimeOf(v), "", ""
}
