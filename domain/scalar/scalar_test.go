package scalar

import (
	"strings"
	"testing"
	"time"
)

func TestTimeHasOneForm(t *testing.T) {
	at := TimeOf(time.Date(2026, 3, 31, 8, 0, 0, 1999, time.UTC))
	if got := at.String(); got != "2026-03-31T08:00:00.000001Z" {
		t.Errorf("String = %s", got)
	}
	back, err := ParseTime(at.String())
	if err != nil || back != at {
		t.Errorf("ParseTime = %v, %v", back, err)
	}
	for _, bad := range []string{"", "2026-03-31T08:00:00Z", "2026-03-31T08:00:00.000001+00", "2026-03-31T08:00:00.0000011Z",
		"2026-13-31T08:00:00.000001Z", "2026-03-31 08:00:00.000001Z", "2026-03-31T08:00:00,000001Z"} {
		if got, err := ParseTime(bad); err == nil {
			t.Errorf("ParseTime(%q) = %s, want an error", bad, got)
		}
	}
}

func FuzzIDText(f *testing.F) {
	f.Add("00000000-0000-8000-8000-000000000001")
	f.Add("not-a-uuid")
	f.Fuzz(func(t *testing.T, s string) {
		id, err := ParseID(s)
		if err == nil && !strings.EqualFold(id.String(), s) {
			t.Errorf("ParseID(%q) prints as %s", s, id)
		}
	})
}

// TestTimeIsPackageTimes holds what is written out against package time, on every day of four centuries and at every
// microsecond's digit.
func TestTimeIsPackageTimes(t *testing.T) {
	check := func(at Time) {
		text, _ := at.AppendText(nil)
		if want := at.Std().Format(TimeLayout); string(text) != want {
			t.Fatalf("%d prints as %s, not %s", at, text, want)
		}
		var back Time
		if err := back.UnmarshalText(text); err != nil || back != at {
			t.Fatalf("%s reads as %d, %v, not %d", text, back, err, at)
		}
	}
	for day := Time(0); day < 150_000; day++ {
		check(day * Day)
		check((day+1)*Day - 1)
	}
	for _, at := range []Time{-1, -Day, year10000 - 1, TimeOf(time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)), TimeOf(time.Date(9999, 12, 31, 23, 59, 59, 999999000, time.UTC))} {
		check(at)
	}
	for at := Time(1); at < year10000; at = at*3 + 1 {
		check(at)
	}
	for _, bad := range []string{"2026-02-29T08:00:00.000001Z", "2026-04-31T08:00:00.000001Z", "2026-03-31T24:00:00.000001Z", "2026-03-31T08:60:00.000001Z",
		"2026-03-31T08:00:60.000001Z", "2026-00-31T08:00:00.000001Z", "2026-03-00T08:00:00.000001Z", "2026/03/31T08:00:00.000001Z", "2026-03-31T08:00:00.000001z", "+026-03-31T08:00:00.000001Z"} {
		if got, err := ParseTime(bad); err == nil {
			t.Errorf("ParseTime(%q) = %s, want an error", bad, got)
		}
	}
}

func FuzzTimeText(f *testing.F) {
	f.Add("2026-03-31T08:00:00.000001Z")
	f.Fuzz(func(t *testing.T, s string) {
		at, err := ParseTime(s)
		if err == nil && at.String() != s {
			t.Errorf("ParseTime(%q) prints as %s", s, at)
		}
	})
}
