package access

import (
	"math"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
)

// limits holds the token buckets of the users, API keys, and networks that sent requests recently. A full bucket is the same
// as a new one, so each new bucket makes room by removing up to examined full ones.
type limits struct {
	now  func() time.Time
	most int // number of buckets from which new names share one; 0: no bound

	mu      sync.Mutex
	buckets map[bucketName]*bucket
	ring    []*bucket // all of buckets, in no order
	hand    int       // index in ring of the next bucket to examine
}

// bucketName identifies the bucket of a user, of an API key with a separate limit, or of a network. Names share the bucket
// of the zero bucketName when there are too many. Clients without a known address use it too.
type bucketName struct {
	username string
	apiKey   scalar.ID
	network  netip.Prefix
}

func nameOf(username string, limit RateLimit) bucketName {
	if limit.APIKey.IsZero() {
		return bucketName{username: username}
	}
	return bucketName{apiKey: limit.APIKey}
}

// examined is the number of buckets that are examined for each new one. It is above 1, so that the number of buckets falls if most
// are full.
const examined = 2

type bucket struct {
	Bucket
	name  bucketName
	slot  int // in the ring
	limit RateLimit
}

func newLimits(now func() time.Time, most int) *limits {
	return &limits{now: now, most: most, buckets: make(map[bucketName]*bucket)}
}

// take takes a token and sets the RateLimit headers. If a cache may keep the answer, where a client's quota would be another's,
// it sets them only with an error, which no cache keeps. Without a limit, it removes the bucket, if any.
func (l *limits) take(h http.Header, name bucketName, limit RateLimit, cacheable bool) error {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !limit.enabled() {
		if b := l.buckets[name]; b != nil {
			l.remove(b)
		}
		return nil
	}
	b := l.filled(name, limit, now)
	ok := b.Take(now)
	if !ok || !cacheable {
		b.writeHeaders(h)
	}
	if ok {
		return nil
	}
	wait := time.Duration(b.secondsFor(1-b.tokens) * float64(time.Second))
	return problem.New(http.StatusTooManyRequests, CodeRateLimited, exhausted[limit.Policy()]).RetryAfter(wait)
}

// CodeRateLimited is the code of the problem of an exhausted limit.
const CodeRateLimited = "RATE_LIMITED"

// exhausted has the details of that problem, by policy.
var exhausted = map[string]string{
	ofUser:    "The user's rate limit is exhausted.",
	ofAPIKey:  "The API key's rate limit is exhausted.",
	ofNetwork: "The rate limit of the client's network is exhausted. Requests with a valid token or API key do not count towards it.",
}

// filled returns the bucket of a name with the tokens that it has now. It is full if it is new or has another limit than before.
func (l *limits) filled(name bucketName, limit RateLimit, now time.Time) *bucket {
	b := l.buckets[name]
	if b == nil {
		b = l.add(name, now)
	}
	if b.limit != limit {
		b.limit, b.Bucket = limit, NewBucket(float64(limit.PerSecond), float64(limit.Burst), now)
	}
	b.fill(now)
	return b
}

// add adds a bucket, which the caller fills, after it has removed full ones. If there are too many, it returns the shared one.
func (l *limits) add(name bucketName, now time.Time) *bucket {
	for range min(examined, len(l.ring)) {
		l.hand %= len(l.ring)
		b := l.ring[l.hand]
		if b.full(now) {
			l.remove(b)
		} else {
			l.hand++
		}
	}
	if l.most > 0 && len(l.ring) >= l.most {
		if shared := l.buckets[bucketName{}]; shared != nil {
			return shared
		}
		name = bucketName{} // one above the bound
	}
	b := &bucket{name: name, slot: len(l.ring)}
	l.buckets[name], l.ring = b, append(l.ring, b)
	return b
}

// remove removes a bucket. The last one of the ring takes its slot.
func (l *limits) remove(b *bucket) {
	last := len(l.ring) - 1
	l.ring[b.slot] = l.ring[last]
	l.ring[b.slot].slot = b.slot
	l.ring[last], l.ring = nil, l.ring[:last]
	delete(l.buckets, b.name)
}

// charge takes more tokens for an accepted request. The bucket may become negative, which delays the next requests. It may have been
// full, and so removed, since it was accepted.
func (l *limits) charge(h http.Header, name bucketName, limit RateLimit, more int) {
	if !limit.enabled() {
		return
	}
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.filled(name, limit, now)
	b.tokens -= float64(more)
	b.writeHeaders(h)
}

// writeHeaders sets the headers of draft-ietf-httpapi-ratelimit-headers-10.
func (b *bucket) writeHeaders(h http.Header) {
	if h == nil { // the transport has no response headers
		return
	}
	full := func(tokens float64) string {
		return strconv.FormatInt(int64(math.Ceil(b.secondsFor(tokens))), 10)
	}
	policy := `"` + b.limit.Policy() + `"`
	h.Set(HeaderRateLimitPolicy, policy+`;q=`+strconv.FormatInt(b.limit.Burst, 10)+`;w=`+full(b.burst))
	h.Set(HeaderRateLimit, policy+`;r=`+strconv.FormatInt(max(0, int64(math.Floor(b.tokens))), 10)+`;t=`+full(b.burst-b.tokens))
}

// These are the response headers with the limit and the remaining tokens.
const (
	HeaderRateLimitPolicy = "RateLimit-Policy"
	HeaderRateLimit       = "RateLimit"
)
