package launch

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestALookHasItsOwnTime: a check that waits for its whole time, such as that of a bucket that does not answer, leaves the next ones theirs.
func TestALookHasItsOwnTime(t *testing.T) {
	wait := func(ctx context.Context) error { <-ctx.Done(); return nil }
	if err := lookAtAll(t.Context(), look{time.Millisecond, wait}, look{time.Hour, context.Context.Err}); err != nil {
		t.Errorf("the check after a bucket that does not answer: %v", err)
	}
	wrong := errors.New("wrong")
	if err := lookAtAll(t.Context(), look{time.Hour, func(context.Context) error { return wrong }}, look{time.Hour, wait}); !errors.Is(err, wrong) {
		t.Errorf("a check that fails: %v", err)
	}
}
