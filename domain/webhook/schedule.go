package webhook

import (
	"encoding/binary"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Schedule lists the waits before each retry. Its first element is the wait between the first attempt and the second. A
// schedule of n waits allows n+1 attempts.
type Schedule []scalar.Time

// DefaultSchedule spreads nine retries over about three days.
func DefaultSchedule() Schedule {
	const minute, hour = scalar.Minute, scalar.Hour
	return Schedule{5 * scalar.Second, 5 * minute, 30 * minute, 2 * hour, 5 * hour, 10 * hour, 14 * hour, 20 * hour, 24 * hour}
}

// jitter is the greatest deviation of a wait in percent. It spreads the retries of deliveries that failed together.
const jitter = 20

// Next returns the time of the next attempt, after the attempt with the given number (from 1) ended. It returns false
// after the last attempt. The delivery's id determines the jitter, so that every computation gives the same time. after
// is the receiver's Retry-After, or 0: it is honored within one to two times the wait, without jitter.
func (s Schedule) Next(delivery scalar.ID, attempt int, ended, after scalar.Time) (scalar.Time, bool) {
	if attempt < 1 || attempt > len(s) {
		return 0, false
	}
	wait := s[attempt-1]
	if after > 0 {
		return ended + min(max(after, wait), 2*wait), true
	}
	// The middle of a derived id is practically random. The odd multiplier gives each attempt another value.
	off := (binary.BigEndian.Uint64(delivery[4:12]) + uint64(attempt)*0x9e3779b97f4a7c15) % (2*jitter*1000 + 1)
	return ended + wait + (wait/(100*1000))*(scalar.Time(off)-jitter*1000), true
}
