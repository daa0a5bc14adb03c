package capacity

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
)

// TestATenantLeavesRoomForOthers has one tenant take all places that it gets.
func TestATenantLeavesRoomForOthers(t *testing.T) {
	p := New(3, 2, time.Millisecond, Busy{"BUSY", "No."})
	take := func(tenant string) (leave func(), code string) {
		leave, err := p.Take(t.Context(), tenant)
		if err != nil {
			return nil, problem.Of(err).Code
		}
		return leave, ""
	}
	var leave []func()
	for _, want := range []struct{ tenant, code string }{{"alpha", ""}, {"alpha", ""}, {"alpha", "BUSY"}, {"beta", ""}, {"gamma", "BUSY"}} {
		l, code := take(want.tenant)
		if code != want.code {
			t.Fatalf("%s: %q, want %q", want.tenant, code, want.code)
		}
		if l != nil {
			leave = append(leave, l)
		}
	}
	leave[0]()
	again, code := take("alpha")
	if code != "" {
		t.Errorf("a place that was given back is not there: %s", code)
	}
	for _, l := range append(leave[1:], again) {
		l()
	}
}

func TestWhoWaitsForAPlaceGetsTheNext(t *testing.T) {
	p := New(2, 1, time.Hour, Busy{})
	leave, err := p.Take(t.Context(), "alpha")
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan error)
	go func() {
		next, err := p.Take(t.Context(), "alpha")
		if err == nil {
			next()
		}
		got <- err
	}()
	leave()
	if err := <-got; err != nil {
		t.Error(err)
	}
	full, err := p.Take(t.Context(), "alpha")
	if err != nil {
		t.Fatal(err)
	}
	defer full()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Take(gone, "alpha"); !errors.Is(err, context.Canceled) {
		t.Errorf("a client that is gone: %v", err)
	}
}
