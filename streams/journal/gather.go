package journal

import (
	"context"
	"time"
)

// gather is the minimum interval between a reader's polls. An isolated record is read immediately. Records in rapid
// succession are fetched together once per interval: a fetch of many records costs about as much as a fetch of one, and
// it competes for the processors with the owner that appends the records.
const gather = time.Millisecond

// gather waits until the interval since the last poll has passed.
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
