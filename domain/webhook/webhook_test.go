package webhook

import (
	"encoding/binary"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// TestSchedule: every wait lies within a fifth of its own length, whatever the delivery, uses that width, and is the same
// whenever it is computed; the attempt after the last wait is the last.
func TestSchedule(t *testing.T) {
	s, ended := DefaultSchedule(), 1_000*scalar.Day
	if len(s) != 9 {
		t.Errorf("%d waits between the attempts", len(s))
	}
	for attempt, wait := range s {
		least, most := scalar.Time(1<<62), scalar.Time(0)
		for n := range 2_000 {
			var delivery scalar.ID
			binary.BigEndian.PutUint64(delivery[4:], uint64(n)*0x9e3779b97f4a7c15)
			at, again := s.Next(delivery, attempt+1, ended, 0)
			if repeated, _ := s.Next(delivery, attempt+1, ended, 0); !again || repeated != at {
				t.Fatalf("attempt %d: %d, then %d, %t", attempt+1, at, repeated, again)
			}
			least, most = min(least, at-ended), max(most, at-ended)
		}
		if least < wait*8/10 || most > wait*12/10 || least > wait*81/100 || most < wait*119/100 {
			t.Errorf("wait %d of %d: from %d to %d", attempt+1, wait, least, most)
		}
	}
	for _, attempt := range []int{-1, 0, len(s) + 1, len(s) + 2} {
		if at, again := s.Next(scalar.ID{}, attempt, ended, 0); again {
			t.Errorf("attempt %d is followed by one at %d", attempt, at)
		}
	}
}

// TestRetryAfter: what a receiver asks for counts between the wait and twice the wait.
func TestRetryAfter(t *testing.T) {
	s := Schedule{10 * scalar.Second}
	for asked, want := range map[scalar.Time]scalar.Time{1: 10, 9: 10, 10: 10, 15: 15, 20: 20, 21: 20, 86_400: 20} {
		if at, again := s.Next(scalar.ID{1}, 1, scalar.Day, asked*scalar.Second); !again || at != scalar.Day+want*scalar.Second {
			t.Errorf("after %d s: %d, %t", asked, at-scalar.Day, again)
		}
	}
}

func TestSelections(t *testing.T) {
	all, some := Selection{All: true}, Selection{Types: []EventType{EntitlementFailed, Test}}
	for _, e := range EventTypes() {
		if !all.Wants(e) || some.Wants(e) != (e == EntitlementFailed || e == Test) {
			t.Errorf("%s: %t, %t", e, all.Wants(e), some.Wants(e))
		}
		if got, known := ParseEventType(string(e)); !known || got != e {
			t.Errorf("%s is read as %s, %t", e, got, known)
		}
	}
	if _, known := ParseEventType("entitlementcompleted"); known || (Selection{}).Wants(Test) {
		t.Error("a type in small letters, or an event that nobody wants")
	}
	var named []EventType
	for _, e := range EventTypes() {
		if e.NamesTrigger() {
			named = append(named, e)
		}
	}
	if len(named) != 3 {
		t.Errorf("%v name a trigger", named)
	}
	for s, open := range map[Status]bool{Pending: true, Retrying: true, Delivered: false, Dead: false, Canceled: false} {
		if s.IsOpen() != open {
			t.Errorf("%s", s)
		}
	}
}
