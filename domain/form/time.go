package form

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/fastjson"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/validation"
)

// Timestamps must be in the years 2000 to 2100. Bounds of a search may begin in 1970.
const (
	earliest scalar.Time = 946684800 * scalar.Second
	latest   scalar.Time = 4133980800*scalar.Second - 1
)

// Time is a timestamp of RFC 3339 in the years 2000 to 2100 and no finer than a microsecond, or an integer of
// milliseconds since 1970.
func Time() Kind[scalar.Time] { return TimeSince(earliest) }

// TimeSince is Time of an earlier year.
func TimeSince(least scalar.Time) Kind[scalar.Time] {
	return Kind[scalar.Time]{
		schema: func() string {
			return fmt.Sprintf(`{"oneOf":[{"type":"string","pattern":"^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]{1,6}0*)?([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$"},`+
				`{"type":"integer","format":"int64","minimum":%d,"maximum":%d}]}`, least/scalar.Millisecond, latest/scalar.Millisecond)
		},
		read: func(in Value) (t scalar.Time, e *validation.FieldError) {
			switch {
			case in.Broken:
				return 0, nil
			case in.Kind == '0', in.Parameter && IsInteger(string(in.Text)):
				t, e = milliseconds(string(in.Text))
			case in.Kind != '"':
				e = fail(validation.WrongType, "the timestamp must be a string or an integer of milliseconds since 1970", "")
			case t.UnmarshalText(in.Text) == nil: // the form that this program writes
			default:
				if _, e = ReadText(in); e != nil {
					e.Kind, e.Args = "", nil
				} else {
					t, e = readTime(string(in.Text))
				}
			}
			if e == nil {
				e = ofYears(t, least)
			}
			if e != nil {
				t = 0
			}
			return t, e
		},
		write: func(w *fastjson.Writer, v scalar.Time) { fastjson.Text(w, v) },
	}
}

// ParseTime parses a timestamp in the years 2000 to 2100.
func ParseTime(text string) (scalar.Time, *validation.FieldError) {
	t, e := readTime(text)
	if e == nil {
		e = ofYears(t, earliest)
	}
	return t, e
}

func ofYears(t, least scalar.Time) *validation.FieldError {
	if t < least || t > latest {
		return fail(validation.OutOfRange, "the timestamp must be in the years "+strconv.Itoa(least.Std().Year())+" to 2100", "")
	}
	return nil
}

func milliseconds(text string) (scalar.Time, *validation.FieldError) {
	if !IsInteger(text) {
		return 0, fail(validation.InvalidValue, "the number must be an integer of milliseconds since 1970, in plain digits", "")
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > int64(latest/scalar.Millisecond) {
		return latest + 1, nil // outside the allowed years
	}
	return scalar.Time(n) * scalar.Millisecond, nil
}

// rfc3339 restricts time.Parse, which also accepts a decimal comma and hours of one digit.
var rfc3339 = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`)

func readTime(text string) (scalar.Time, *validation.FieldError) {
	if t, err := scalar.ParseTime(text); err == nil {
		return t, nil
	}
	text = strings.ToUpper(text)
	parts := rfc3339.FindStringSubmatch(text)
	v, err := time.Parse(time.RFC3339Nano, text)
	switch {
	case parts == nil || err != nil:
		return 0, fail(validation.InvalidValue, "the timestamp must be one of RFC 3339, like 2006-01-02T15:04:05.000000Z (a + in a query is written %2B)", "")
	case len(parts[1]) > len(".000000") && strings.Trim(parts[1][len(".000000"):], "0") != "":
		return 0, fail(validation.TooManyDigits, "the timestamp must not be finer than a microsecond", "")
	}
	return scalar.TimeOf(v), nil
}
