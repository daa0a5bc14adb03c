package journal

import (
	"context"
	"time"
)

// gather is how far apart a reader's polls are at least. A record that comes alone is read at once; of those that
// follow on its heels a reader takes together what has come within this time, since to fetch costs about as much for
// one record as for many, and it would have to compete for the processors with the owner that appends them.
const gather = time.Millisecond

// gather waits until the last poll was long enough ago.
func (r *Reader) gather(ctx context.Context) error {
	wait := gather - time.Since(r.polled)
	if wait <= 0 {
		return nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
