package decide

import (
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

func TestDeriveFollowsTheDocument(t *testing.T) {
	// SHA-256 of sixteen bytes 0x01, sequence 7 and index 2, computed outside of Go (sha256sum of those 28 bytes),
	// with the version and variant bits set.
	var journal scalar.ID
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

func TestMemory(t *testing.T) {
	place := func(broker, key, print string) Command {
		return Command{Type: "order.place", Actor: Actor{Broker: broker}, Metadata: Metadata{Key: key, Fingerprint: print}}
	}
	start := scalar.TimeOf(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	var m Memory
	m.Note(Stamp{Sequence: 5, Time: start}, place("alpha", "k", "f1").Recorded())

	if d, ok, err := m.Lookup(start+scalar.Hour, place("alpha", "k", "f1")); err != nil || !ok || !d.Repeated || d.Repeat != 5 {
		t.Errorf("the same request: %+v %v %v", d, ok, err)
	}
	if _, ok, err := m.Lookup(start+scalar.Hour, place("alpha", "k", "f2")); err == nil || ok {
		t.Error("another request under the same key is let through")
	}
	for name, c := range map[string]Command{
		"another broker": place("beta", "k", "f2"), "another key": place("alpha", "k2", "f2"), "no key": place("alpha", "", "f2"),
		"another command": {Type: "order.cancel", Actor: Actor{Broker: "alpha"}, Metadata: Metadata{Key: "k", Fingerprint: "f2"}},
	} {
		if _, ok, err := m.Lookup(start+scalar.Hour, c); ok || err != nil {
			t.Errorf("%s: remembered %v, %v", name, ok, err)
		}
	}
	if _, ok, err := m.Lookup(start+scalar.Day, place("alpha", "k", "f2")); ok || err != nil {
		t.Errorf("a day later: remembered %v, %v", ok, err)
	}
	m.Note(Stamp{Sequence: 6, Time: start + scalar.Day}, place("alpha", "", "").Recorded())
	if m.Len() != 0 {
		t.Errorf("%d keys kept after a day", m.Len())
	}
}

// What the time moves by from one term to the next is another node's wall clock, or a venue's that stood still: neither
// makes a key old by more than a minute, so a clock that is days ahead forgets none.
func TestATermsFirstRecordMakesNoKeyOld(t *testing.T) {
	place := Command{Type: "order.place", Actor: Actor{Broker: "alpha"}, Metadata: Metadata{Key: "k", Fingerprint: "f"}}
	taken := Recorded{Type: TypeTaken, Actor: Engine}
	now := scalar.TimeOf(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	var m Memory
	remembers := func(after scalar.Time) bool {
		_, ok, err := m.Lookup(now+after, place)
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	m.Note(Stamp{Sequence: 1, Time: now}, taken)
	m.Note(Stamp{Sequence: 2, Time: now}, place.Recorded())
	for n := range int64(10) {
		now += 3 * scalar.Day
		m.Note(Stamp{Sequence: 3 + n, Time: now}, taken)
		if !remembers(0) {
			t.Fatalf("after %d terms with clocks that are days ahead the key is forgotten", n+1)
		}
	}
	if left := Remember - 10*scalar.Minute; !remembers(left-1) || remembers(left) {
		t.Error("within a term, time does not count in full, or what counted before it does not")
	}
	now += Remember - 10*scalar.Minute
	m.Note(Stamp{Sequence: 13, Time: now}, Recorded{Type: "order.place"})
	if m.Len() != 0 {
		t.Errorf("%d keys are kept after a day of service", m.Len())
	}
}
