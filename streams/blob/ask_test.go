package blob

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestABlobIsReadForAsLongAsItComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		n, err := ask(t.Context(), newLine(), Patience, func(_ context.Context, alive func()) (int, error) {
			for range 5 {
				time.Sleep(Patience - time.Millisecond)
				alive()
			}
			return 5, nil
		})
		if n != 5 || err != nil || time.Since(start) <= Patience {
			t.Errorf("%d after %v: %v", n, time.Since(start), err)
		}
	})
}
