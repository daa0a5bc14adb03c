package journal

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/streams/base"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
	"github.com/perpetua-exchange/perpetua/streams/trace"
)

// Config says how a process reaches its journals.
type Config struct {
	Brokers []string
	Prefix  string      // of every topic and group name
	TLS     *tls.Config // of every connection; nil for none
	Options []kgo.Opt   // SASL and the like, for every connection

	// Dial makes connections in place of the network and of TLS. It may be nil.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// Bases know where trimmed logs begin. Without any, every log must begin with its genesis.
	Bases []base.Source
	// History has the records before the bases. It may be nil.
	History History

	// Audit makes every reader check keys, headers and timestamps; see Reader.Audit.
	Audit bool

	Compression Compression // of appended batches; DefaultCompression for ""

	// Gone reports whether the brokers are permanently gone. A stopping process then waits for nothing. nil means
	// never.
	Gone func() bool

	Logger  *slog.Logger
	Clock   Clock         // the system's clocks if nil
	Metrics *Metrics      // not collected if nil
	Tracer  *trace.Tracer // no tracing if nil
}

// Client reaches the journals of one cluster. It is safe for concurrent use.
type Client struct {
	cfg     Config
	brokers *brokers
	kafka   *kgo.Client
	admin   *kadm.Client // uses kafka
	offsets *kadm.Client // uses kafka; has its own timeout, for requests for offsets

	sharing  sync.Mutex
	feeds    map[submit.Shard]*feed                // the feeds that tails share at the tip
	catching map[submit.Shard]*feed                // the feeds that tails share while catching up
	encoded  map[submit.Shard]*record.EncodedCache // records encoded by owners in this process

	bases bases

	identifying sync.Mutex
	identities  map[string]string // ids of the logs requested so far, by journal
}

// NewClient returns a client. It connects on first use.
func NewClient(cfg Config) (*Client, error) {
	if len(cfg.Brokers) == 0 {
		return nil, errors.New("journal: no Kafka brokers are named")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Clock == nil {
		cfg.Clock = SystemClock()
	}
	if cfg.Metrics == nil {
		cfg.Metrics = NewMetrics()
	}
	c := &Client{cfg: cfg, feeds: make(map[submit.Shard]*feed), catching: make(map[submit.Shard]*feed), encoded: make(map[submit.Shard]*record.EncodedCache),
		identities: make(map[string]string), bases: bases{known: make(map[submit.Shard]*known)}}
	c.brokers = newBrokers(cfg)
	kc, err := c.KafkaFor(ForAdmin)
	if err != nil {
		return nil, err
	}
	c.brokers.askWith(kc)
	c.kafka, c.admin, c.offsets = kc, kadm.NewClient(kc), kadm.NewClient(kc)
	c.offsets.SetTimeoutMillis(int32(offsetsWait.Milliseconds()))
	return c, nil
}

// AddBases adds sources of bases. It must be called before anything reads through the client.
func (c *Client) AddBases(sources ...base.Source) { c.cfg.Bases = append(c.cfg.Bases, sources...) }

// Close closes the client's own connections. Readers and owners have separate connections and end with their contexts.
func (c *Client) Close() {
	c.brokers.close()
	c.admin.Close()
}

// Topic returns the name of a journal's topic.
func (c *Client) Topic(journal string) string { return c.cfg.Prefix + journal }

// Prefix returns the prefix of every topic and group name.
func (c *Client) Prefix() string { return c.cfg.Prefix }

// Tracer returns the tracer of the process, or nil.
func (c *Client) Tracer() *trace.Tracer { return c.cfg.Tracer }

// Logger returns the client's logger.
func (c *Client) Logger() *slog.Logger { return c.cfg.Logger }

// Gone reports whether the brokers are known to be permanently gone, so that waiting for them is useless.
func (c *Client) Gone() bool { return c.cfg.Gone != nil && c.cfg.Gone() }

// Unanswered returns the time since this process sent the latest request that a broker has answered, or since the client was
// made if none has. While a reader runs, it stays below two seconds unless this node cannot reach the brokers.
func (c *Client) Unanswered() time.Duration {
	return c.Elapsed() - time.Duration(c.brokers.answered.Load())
}

// Elapsed returns the time on the client's monotonic clock; see Clock.
func (c *Client) Elapsed() time.Duration { return c.cfg.Clock.Elapsed() }

// Contact returns the reported end of a journal's log and the state of the readers' connections to the brokers.
func (c *Client) Contact(journal string) *Contact { return c.cfg.Metrics.contacts.of(journal) }

// Kafka returns a new Kafka client with the connection settings of c and the given options. The caller closes it.
func (c *Client) Kafka(options ...kgo.Opt) (*kgo.Client, error) {
	return c.KafkaFor(ForOther, options...)
}

// KafkaFor is Kafka for a client with a purpose. The metrics of Kafka clients are grouped by purpose.
func (c *Client) KafkaFor(purpose Purpose, options ...kgo.Opt) (*kgo.Client, error) {
	all := append([]kgo.Opt{
		kgo.SeedBrokers(c.cfg.Brokers...),
		kgo.Dialer(c.brokers.connect),
		kgo.SoftwareNameAndVersion("perpetua", "1"),
		kgo.DisableClientMetrics(),
		kgo.ProducerBatchCompression(c.cfg.Compression.codec()),
		kgo.WithHooks(c.cfg.Metrics.kafka.hooks[purpose], c.brokers),
	}, timeouts(purpose)...)
	all = append(all, c.cfg.Options...)
	kc, err := kgo.NewClient(append(all, options...)...)
	if err != nil {
		return nil, fmt.Errorf("journal: making a Kafka client: %w", err)
	}
	return kc, nil
}

// Ping requests the metadata of the brokers. It returns an error if the cluster does not answer.
func (c *Client) Ping(ctx context.Context) error {
	if _, err := c.admin.BrokerMetadata(ctx); err != nil {
		return fmt.Errorf("journal: asking Kafka for its brokers: %w", err)
	}
	return nil
}

// Encoded returns the cache of the records that owners in this process have encoded for a partition.
func (c *Client) Encoded(p submit.Shard) *record.EncodedCache {
	c.sharing.Lock()
	defer c.sharing.Unlock()
	cache := c.encoded[p]
	if cache == nil {
		cache = record.NewEncodedCache(windowRecords) // the most records that may be between the owner and its reader
		c.encoded[p] = cache
	}
	return cache
}
