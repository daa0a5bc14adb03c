package access

import (
	"maps"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
)

// limits holds the token buckets of the limited users and API keys that sent requests recently.
type limits struct {
	now func() time.Time

	mu      sync.Mutex
	buckets map[bucketName]*bucket
	sweepAt int // number of buckets at which full ones are removed
}

// bucketName identifies the bucket of a user or of an API key with a separate limit.
type bucketName struct {
	username string
	apiKey   scalar.ID
}

func nameOf(username string, limit RateLimit) bucketName {
	if limit.APIKey.IsZero() {
		return bucketName{username: username}
	}
	return bucketName{apiKey: limit.APIKey}
}

// sweepFrom is the number of buckets below which none is removed.
const sweepFrom = 1024

type bucket struct {
	limit  RateLimit
	tokens float64
	at     time.Time
}

func newLimits(now func() time.Time) *limits {
	return &limits{now: now, buckets: make(map[bucketName]*bucket), sweepAt: sweepFrom}
}

// take takes a token and sets the RateLimit headers. Without a limit, it removes the bucket, if any.
func (l *limits) take(h http.Header, username string, limit RateLimit) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	name := nameOf(username, limit)
	if !limit.enabled() {
		delete(l.buckets, name)
		return nil
	}
	now := l.now()
	b := l.buckets[name]
	if b == nil || b.limit != limit {
		l.sweep(now)
		b = &bucket{limit: limit, tokens: float64(limit.Burst), at: now}
		l.buckets[name] = b
	}
	b.fill(now)
	ok := b.tokens >= 1
	if ok {
		b.tokens--
	}
	b.writeHeaders(h)
	if ok {
		return nil
	}
	wait := time.Duration((1 - b.tokens) / float64(limit.PerSecond) * float64(time.Second))
	detail := "The user's rate limit is exhausted."
	if limit.Policy() == ofAPIKey {
		detail = "The API key's rate limit is exhausted."
	}
	return problem.New(http.StatusTooManyRequests, "RATE_LIMITED", detail).RetryAfter(wait)
}

// sweep removes full buckets, which are equivalent to new ones. Otherwise the buckets of users who stay away and of
// revoked keys would accumulate.
func (l *limits) sweep(now time.Time) {
	if len(l.buckets) < l.sweepAt {
		return
	}
	maps.DeleteFunc(l.buckets, func(_ bucketName, b *bucket) bool {
		b.fill(now)
		return b.tokens >= float64(b.limit.Burst)
	})
	l.sweepAt = max(sweepFrom, 2*len(l.buckets))
}

// fill adds the tokens earned since the last call.
func (b *bucket) fill(now time.Time) {
	if elapsed := now.Sub(b.at); elapsed > 0 { // a clock that was set back neither adds nor removes tokens
		b.tokens = min(float64(b.limit.Burst), b.tokens+elapsed.Seconds()*float64(b.limit.PerSecond))
		b.at = now
	}
}

// charge takes more tokens for an accepted request. The bucket may become negative, which delays the next requests.
func (l *limits) charge(h http.Header, username string, limit RateLimit, more int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b := l.buckets[nameOf(username, limit)]; b != nil {
		b.tokens -= float64(more)
		b.writeHeaders(h)
	}
}

// writeHeaders sets the headers of draft-ietf-httpapi-ratelimit-headers-10.
func (b *bucket) writeHeaders(h http.Header) {
	if h == nil { // the transport has no response headers
		return
	}
	full := func(tokens float64) string {
		return strconv.FormatInt(int64(math.Ceil(tokens/float64(b.limit.PerSecond))), 10)
	}
	burst := float64(b.limit.Burst)
	policy := `"` + b.limit.Policy() + `"`
	h.Set(HeaderRateLimitPolicy, policy+`;q=`+strconv.FormatInt(b.limit.Burst, 10)+`;w=`+full(burst))
	h.Set(HeaderRateLimit, policy+`;r=`+strconv.FormatInt(max(0, int64(math.Floor(b.tokens))), 10)+`;t=`+full(burst-b.tokens))
}

// These are the response headers with the limit and the remaining tokens.
const (
	HeaderRateLimitPolicy = "RateLimit-Policy"
	HeaderRateLimit       = "RateLimit"
)
