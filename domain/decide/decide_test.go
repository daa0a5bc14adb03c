package decide

import (
	"strings"
	"testing"
	"time"
)

func TestDeriveFollowsTheDocument(t *testing.T) {
	// SHA-256 of sixteen bytes 0x01, sequence 7 and index 2, computed outside of Go (sha256sum of those 28 bytes),
	// with the version and variant bits set.
	var journal ID
	for i := range journal {
		journal[i] = 1
	}
	got := Stamp{Journal: journal, Sequence: 7}.Derive(2)
	if want := "eb1cf78e-e3d1-8d1d-a233-33e12fe6df27"; got.String() != want {
		t.Errorf("Derive = %s, want %s", got, want)
	}
	if v := got[6] >> 4; v != 8 {
		t.Errorf("version %d, want 8", v)
	}
	if got[8]>>6 != 2 {
		t.Errorf("variant bits %b, want 10", got[8]>>6)
	}
	if got == (Stamp{Journal: journal, Sequence: 7}).Derive(3) || got == (Stamp{Journal: journal, Sequence: 8}).Derive(2) {
		t.Error("another index or sequence gives the same id")
	}
}

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

func TestMemory(t *testing.T) {
	place := func(broker, key, print string) Command {
		return Command{Type: "order.place", Actor: Actor{Broker: broker}, Kept: Kept{Key: key, Fingerprint: print}}
	}
	start := TimeOf(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	var m Memory
	m.Note(Stamp{Sequence: 5, Time: start}, place("alpha", "k", "f1").Recorded())

	if d, ok, err := m.Recall(start+Hour, place("alpha", "k", "f1")); err != nil || !ok || !d.Repeated || d.Repeat != 5 {
		t.Errorf("the same request: %+v %v %v", d, ok, err)
	}
	if _, ok, err := m.Recall(start+Hour, place("alpha", "k", "f2")); err == nil || ok {
		t.Error("another request under the same key is let through")
	}
	for name, c := range map[string]Command{
		"another broker": place("beta", "k", "f2"), "another key": place("alpha", "k2", "f2"), "no key": place("alpha", "", "f2"),
		"another command": {Type: "order.cancel", Actor: Actor{Broker: "alpha"}, Kept: Kept{Key: "k", Fingerprint: "f2"}},
	} {
		if _, ok, err := m.Recall(start+Hour, c); ok || err != nil {
			t.Errorf("%s: remembered %v, %v", name, ok, err)
		}
	}
	if _, ok, err := m.Recall(start+Day, place("alpha", "k", "f2")); ok || err != nil {
		t.Errorf("a day later: remembered %v, %v", ok, err)
	}
	m.Note(Stamp{Sequence: 6, Time: start + Day}, place("alpha", "", "").Recorded())
	if m.Len() != 0 {
		t.Errorf("%d keys kept after a day", m.Len())
	}
}
