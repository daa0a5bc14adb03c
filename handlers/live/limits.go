package live

import "time"

// Limits bound what one connection may cost. Zero fields take the defaults, which the AsyncAPI file states.
type Limits struct {
	// Connections is how many there may be at once.
	Connections int
	// MessageBytes is the greatest size of a request.
	MessageBytes int64
	// Subscriptions is how many topics a connection may be subscribed to at once.
	Subscriptions int
	// RequestsPerSecond and RequestBurst fill and size the token bucket of a connection's requests.
	RequestsPerSecond float64
	RequestBurst      int
	// Entries is how many requests for order entry of a connection may be under way at once.
	Entries int
	// RequestExcess is how many requests in a row may exceed the rate before the connection is closed.
	RequestExcess int
	// QueueMessages and QueueBytes bound what waits to be written to a connection.
	QueueMessages int
	QueueBytes    int64
	// PingEvery and PongWait are the rhythm of keep-alive.
	PingEvery, PongWait time.Duration
	// WriteWait is how long one write may take before its client counts as slow, and how long a connection that is
	// being closed may take to read what it was sent.
	WriteWait time.Duration
	// SlowWait is how long the connection of a client that does not read is kept, to tell it why when it reads again.
	SlowWait time.Duration
	// VerifyEvery is how often a connection's token is verified again, beside at its expiry.
	VerifyEvery time.Duration
	// ResumeWait is how long a subscription that resumes waits until its client has read most of what is queued.
	ResumeWait time.Duration
	// BeatEvery is how often the channels are sent that are not sent record by record.
	BeatEvery time.Duration
	// ResumeRecords is how far back a subscription may resume.
	ResumeRecords int64
}

// DefaultLimits returns the limits of connections where nothing else is set.
func DefaultLimits() Limits { return Limits{}.withDefaults() }

// withDefaults fills in what is not set.
func (l Limits) withDefaults() Limits {
	l.Connections = orElse(l.Connections, 16384)
	l.MessageBytes = orElse(l.MessageBytes, 32<<10)
	l.Subscriptions = orElse(l.Subscriptions, 256)
	l.RequestsPerSecond = orElse(l.RequestsPerSecond, 50)
	l.RequestBurst = orElse(l.RequestBurst, 200)
	l.Entries = orElse(l.Entries, 128)
	l.RequestExcess = orElse(l.RequestExcess, 100)
	l.QueueMessages = orElse(l.QueueMessages, 2048)
	l.QueueBytes = orElse(l.QueueBytes, 8<<20)
	l.PingEvery = orElse(l.PingEvery, 15*time.Second)
	l.PongWait = orElse(l.PongWait, 30*time.Second)
	l.WriteWait = orElse(l.WriteWait, 10*time.Second)
	l.SlowWait = orElse(l.SlowWait, 5*time.Minute)
	l.VerifyEvery = orElse(l.VerifyEvery, 30*time.Second)
	l.ResumeWait = orElse(l.ResumeWait, 30*time.Second)
	l.BeatEvery = orElse(l.BeatEvery, beatEvery)
	l.ResumeRecords = orElse(l.ResumeRecords, 1_000_000)
	return l
}

func orElse[T comparable](v, standard T) T {
	var zero T
	if v == zero {
		return standard
	}
	return v
}

// bucket is a token bucket. It is used by one goroutine.
type bucket struct {
	rate, size float64
	tokens     float64
	at         time.Time
}

func newBucket(rate float64, size int, now time.Time) *bucket {
	return &bucket{rate: rate, size: float64(size), tokens: float64(size), at: now}
}

// take takes a token if there is one.
func (b *bucket) take(now time.Time) bool {
	if d := now.Sub(b.at); d > 0 {
		b.tokens = min(b.size, b.tokens+d.Seconds()*b.rate)
		b.at = now
	}
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}
