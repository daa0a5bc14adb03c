package columns

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestNumbers writes numbers in all formats and reads them again.
func TestNumbers(t *testing.T) {
	for _, c := range []struct {
		n      int64
		format byte
		text   string // empty if there is none
	}{
		{0, trimmed, "0"}, {0, 2, "0.00"}, {0, 8, "0.00000000"}, {0, 0, "0"}, {0, 9, ""}, {1, trimmed, "0.00000001"}, {-1, 8, "-0.00000001"},
		{1, 7, ""}, {150_000_000, trimmed, "1.5"}, {150_000_000, 1, "1.5"}, {150_000_000, 2, "1.50"}, {150_000_000, 0, ""},
		{-1_000_000_000, trimmed, "-10"}, {100_000_000, 0, "1"}, {10_203_040, trimmed, "0.1020304"}, {10_203_040, 6, ""}, {10_203_040, 7, "0.1020304"},
		{math.MaxInt64, trimmed, "92233720368.54775807"}, {-math.MaxInt64, 8, "-92233720368.54775807"}, {math.MinInt64, trimmed, ""}, {5, 254, ""}, {0, 254, ""},
	} {
		got, ok := appendNumber([]byte("x"), c.n, c.format)
		if ok != (c.text != "") || ok && string(got) != "x"+c.text {
			t.Errorf("appendNumber(%d, %d) = %q, %v, want %q", c.n, c.format, got, ok, c.text)
		}
	}
	rapid.Check(t, func(r *rapid.T) {
		text := rapid.StringMatching(`-?(0|[1-9][0-9]{0,9})(\.[0-9]{1,8})?`).Draw(r, "text")
		if n, format, ok := parseNumber([]byte(text)); ok {
			if again, ok := appendNumber(nil, n, format); !ok || string(again) != text {
				r.Errorf("%s is read as %d in format %d, which is %q", text, n, format, again)
			}
		}
	})
}
