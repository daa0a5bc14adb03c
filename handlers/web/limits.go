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
	b.tell(c)
	if ok {
		return nil
	}
	wait := time.Duration((1 - b.tokens) / float64(limit.PerSecond) * float64(time.Second))
	return NewProblem(http.StatusTooManyRequests, "RATE_LIMITED", "The user's rate limit is exhausted.").RetryAfter(wait)
}

// charge takes more tokens for a request that was let pass, also such as are not there: what comes next waits for them.
func (l *limits) charge(c echo.Context, username string, more int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b := l.buckets[username]; b != nil {
		b.tokens -= float64(more)
		b.tell(c)
	}
}

// tell says what is left, in the headers of draft-ietf-httpapi-ratelimit-headers-10.
func (b *bucket) tell(c echo.Context) {
	full := func(tokens float64) string {
		return strconv.FormatInt(int64(math.Ceil(tokens/float64(b.limit.PerSecond))), 10)
	}
	burst := float64(b.limit.Burst)
	h := c.Response().Header()
	h.Set(headerRateLimitPolicy, `"user";q=`+strconv.FormatInt(b.limit.Burst, 10)+`;w=`+full(burst))
	h.Set(headerRateLimit, `"user";r=`+strconv.FormatInt(max(0, int64(math.Floor(b.tokens))), 10)+`;t=`+full(burst-b.tokens))
}

// What is allowed, and what is left of it.
const (
	headerRateLimitPolicy = "RateLimit-Policy"
	headerRateLimit       = "RateLimit"
)
