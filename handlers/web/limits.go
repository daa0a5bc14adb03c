package web

import (
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
)

// limits holds a token bucket for each user that an operator has limited.
type limits struct {
	now func() time.Time

	mu      sync.Mutex
	buckets map[string]*bucket
}

type bucket struct {
	limit  RateLimit
	tokens float64
	at     time.Time
}

func newLimits(now func() time.Time) *limits {
	return &limits{now: now, buckets: make(map[string]*bucket)}
}

// take takes a token, and says in the RateLimit headers what is left. Without a limit there is no bucket: the map
// holds no more entries than there are users with a limit.
func (l *limits) take(c echo.Context, username string, limit RateLimit) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if limit.PerSecond <= 0 || limit.Burst <= 0 {
		delete(l.buckets, username)
		return nil
	}
	now := l.now()
	b := l.buckets[username]
	if b == nil || b.limit != limit {
		b = &bucket{limit: limit, tokens: float64(limit.Burst), at: now}
		l.buckets[username] = b
	}
	if elapsed := now.Sub(b.at); elapsed > 0 { // a clock that was set back gives nothing, and takes nothing away
		b.tokens = min(float64(limit.Burst), b.tokens+elapsed.Seconds()*float64(limit.PerSecond))
		b.at = now
	}
	ok := b.tokens >= 1
	if ok {
		b.tokens--
	}
	full := (float64(limit.Burst) - b.tokens) / float64(limit.PerSecond)
	h := c.Response().Header()
	h.Set("RateLimit-Limit", strconv.FormatInt(limit.Burst, 10))
	h.Set("RateLimit-Remaining", strconv.FormatInt(int64(b.tokens), 10))
	h.Set("RateLimit-Reset", strconv.FormatInt(int64(math.Ceil(full)), 10))
	if ok {
		return nil
	}
	wait := time.Duration((1 - b.tokens) / float64(limit.PerSecond) * float64(time.Second))
	return NewProblem(http.StatusTooManyRequests, "RATE_LIMITED", "The user's rate limit is exhausted.").RetryAfter(wait)
}
