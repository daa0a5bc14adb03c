package webhook

import (
	"encoding/binary"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Schedule is how long to wait before each retry: its first element stands between the first attempt and the second. A
// schedule of n waits has n+1 attempts.
type Schedule []scalar.Time

// DefaultSchedule spreads nine retries over some three days.
func DefaultSchedule() Schedule {
	const minute, hour = scalar.Minute, scalar.Hour
	return Schedule{5 * scalar.Second, 5 * minute, 30 * minute, 2 * hour, 5 * hour, 10 * hour, 14 * hour, 20 * hour, 24 * hour}
}

// Attempts returns how often a delivery is tried at most.
func (s Schedule) Attempts() int { return len(s) + 1 }

// jitter is how far a wait may be off, as a part of 100: many deliveries that failed together are not tried together.
const jitter = 20

// Next returns when to try again after the attempt with the number (1 for the first), which ended at a time; false says
// that it was the last one. The delivery's id decides how far the wait is off, so that whoever computes it finds the same.
// after is what the receiver asked for by Retry-After, 0 for nothing: it is followed between the wait and twice the wait.
func (s Schedule) Next(delivery scalar.ID, attempt int, ended, after scalar.Time) (scalar.Time, bool) {
	if attempt < 1 || attempt > len(s) {
		return 0, false
	}
	wait := s[attempt-1]
	if after > 0 {
		return ended + min(max(after, wait), 2*wait), true
	}
	// The middle of a derived id is as good as random, and attempts are told apart by an odd multiplier.
	off := (binary.BigEndian.Uint64(delivery[4:12]) + uint64(attempt)*0x9e3779b97f4a7c15) % (2*jitter*1000 + 1)
	return ended + wait + (wait/(100*1000))*(scalar.Time(off)-jitter*1000), true
}
