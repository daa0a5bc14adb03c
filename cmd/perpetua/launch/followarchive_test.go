package launch

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"
)

// TestTrimsBetweenCopies: a trim that has more to delete continues after the next copy, and one that has nothing waits for ten copies.
func TestTrimsBetweenCopies(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	copies := 0
	var at []int // copies before each trim
	a := &archiveSource{every: time.Nanosecond, log: slog.New(slog.DiscardHandler)}
	err := a.run(ctx, func() { copies++ }, func(context.Context) (more bool) {
		if at = append(at, copies); len(at) == 5 {
			stop()
		}
		return len(at) < 3
	})
	if want := []int{1, 2, 3, 13, 23}; err != nil || !slices.Equal(at, want) {
		t.Errorf("trims after %v copies, want %v: %v", at, want, err)
	}
}
