package live

import "time"

// Limits are the limits of a node's connections. Zero fields mean the defaults, which the AsyncAPI file states.
type Limits struct {
	// Connections is the maximum number of connections.
	Connections int
	// NetworkConnections is the maximum number of connections of one client network that were opened without a token.
	NetworkConnections int
	// MessageBytes is the maximum size of a request.
	MessageBytes int64
	// Subscriptions is the maximum number of subscriptions of a connection.
	Subscriptions int
	// RequestsPerSecond and RequestBurst are the rate and size of the token bucket for a connection's requests.
	RequestsPerSecond float64
	RequestBurst      int
	// Entries is the maximum number of order entry requests in progress on a connection.
	Entries int
	// RequestExcess is the number of consecutive requests over the rate after which the connection is closed.
	RequestExcess int
	// QueueMessages and QueueBytes limit the messages queued for a connection.
	QueueMessages int
	QueueBytes    int64
	// PingEvery and PongWait configure keep-alive.
	PingEvery, PongWait time.Duration
	// WriteWait is the timeout of one write, after which the client counts as slow. It is also the time that a
	// closing connection has to read the last frames.
	WriteWait time.Duration
	// SlowWait is how long the connection of a client that does not read stays open, so that the client can still
	// read the reason.
	SlowWait time.Duration
	// VerifyEvery is the interval at which a connection's token is verified, in addition to its expiry.
	VerifyEvery time.Duration
	// ResumeWait is how long a resumed subscription waits for the client to read most of the queue.
	ResumeWait time.Duration
	// BeatEvery is the interval of the channels that are not sent for each record.
	BeatEvery time.Duration
	// ResumeRecords is the maximum number of records that a resumed subscription may be behind.
	ResumeRecords int64
}

// DefaultLimits returns the default limits.
func DefaultLimits() Limits { return Limits{}.withDefaults() }

// withDefaults replaces zero fields by defaults.
func (l Limits) withDefaults() Limits {
	l.Connections = orElse(l.Connections, 16384)
	l.NetworkConnections = orElse(l.NetworkConnections, 1000)
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
