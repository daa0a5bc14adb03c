package input

import (
	"net/url"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/validation"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
)

const march31 = 1_774_944_000_000_000 // 2026-03-31T08:00:00Z

// TestTimesAsClientsWriteThem: every timestamp of RFC 3339, and milliseconds, in a body and in a query.
func TestTimesAsClientsWriteThem(t *testing.T) {
	const earliest, latest = 946684800 * scalar.Second, 4133980800*scalar.Second - 1
	for text, want := range map[string]scalar.Time{
		`"2026-03-31T08:00:00.000000Z"`:      march31,
		`"2026-03-31T08:00:00Z"`:             march31,
		`"2026-03-31t08:00:00z"`:             march31,
		`"2026-03-31T08:00:00.123Z"`:         march31 + 123_000,     // JavaScript
		`"2026-03-31T08:00:00.123456+00:00"`: march31 + 123_456,     // Python
		`"2026-03-31T10:00:00.000001+02:00"`: march31 + 1,           // with an offset
		`"2026-03-31T02:30:00.5-05:30"`:      march31 + 500_000,     //
		`"2026-03-31T08:00:00.123456000Z"`:   march31 + 123_456,     // Java
		`"2000-01-01T00:00:00Z"`:             earliest,              //
		`"2101-01-01T00:59:59.999999+01:00"`: latest,                //
		`"2024-02-29T00:00:00Z"`:             1_709_164_800_000_000, //
		`1774944000123`:                      march31 + 123_000,     // milliseconds
		`946684800000`:                       earliest,              //
		`4133980799999`:                      latest - 999,          //
	} {
		f := Body([]byte(`{"at":`+text+`}`), nil)
		if got := f.OptionalTime("at").Value; f.Done() != nil || got != want {
			t.Errorf("%s: %s, %v", text, got, f.Done())
		}
		plain := text
		if text[0] == '"' {
			plain = text[1 : len(text)-1]
		}
		q := Query("at=" + url.QueryEscape(plain))
		if got := q.OptionalTime("at").Value; q.Done() != nil || got != want {
			t.Errorf("%s in a query: %s, %v", plain, got, q.Done())
		}
	}
}

func TestTimesThatAreRefused(t *testing.T) {
	for text, code := range map[string]string{
		`"2026-03-31T08:00:00.1234567Z"`:       validation.TooManyDigits,
		`"2026-03-31T08:00:00.0000000000001Z"`: validation.TooManyDigits,
		`"2026-03-31T08:00:00,5Z"`:             validation.InvalidValue,
		`"2026-03-31T8:00:00Z"`:                validation.InvalidValue,
		`"2026-03-31T08:00:00"`:                validation.InvalidValue,
		`"2026-03-31 08:00:00Z"`:               validation.InvalidValue,
		`"2026-03-31T08:00:00+24:00"`:          validation.InvalidValue,
		`"2026-03-31T08:00:00 00:00"`:          validation.InvalidValue,
		`"2026-02-29T08:00:00Z"`:               validation.InvalidValue,
		`"2026-03-31T08:00:60Z"`:               validation.InvalidValue,
		`"2026-03-31"`:                         validation.InvalidValue,
		`"1999-12-31T23:59:59.999999Z"`:        validation.OutOfRange,
		`"2101-01-01T00:00:00Z"`:               validation.OutOfRange,
		`"2000-01-01T00:00:00+00:01"`:          validation.OutOfRange,
		`946684799999`:                         validation.OutOfRange,
		`4133980800000`:                        validation.OutOfRange,
		`-1`:                                   validation.OutOfRange,
		`99999999999999999999`:                 validation.OutOfRange,
		`1774944000123.5`:                      validation.InvalidValue,
		`1.774944e12`:                          validation.InvalidValue,
		`"1774944000123"`:                      validation.InvalidValue,
		`true`:                                 validation.WrongType,
		`{}`:                                   validation.WrongType,
		`""`:                                   validation.InvalidValue,
		`"\u0000"`:                             validation.ControlCharacter,
	} {
		f := Body([]byte(`{"at":`+text+`}`), nil)
		f.OptionalTime("at")
		p, ok := f.Done().(*problem.Problem)
		if !ok || len(p.Errors) != 1 || p.Errors[0].Code != code || p.Errors[0].Path.String() != "at" {
			t.Errorf("%s: %+v, want %s", text, f.Done(), code)
		}
	}
}

// TestBounds: what bounds a search may be as old as 1970, and is never taken for none.
func TestBounds(t *testing.T) {
	for text, want := range map[string]scalar.Time{"0": 1, "1970-01-01T00:00:00Z": 1, "1": 1000, "1999-01-01T00:00:00Z": 915_148_800_000_000} {
		q := Query("from=" + text)
		if got := q.Bound("from", true); q.Done() != nil || got.Value != want || !got.Set {
			t.Errorf("%s: %v, %v", text, got, q.Done())
		}
	}
	q := Query("from=1969-12-31T23:59:59Z")
	if got := q.Bound("from", false); q.Done() == nil || got.Set {
		t.Errorf("%v before 1970", got)
	}
}
