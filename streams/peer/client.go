package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
	"github.com/perpetua-exchange/perpetua/streams/trace"
)

// The times of a command on its way.
const (
	// answerTimeout is how long a command waits for its answer. An owner takes no longer.
	answerTimeout = 10 * time.Second
	// sendTimeout is how long a command waits for a stream, and for credit.
	sendTimeout = 3 * time.Second
	// maxWaiting is the number of commands that may wait for a stream.
	maxWaiting = 8192
	// withoutStreams is how long a node that serves no streams is not asked for one again.
	withoutStreams = 5 * time.Second
	// reopenPause is the time before a stream is opened again only to resolve the commands of the last one.
	reopenPause = 250 * time.Millisecond
)

var (
	// errNotOwner reports that no command was decided, because the node does not own the shard or cannot be reached.
	errNotOwner = errors.New("the node does not own the journal")
	// errNoStreams reports the same, because the node serves no streams: it is of an older build, has another protocol, or is
	// behind a proxy that speaks only HTTP/1.1.
	errNoStreams = errors.New("the node serves no streams of commands")
)

// ClientConfig configures a Client.
type ClientConfig struct {
	Key         []byte        // a secret that all nodes of the venue share
	Venue       func() string // see binding; "" if it is not known yet
	Node, Build string
	Logger      *slog.Logger
	// Log returns the identity of the Kafka cluster and topic of a journal, according to this node's brokers.
	Log func(ctx context.Context, journal string) (string, error)
	// Forms returns the forms of a journal's payloads, sorted by type. It may be nil.
	Forms func(journal string) []Form
	// Events returns the types of the events of a journal.
	Events func(journal string) (*decide.Registry, error)
	// Work returns two commands that take several records: the one that a record begins, and the one that it completes. Either
	// is zero if there is none. Work is nil if no journal has such commands.
	Work func(e record.Entry) (begun, finished scalar.ID)
	// Clock is a monotonic clock that counts the time during which the machine is suspended; nil for Go's, which does not.
	Clock func() time.Duration
	// TLS is the configuration of connections to https URLs; nil for the default.
	TLS *tls.Config
	// Dial dials nodes; nil for the default.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Client sends commands to owners on other nodes. It reads the journals' logs with this node's followers, through Begin and
// Read, which resolves commands whose answers were lost.
type Client struct {
	cfg         ClientConfig
	incarnation nonce
	metrics     metrics
	running     sync.WaitGroup // streams

	mu     sync.Mutex
	shards map[submit.Shard]*shard
	closed bool
}

// NewClient returns a client. The caller must close it.
func NewClient(c ClientConfig) *Client {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Clock == nil {
		c.Clock = goClock()
	}
	if c.Forms == nil {
		c.Forms = func(string) []Form { return nil }
	}
	if c.Work == nil {
		c.Work = func(record.Entry) (begun, finished scalar.ID) { return scalar.ID{}, scalar.ID{} }
	}
	return &Client{cfg: c, incarnation: newNonce(), metrics: newMetrics(), shards: make(map[submit.Shard]*shard)}
}

// Close ends all streams and waits for their ends. Commands without an answer get a *submit.OutcomeUnknownError if they
// were sent.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	shards := slices.Collect(maps.Values(c.shards))
	c.mu.Unlock()
	for _, s := range shards {
		s.close()
	}
	c.running.Wait()
}

// shard returns the state of a shard.
func (c *Client) shard(id submit.Shard) *shard {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.shards[id]
	if s == nil {
		s = &shard{client: c, id: id, sent: make(map[scalar.ID]*call), streams: make(map[string]*stream), without: make(map[string]time.Time), closed: c.closed}
		c.shards[id] = s
	}
	return s
}

// Begin passes the client the seed that the reading of a journal starts from. It MUST be called before Read.
func (c *Client) Begin(journal string, partition int32, from *record.Seed) {
	if from != nil {
		c.shard(submit.Shard{Journal: journal, Partition: partition}).begin(from)
	}
}

// Read passes the client a valid record of a journal's log. It MUST be called with every record that this node reads, in
// order. It never blocks.
func (c *Client) Read(journal string, partition int32, e record.Entry) {
	c.shard(submit.Shard{Journal: journal, Partition: partition}).read(e)
}

// submit sends commands, which exist since a time on the client's clock, to the node at a URL and waits for their outcomes, as
// submit.BatchSubmitter describes. The error is errNotOwner or errNoStreams if none of them was decided.
func (c *Client) submit(ctx context.Context, url string, id submit.Shard, commands []decide.Command, since time.Duration) ([]submit.Outcome, error) {
	b, err := newBatch(ctx, commands, since)
	if err != nil {
		return nil, err
	}
	s := c.shard(id)
	if err := s.enqueue(url, b); err != nil {
		return nil, err
	}
	return b.await(ctx, s)
}

// batch is the commands of one call. They are sent in one frame.
type batch struct {
	calls  []*call
	since  time.Duration // on the client's clock
	bytes  int
	queued bool // NotifyQueued was called
	notify func() bool
	done   chan struct{} // closed when all are answered
	left   int           // number without an answer
}

// callState is how far a command has come. The shard's lock protects it.
type callState uint8

const (
	waiting  callState = iota // in the queue of a stream
	sent                      // it may have been written
	answered                  // its outcome is known
)

// call is a command on its way.
type call struct {
	message
	state   callState // the shard's lock protects this and the following
	batch   *batch
	term    int64 // the only term in which it may be decided, once it was sent
	owner   nonce // the owner's process
	url     string
	sentAt  time.Duration // on the client's clock
	stream  *stream
	entry   *record.Entry // the command's record, as this node has read it
	begun   bool          // this node has read the first of the records of its work
	outcome submit.Outcome
	foreign error // errNotOwner or errNoStreams
}

func newBatch(ctx context.Context, commands []decide.Command, since time.Duration) (*batch, error) {
	b := &batch{since: since, done: make(chan struct{}), left: len(commands), notify: func() bool { return submit.NotifyQueued(ctx) }}
	carried, credential := trace.Carry(ctx), submit.CredentialOf(ctx)
	for i, c := range commands {
		payload, err := EncodePayload(c.Payload)
		if err != nil {
			return nil, err
		}
		b.bytes += len(payload)
		b.calls = append(b.calls, &call{batch: b, message: message{after: i > 0, id: c.ID, kind: c.Type, actor: c.Actor, metadata: c.Metadata,
			credential: credential, trace: carried, payload: payload}})
	}
	return b, nil
}

// await waits until all commands have an outcome.
func (b *batch) await(ctx context.Context, s *shard) ([]submit.Outcome, error) {
	late := time.NewTimer(min(sendTimeout, s.client.timeLeft(b)))
	defer late.Stop()
	select {
	case <-b.done:
	case <-ctx.Done():
		s.giveUp(b, "the client went away before the command was sent")
	case <-late.C:
		if s.withdraw(b, "the owner takes no commands") {
			break
		}
		late.Reset(s.client.timeLeft(b))
		select {
		case <-b.done:
		case <-ctx.Done():
			s.giveUp(b, "the client went away before the command was sent")
		case <-late.C:
			s.giveUp(b, "the command was not sent in time")
		}
	}
	return b.outcomes()
}

// timeLeft returns how long the commands of a batch may still wait for their answers.
func (c *Client) timeLeft(b *batch) time.Duration {
	return max(0, answerTimeout-(c.cfg.Clock()-b.since))
}

// outcomes returns the outcomes. It returns an error instead if the owner should be looked for again: none of the
// commands was decided for that reason, and the caller was not told that they are queued in an order.
func (b *batch) outcomes() ([]submit.Outcome, error) {
	if err := b.foreign(); err != nil && !b.queued {
		return nil, err
	}
	out := make([]submit.Outcome, len(b.calls))
	for i, c := range b.calls {
		out[i] = c.outcome
	}
	return out, nil
}

// foreign returns the reason for which every command was not decided, if it is that the node is not the owner.
func (b *batch) foreign() error {
	for _, c := range b.calls {
		if c.foreign == nil {
			return nil
		}
	}
	return b.calls[0].foreign
}

// newTransport returns a transport for one stream. Each stream has its own connection, so that none waits for another.
func (c *Client) newTransport() *http.Transport {
	dial := c.cfg.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: handshakeTimeout}).DialContext
	}
	t := &http.Transport{DialContext: dial, DisableCompression: true, DisableKeepAlives: true, TLSClientConfig: c.cfg.TLS.Clone(), Protocols: new(http.Protocols), ForceAttemptHTTP2: true}
	t.Protocols.SetHTTP2(true)
	t.Protocols.SetUnencryptedHTTP2(true)
	return t
}
