package journal

import (
	"math/rand/v2"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Timeouts of a client. franz-go's defaults are 10 s for a dial, 20 s for a produce and 15 s for a fetch. A broker that
// hangs or loses packets closes no connection, so with the defaults a client would use it for that long.
//
// The values are chosen for brokers with the settings in docker/kafka: the controller notices the loss of a broker
// after a session of 2 s and elects leaders within 0.5 s. They are safe with any settings, and with brokers that are
// slow but healthy:
//
//   - A produce that times out is sent again in order, with the same producer id and sequence. A broker that has
//     appended it answers the retry with the original offset once that is replicated, so nothing is appended twice. The
//     writer retries without limit. A short timeout therefore costs a slow broker only retries.
//   - A fetch or a metadata request that times out is sent again.
//   - The time counts from the last bytes of a message: see [progressing]. So a slow network carries every message.
const (
	dialTimeout     = 1500 * time.Millisecond // leaves time to send a lost SYN again, after 1 s
	requestTimeout  = time.Second             // for a request that does not wait for anything at the broker, and to write any
	produceTimeout  = 2 * time.Second         // the broker's wait for its followers; the client ends the request after …
	produceOverhead = 800 * time.Millisecond  // … this much more
	fetchWait       = 500 * time.Millisecond  // the broker's wait for records; the client ends the request after …
	fetchOverhead   = 1500 * time.Millisecond // … this much more without a byte

	// offsetsWait is how long a broker may take to find an offset if it does not store the log itself. The client ends
	// the request requestTimeout later. Requests about topics have kadm's 15 s, because a broker creates a topic within
	// the request.
	offsetsWait = 200 * time.Millisecond

	// metadataAge is how often a client reads the list of brokers and leaders. A silent broker is detected sooner: see
	// [brokers].
	metadataAge = time.Second
	// metadataMinAge is how soon a client reads it again after an error. franz-go's default of 5 s would prolong every failover.
	metadataMinAge = 200 * time.Millisecond

	// groupPatience is how long a member of the group looks for its coordinator. By default it gives up after its session and
	// drops its partitions. That is too early: when a coordinator dies, its successor starts a new session for every member. If
	// the group has assigned the partitions to another node, that node's taken record ends this node's term.
	groupPatience = 30 * time.Second
	groupRetries  = 200 // enough to last longer than groupPatience

	minBackoff = 50 * time.Millisecond // before a request is sent again; doubled each time up to …
	maxBackoff = 500 * time.Millisecond
)

// timeouts returns the client options that set the timeouts for a purpose.
func timeouts(p Purpose) []kgo.Opt {
	overhead := requestTimeout
	var more []kgo.Opt
	switch p {
	case ForWriting:
		overhead = produceOverhead
	case ForReading:
		overhead = fetchOverhead
	case ForGroup:
		more = []kgo.Opt{kgo.RetryTimeout(groupPatience), kgo.RequestRetries(groupRetries)}
	}
	return append(more,
		kgo.RequestTimeoutOverhead(overhead),
		kgo.ProduceRequestTimeout(produceTimeout),
		kgo.FetchMaxWait(fetchWait),
		kgo.MetadataMaxAge(metadataAge),
		kgo.MetadataMinAge(metadataMinAge),
		kgo.RetryBackoffFn(backoff),
	)
}

// backoff returns how long to wait before a request that has failed fails times is sent again. A fifth of it is random, so that
// the clients of many nodes do not retry at the same moment.
func backoff(fails int) time.Duration {
	d := min(minBackoff<<min(max(fails-1, 0), 8), maxBackoff)
	return d*4/5 + rand.N(d/5+1)
}
