package slots

import (
	"context"
	"testing"
	"testing/synctest"
)

// TestSlots checks both limits, and that nothing is left of users who have gone, waiting ones included.
func TestSlots(t *testing.T) { synctest.Test(t, testSlots) }

func testSlots(t *testing.T) {
	s := New(3, 2)
	ended, cancel := context.WithCancel(t.Context())
	cancel() // take what is free, and wait for nothing
	var leave []func()
	for _, want := range []struct {
		user string
		ok   bool
	}{{"a", true}, {"a", true}, {"a", false}, {"b", true}, {"c", false}, {"b", false}} {
		l, ok := s.Take(ended, want.user)
		if ok != want.ok {
			t.Fatalf("%s: %v, want %v", want.user, ok, want.ok)
		}
		if ok {
			leave = append(leave, l)
		}
	}
	waiting := make(chan func(), 1)
	go func() {
		l, _ := s.Take(t.Context(), "a")
		waiting <- l
	}()
	synctest.Wait()
	if len(waiting) > 0 {
		t.Fatal("a third operation of a user does not wait")
	}
	leave[0]()
	for _, l := range append(leave[1:], <-waiting) {
		l()
	}
	if len(s.shares) > 0 || len(s.all) > 0 {
		t.Errorf("%d users and %d slots are left", len(s.shares), len(s.all))
	}
}
