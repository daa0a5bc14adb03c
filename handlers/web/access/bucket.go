package access

import "time"

// Bucket is a token bucket, which is full at first. The caller MUST serialize its calls.
type Bucket struct {
	perSecond, burst float64
	tokens           float64 // negative if more was charged than there was
	at               time.Time
}

// NewBucket returns a full bucket of burst tokens that earns perSecond.
func NewBucket(perSecond, burst float64, now time.Time) Bucket {
	return Bucket{perSecond: perSecond, burst: burst, tokens: burst, at: now}
}

// Take takes a token, if there is one, and reports whether it did.
func (b *Bucket) Take(now time.Time) bool {
	b.fill(now)
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}

// fill adds the tokens earned since the last call.
func (b *Bucket) fill(now time.Time) {
	if elapsed := now.Sub(b.at); elapsed > 0 { // a clock that was set back neither adds nor removes tokens
		b.tokens = min(b.burst, b.tokens+elapsed.Seconds()*b.perSecond)
		b.at = now
	}
}

// full reports whether the bucket is as a new one.
func (b *Bucket) full(now time.Time) bool {
	b.fill(now)
	return b.tokens >= b.burst
}

// secondsFor returns the seconds in which a number of tokens is earned.
func (b *Bucket) secondsFor(tokens float64) float64 { return tokens / b.perSecond }
