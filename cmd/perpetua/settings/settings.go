package settings

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	gocloud "gocloud.dev/blob"

	"github.com/perpetua-exchange/perpetua/streams/archive"
	"github.com/perpetua-exchange/perpetua/streams/base"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/broker"
	"github.com/perpetua-exchange/perpetua/streams/clamd"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// Settings are the settings of a node. Each has one Name: the flag --kafka-brokers is the environment variable
// PERPETUA_KAFKA_BROKERS. A flag overrides the environment, and the environment overrides the default.
type Settings struct {
	Data        string
	NodeID      string
	Roles       string
	DatabaseURL string
	History     string // age, as text; see HistoryAge

	// HTTP holds the settings of REST, WebSocket, and Go's profiles.
	HTTP struct {
		Listen, Advertise, Proxies, Origins, Debug string

		PublicRate string // see PublicRateLimit

		Deflate bool // compress the messages of sockets
	}
	// Peer holds the settings of a port for other nodes and of connections to theirs.
	Peer struct{ Listen, Cert, Key, CA string }
	Demo struct {
		On   bool
		Seed string
	}
	// Writer holds how this node writes the log.
	Writer struct {
		Sync, AcceptClock bool
		Compression       string
	}
	// Kafka holds the settings of the connection to the brokers, and of the names there.
	Kafka struct {
		Brokers, Prefix, CA, SASL, User, Password string

		TLS bool
	}
	// Stores holds the settings of the bucket and of the key store.
	Stores struct{ BlobURL, ArchiveURL, ArchiveKey, KeyURL, MasterKey, KMS string }
	// Trim holds the settings of trims, as text; see TrimPolicy.
	Trim struct{ Auto, After, Quorum string }
	// Files holds the settings of uploaded files.
	Files     struct{ ScannerURL, LinkLifetime string }
	Snapshots struct{ Records, Interval string }
	Archive   struct {
		TailEvery       string
		Retention, Mode string // of locks, as text; see ArchiveRetention
		Lake            bool   // see LakeURL
		PublicData      string // age, as text; see PublicDataAge
	}
	// TLog holds the settings of the transparency logs.
	TLog struct {
		Host   string
		Open   string // journals, separated by commas
		Tiles  string // age, as text; see TilesAge
		Policy string // file with the witnesses
	}
	// Webhooks holds the settings of connections to receivers, as text.
	Webhooks struct{ Retries, Allow, CA, Proxy, KeyOverlap string }
	Log      struct{ Level, Format string }
	Trace    struct{ Endpoint, Ratio string }

	Overrides              // of IO
	Progress  func(string) // of IO

	sources map[string]string // setting → flag, the variable's name, or default
	unknown []Unknown         // misspelled variables of the environment
}

// Setting describes one setting.
type Setting struct {
	Name    string
	Aliases []string // environment variables accepted besides PERPETUA_…
	Of      Group    // decides which commands list it in their help

	usage  string
	secret bool
	text   func(*Settings) *string // exactly one of text and toggle is set
	toggle func(*Settings) *bool
	preset string
}

// Table lists every setting.
func Table() []Setting {
	return []Setting{
		{Name: "data", Of: OfFolder, usage: "folder for everything that this node stores", preset: "./data", text: func(s *Settings) *string { return &s.Data }},
		{Name: "listen", usage: "address of REST and WebSocket", preset: "127.0.0.1:8080", text: func(s *Settings) *string { return &s.HTTP.Listen }},
		{Name: "advertise", Of: OfSelf, usage: "URL at which other nodes reach this one (default: the address of --peer-listen, if there is one, or else of --listen)", text: func(s *Settings) *string { return &s.HTTP.Advertise }},
		{Name: "peer-listen", Of: OfSelf, usage: "address of a port that serves only other nodes, like 10.0.0.5:8443 (default: they use --listen)", text: func(s *Settings) *string { return &s.Peer.Listen }},
		{Name: "peer-cert-file", Of: OfSelf, usage: "PEM file with the certificate of --peer-listen, read again for each connection (default: no TLS)", text: func(s *Settings) *string { return &s.Peer.Cert }},
		{Name: "peer-key-file", Of: OfSelf, usage: "PEM file with the private key of --peer-cert-file", text: func(s *Settings) *string { return &s.Peer.Key }},
		{Name: "peer-ca-file", Of: OfSelf, usage: "PEM file with the certificate authorities of other nodes that have an https URL (default: those of the system)", text: func(s *Settings) *string { return &s.Peer.CA }},
		{Name: "demo", Of: OfDemo, usage: "run a demo market, whose makers and takers trade the first instruments; their index prices go stale after ten seconds", preset: "true", toggle: func(s *Settings) *bool { return &s.Demo.On }},
		{Name: "demo-seed", Of: OfDemo, usage: "seed of the demo's random choices", preset: "1", text: func(s *Settings) *string { return &s.Demo.Seed }},
		{Name: "sync", Of: OfBroker, usage: "sync each batch of the embedded broker to disk before it is acknowledged", preset: "true", toggle: func(s *Settings) *bool { return &s.Writer.Sync }},
		{Name: "accept-clock", Of: OfVenue, usage: "own journals although this node's clock is more than a minute behind the log, or differs that much from Postgres's", preset: "false", toggle: func(s *Settings) *bool { return &s.Writer.AcceptClock }},
		{Name: "node-id", Of: OfSelf, usage: "name of this node among the others, which must survive restarts (default: a UUID in the data folder)", text: func(s *Settings) *string { return &s.NodeID }},
		{Name: "role", Of: OfSelf, usage: "roles of this node, separated by commas", preset: "engine,api,projector,live,process,sender,tlog,archive,history,liabilities", text: func(s *Settings) *string { return &s.Roles }},
		{Name: "kafka-brokers", Of: OfKafka, usage: "addresses of Kafka brokers, separated by commas, in place of the embedded broker", Aliases: []string{"KAFKA_BROKERS"}, text: func(s *Settings) *string { return &s.Kafka.Brokers }},
		{Name: "database-url", Of: OfPostgres, usage: "URL of a Postgres database, in place of the embedded one", Aliases: []string{"DATABASE_URL"}, secret: true, text: func(s *Settings) *string { return &s.DatabaseURL }},
		{Name: "blob-url", Of: OfStores, usage: "URL of the bucket for snapshots and uploaded files: file://, or in a binary built with -tags cloud also s3://, gs://, azblob:// (default: the folder blob in the data folder)", text: func(s *Settings) *string { return &s.Stores.BlobURL }},
		{Name: "archive-url", Of: OfStores, usage: "URL of the bucket with the archive of the log, in the form of --blob-url (default: the bucket of --blob-url)", text: func(s *Settings) *string { return &s.Stores.ArchiveURL }},
		{Name: "archive-key-file", Of: OfReader, usage: "file with the key to which log archive --key-file has sealed the archive of --archive-url", text: func(s *Settings) *string { return &s.Stores.ArchiveKey }},
		{Name: "trim", Of: OfAutoTrim, usage: "delete archived records that nothing needs from the log: on, off, or auto, which is on with the embedded broker and off with Kafka", preset: "auto", text: func(s *Settings) *string { return &s.Trim.Auto }},
		{Name: "trim-after", Of: OfTrim, usage: "age from which a trim may delete records, 24h or more", preset: "48h", text: func(s *Settings) *string { return &s.Trim.After }},
		{Name: "trim-quorum", Of: OfQuorum, usage: "how many witnesses of --witness-policy must have cosigned a checkpoint before a trim deletes the records that it covers: none, or a number", preset: none, text: func(s *Settings) *string { return &s.Trim.Quorum }},
		{Name: "key-url", Of: OfKeys, usage: "URL of the store of the owners' keys and the master key, in the form of --blob-url; keep it out of other backups (default: the folder keys in the data folder)", text: func(s *Settings) *string { return &s.Stores.KeyURL }},
		{Name: "snapshot-records", usage: "save a snapshot of a journal after this many records; 0 for never", preset: "100000", text: func(s *Settings) *string { return &s.Snapshots.Records }},
		{Name: "snapshot-interval", usage: "save a snapshot after this time, if at least a hundredth of --snapshot-records were added", preset: "10m", text: func(s *Settings) *string { return &s.Snapshots.Interval }},
		{Name: "archive-tail", Of: OfVenue, usage: "age at which records are archived although their range of 65,536 records is not full", preset: "1h", text: func(s *Settings) *string { return &s.Archive.TailEvery }},
		{Name: "archive-retention", Of: OfArchive, usage: "how long S3 or Google's store refuses to delete or replace the objects of full ranges of the archive: days or a time of a day or more, like 1827d or 43848h; or none", preset: none, text: func(s *Settings) *string { return &s.Archive.Retention }},
		{Name: "archive-retention-mode", Of: OfArchive, usage: "who may end that earlier: governance, users with a special permission; or compliance, nobody", preset: string(blob.Governance), text: func(s *Settings) *string { return &s.Archive.Mode }},
		{Name: "lake", Of: OfVenue, usage: "also write the rows of each archived range as Parquet files, which are not encrypted, and name them in a DuckLake catalog in Postgres", preset: "false", toggle: func(s *Settings) *bool { return &s.Archive.Lake }},
		{Name: "public-data", Of: OfVenue, usage: "how long the daily files of public market data are kept: days or a time, like 400d or 9600h; forever; or off to make none", preset: "forever", text: func(s *Settings) *string { return &s.Archive.PublicData }},
		{Name: "history", usage: "age at which earlier versions of rows, which reads with as_of need, are dropped: days or a time, like 400d or 9600h; 0 for never", preset: "400d", text: func(s *Settings) *string { return &s.History }},
		{Name: "scanner-url", Of: OfVenue, usage: "ClamAV daemon that scans every upload, tcp://host:port or unix:///path; while it gives no verdict, uploads are refused (default: uploads are not scanned)", text: func(s *Settings) *string { return &s.Files.ScannerURL }},
		{Name: "link-lifetime", Of: OfVenue, usage: "how long a download link is valid: seconds, or a time like 15m", preset: "900", text: func(s *Settings) *string { return &s.Files.LinkLifetime }},
		{Name: "tlog-host", Of: OfVenue, usage: "host name with which the origins of the transparency logs begin, best the public one; another name begins new logs", preset: "localhost", text: func(s *Settings) *string { return &s.TLog.Host }},
		{Name: "tlog-open", Of: OfVenue, usage: "further journals whose transparency logs need no token: onboarding, identity, or both separated by a comma (default: none); their sizes reveal how busy the brokers are", text: func(s *Settings) *string { return &s.TLog.Open }},
		{Name: "tlog-tiles", Of: OfVenue, usage: "how long the leaves of transparency logs stay in the bucket after they were archived: days or a time, like 90d or 2160h, or forever; nodes make older ones from the archive on request", preset: "90d", text: func(s *Settings) *string { return &s.TLog.Tiles }},
		{Name: "witness-policy", Of: OfWitness, usage: "file with the witnesses that cosign the checkpoints of transparency logs, and their URLs (c2sp.org/tlog-policy); receipts wait for its quorum (default: none)", text: func(s *Settings) *string { return &s.TLog.Policy }},
		{Name: "topic-prefix", Of: OfKafka, usage: "prefix of topic and group names", text: func(s *Settings) *string { return &s.Kafka.Prefix }},
		{Name: "compression", Of: OfWriter, usage: "compression of the batches that this node appends to the log: none, gzip, snappy, lz4, zstd", preset: string(journal.DefaultCompression), text: func(s *Settings) *string { return &s.Writer.Compression }},
		{Name: "socket-compression", usage: "compress the messages of WebSocket clients that offer permessage-deflate",
			preset: "false", toggle: func(s *Settings) *bool { return &s.HTTP.Deflate }},
		{Name: "kafka-tls", Of: OfKafka, usage: "use TLS to Kafka", preset: "false", toggle: func(s *Settings) *bool { return &s.Kafka.TLS }},
		{Name: "kafka-ca-file", Of: OfKafka, usage: "PEM file with the certificate authorities of the brokers (default: those of the system)", text: func(s *Settings) *string { return &s.Kafka.CA }},
		{Name: "kafka-sasl", Of: OfKafka, usage: "SASL mechanism: plain, scram-sha-256, scram-sha-512", text: func(s *Settings) *string { return &s.Kafka.SASL }},
		{Name: "kafka-user", Of: OfKafka, usage: "SASL user", text: func(s *Settings) *string { return &s.Kafka.User }},
		{Name: "kafka-password", Of: OfKafka, usage: "SASL password", secret: true, text: func(s *Settings) *string { return &s.Kafka.Password }},
		{Name: "master-key", Of: OfKeys, usage: "master key, which encrypts all other keys: 32 bytes in base64 (default: a file in the key store)", secret: true, text: func(s *Settings) *string { return &s.Stores.MasterKey }},
		{Name: "kms-url", Of: OfStores, usage: "URL of the key that encrypts the master key in the key store: base64key://KEY, or in a binary built with -tags cloud also awskms://, gcpkms://, azurekeyvault:// (default: none)", secret: true, text: func(s *Settings) *string { return &s.Stores.KMS }},
		{Name: "trusted-proxies", usage: "networks, like 10.0.0.0/8, of the proxies whose X-Forwarded-For is trusted (default: none)", text: func(s *Settings) *string { return &s.HTTP.Proxies }},
		{Name: "public-rate-limit", usage: "requests a second, and at once, of each IPv4 address or IPv6 /64 network without a valid token or API key, like 50:200; 0 for no limit", preset: "50:200", text: func(s *Settings) *string { return &s.HTTP.PublicRate }},
		{Name: "cors-origins", usage: "origins, like https://app.example, whose web pages may call REST (default: any)", text: func(s *Settings) *string { return &s.HTTP.Origins }},
		{Name: "webhook-retries", Of: OfVenue, usage: "waits before the retries of a webhook, like 5s,5m,2h (default: nine over three days)", text: func(s *Settings) *string { return &s.Webhooks.Retries }},
		{Name: "webhook-key-overlap", Of: OfVenue, usage: "how long both keys of a webhook sign after a rotation", preset: "24h", text: func(s *Settings) *string { return &s.Webhooks.KeyOverlap }},
		{Name: "webhook-allow", Of: OfVenue, usage: "networks without public addresses, like 10.0.0.0/8, to which webhooks may be sent nevertheless (default: none)", text: func(s *Settings) *string { return &s.Webhooks.Allow }},
		{Name: "webhook-ca", Of: OfVenue, usage: "PEM file with certificate authorities of webhook receivers, in addition to those of the system", text: func(s *Settings) *string { return &s.Webhooks.CA }},
		{Name: "egress-proxy", Of: OfVenue, usage: "URL, like http://proxy:3128, of the HTTP proxy through which webhooks are sent (default: none)", secret: true, text: func(s *Settings) *string { return &s.Webhooks.Proxy }},
		{Name: "log-level", Of: OfLogging, usage: "least level that is logged: debug, info, warn, or error", preset: "info", text: func(s *Settings) *string { return &s.Log.Level }},
		{Name: "log-format", Of: OfLogging, usage: "form of the log: text or json", preset: "text", text: func(s *Settings) *string { return &s.Log.Format }},
		{Name: "trace-endpoint", usage: "URL of an OpenTelemetry collector (OTLP over HTTP) that gets traces, like http://localhost:4318 (default: none)", Aliases: []string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"}, text: func(s *Settings) *string { return &s.Trace.Endpoint }},
		{Name: "trace-ratio", usage: "fraction of the commands that is traced, from 0 to 1; give every node the same", preset: "1", Aliases: []string{"OTEL_TRACES_SAMPLER_ARG"}, text: func(s *Settings) *string { return &s.Trace.Ratio }},
		{Name: "debug-listen", usage: "loopback address that serves Go's profiles, like 127.0.0.1:6060 (default: none)", text: func(s *Settings) *string { return &s.HTTP.Debug }},
	}
}

// Variable returns the environment variable that the setting is read from first.
func (d Setting) Variable() string {
	return "PERPETUA_" + strings.ToUpper(strings.ReplaceAll(d.Name, "-", "_"))
}

// Value returns the value of the setting as text.
func (d Setting) Value(s *Settings) string {
	if d.toggle != nil {
		return fmt.Sprint(*d.toggle(s))
	}
	return *d.text(s)
}

func (d Setting) set(s *Settings, v string) error {
	if d.toggle == nil {
		*d.text(s) = v
		return nil
	}
	switch strings.ToLower(v) {
	case "true", "1", "yes", "on":
		*d.toggle(s) = true
	case "false", "0", "no", "off":
		*d.toggle(s) = false
	default:
		return fmt.Errorf("--%s takes true or false, not %q", d.Name, v)
	}
	return nil
}

// flagValue implements flag.Value for a setting.
type flagValue struct {
	d Setting
	s *Settings
}

func (v flagValue) String() string {
	if v.s == nil {
		return ""
	}
	return v.d.Value(v.s)
}
func (v flagValue) IsBoolFlag() bool { return v.d.toggle != nil }
func (v flagValue) Set(text string) error {
	if err := v.d.set(v.s, text); err != nil {
		return err
	}
	v.s.sources[v.d.Name] = "flag"
	return nil
}

// Parse reads defaults, environment and flags; later ones override earlier ones. extra declares a command's own flags.
// Arguments after the flags are a usage error.
func Parse(command string, args []string, std IO, extra func(*flag.FlagSet)) (*Settings, error) {
	s := &Settings{sources: make(map[string]string), Overrides: std.Overrides, Progress: std.Progress()}
	fs := flag.NewFlagSet("perpetua "+command, flag.ContinueOnError)
	fs.SetOutput(io.Discard) // Parse returns the error, and printHelp writes the help
	if extra != nil {
		extra(fs)
	}
	commandFlags := flagsOf(fs)
	for _, d := range Table() {
		s.sources[d.Name] = "default"
		if d.preset != "" {
			if err := d.set(s, d.preset); err != nil {
				return nil, err
			}
		}
		for _, name := range append([]string{d.Variable()}, d.Aliases...) {
			if v, ok := std.Env(name); ok && v != "" {
				if err := d.set(s, v); err != nil {
					return nil, Usagef("%s: %v", name, err)
				}
				s.sources[d.Name] = name
				break
			}
		}
		fs.Var(flagValue{d, s}, d.Name, d.usage)
	}
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			printHelp(std, command, commandFlags)
			return nil, err
		}
		return nil, FlagError(command, err)
	}
	if fs.NArg() > 0 {
		return nil, Usagef("unexpected argument %q (perpetua %s -h describes the command)", fs.Arg(0), command)
	}
	s.unknown = unknownVariables(std)
	if _, err := journal.ParseCompression(s.Writer.Compression); err != nil {
		return nil, Usagef("--compression: %v", err)
	}
	return s, nil
}

// Brokers returns the Kafka addresses, or none for the embedded broker.
func (s *Settings) Brokers() []string { return listed(s.Kafka.Brokers) }

// CORSOrigins returns the origins of pages that may call the interfaces, or none for any.
func (s *Settings) CORSOrigins() []string { return listed(s.HTTP.Origins) }

// listed splits a setting at its commas.
func listed(text string) []string {
	var out []string
	for _, b := range strings.Split(text, ",") {
		if b = strings.TrimSpace(b); b != "" {
			out = append(out, b)
		}
	}
	return out
}

// Source returns the source of a setting: "flag", the variable's name, or "default".
func (s *Settings) Source(name string) string { return s.sources[name] }

// NeedCluster returns a usage error if the settings name no brokers or no database, for a command that starts neither.
func (s *Settings) NeedCluster() error {
	switch {
	case len(s.Brokers()) == 0:
		return Usagef("--kafka-brokers is needed (or $PERPETUA_KAFKA_BROKERS)")
	case s.DatabaseURL == "":
		return Usagef("--database-url is needed (or $PERPETUA_DATABASE_URL)")
	}
	return nil
}

// BucketURL returns the URL of the bucket: the configured one or that in the data folder.
func (s *Settings) BucketURL() (string, error) {
	if s.Stores.BlobURL != "" {
		return s.Stores.BlobURL, nil
	}
	dir, err := filepath.Abs(s.Data)
	return blob.URLOf(filepath.Join(dir, blob.Folder)), err
}

// OpenBucket opens the bucket. The caller must close it.
func (s *Settings) OpenBucket(ctx context.Context) (*gocloud.Bucket, error) {
	at, err := s.BucketURL()
	if err != nil {
		return nil, err
	}
	return blob.Open(ctx, at)
}

// KeyStoreURL returns the URL of the key store: the configured one or that in the data folder.
func (s *Settings) KeyStoreURL() (string, error) {
	if s.Stores.KeyURL != "" {
		return s.Stores.KeyURL, nil
	}
	dir, err := filepath.Abs(s.Data)
	return blob.URLOf(filepath.Join(dir, seal.Folder)), err
}

// NeedKeyStore returns a usage error if the settings name no key store, for a node among others, which all need the
// same keys.
func (s *Settings) NeedKeyStore() error {
	if s.Stores.KeyURL == "" {
		return Usagef("--key-url is needed (or $PERPETUA_KEY_URL): a folder or bucket of keys that all nodes share")
	}
	return nil
}

// FindMaster opens the master key of an existing log. It changes nothing.
func (s *Settings) FindMaster(ctx context.Context) (*seal.Box, error) {
	o, err := s.master()
	if err != nil {
		return nil, err
	}
	return seal.Open(ctx, o)
}

// OpenMaster opens the master key for a process that owns the data folder. If fresh is set, nothing has been sealed
// yet, and a missing key is created.
func (s *Settings) OpenMaster(ctx context.Context, fresh bool) (*seal.Box, error) {
	o, err := s.master()
	if err != nil {
		return nil, err
	}
	o.Create, o.Move = fresh, true
	return seal.Open(ctx, o)
}

func (s *Settings) master() (seal.Options, error) {
	at, err := s.KeyStoreURL()
	return seal.Options{URL: at, Value: s.Stores.MasterKey, KMS: s.Stores.KMS, Former: filepath.Join(s.Data, filepath.FromSlash(seal.FormerFile))}, err
}

// CheckStores validates the URLs of the bucket and the key store and the text of the master key. It opens none of them.
func (s *Settings) CheckStores() (wrong []error) {
	for _, store := range []struct{ flag, url string }{{"--blob-url", s.Stores.BlobURL}, {"--archive-url", s.Stores.ArchiveURL}, {"--key-url", s.Stores.KeyURL}} {
		if store.url == "" {
			continue
		}
		if err := blob.CheckURL(store.url); err != nil {
			wrong = append(wrong, Usagef("%s: %v", store.flag, err))
		}
	}
	if err := s.checkArchiveRetention(); err != nil {
		wrong = append(wrong, err)
	}
	if s.Stores.KMS != "" {
		if err := seal.CheckKMS(s.Stores.KMS); err != nil {
			wrong = append(wrong, Usagef("--kms-url: %v", err))
		}
	}
	if o, err := s.master(); err != nil {
		wrong = append(wrong, err)
	} else if err := o.Check(); err != nil {
		wrong = append(wrong, Usagef("--master-key: %v", err))
	}
	return wrong
}

// Seed returns the seed of the demo's random choices.
func (s *Settings) Seed() (uint64, error) {
	seed, err := strconv.ParseUint(s.Demo.Seed, 10, 64)
	if err != nil {
		return 0, Usagef("--demo-seed takes a number from 0 to 2^64-1, not %q", s.Demo.Seed)
	}
	return seed, nil
}

// Scanner returns the scanner of uploads, or nil if they are not scanned.
func (s *Settings) Scanner() (*clamd.Scanner, error) {
	if s.Files.ScannerURL == "" {
		return nil, nil
	}
	scanner, err := clamd.New(s.Files.ScannerURL, clamd.DefaultLimits())
	if err != nil {
		return nil, Usagef("--scanner-url: %v", err)
	}
	return scanner, nil
}

// Lifetime returns the validity of a link to a file: whole seconds, up to a week.
func (s *Settings) Lifetime() (time.Duration, error) {
	lifetime, err := time.ParseDuration(s.Files.LinkLifetime)
	if err != nil {
		lifetime, err = time.ParseDuration(s.Files.LinkLifetime + "s")
	}
	if err != nil || lifetime < time.Second || lifetime > 7*24*time.Hour || lifetime%time.Second != 0 {
		return 0, Usagef("--link-lifetime takes seconds, or a time like 15m, of at most a week, not %q", s.Files.LinkLifetime)
	}
	return lifetime, nil
}

// NewClient returns a client of the journals on the brokers, which may differ from those that the settings name.
func (s *Settings) NewClient(brokers []string, log *slog.Logger) (*journal.Client, error) {
	c, err := s.JournalConfig(brokers)
	if err != nil {
		return nil, err
	}
	c.Logger = log.With("part", "journal")
	return journal.NewClient(c)
}

// JournalConfig returns the configuration of a client of the journals on the brokers.
func (s *Settings) JournalConfig(brokers []string) (journal.Config, error) {
	options, err := s.KafkaOptions()
	if err != nil {
		return journal.Config{}, err
	}
	encryption, err := s.KafkaTLSConfig()
	if err != nil {
		return journal.Config{}, err
	}
	compression, err := journal.ParseCompression(s.Writer.Compression)
	if err != nil {
		return journal.Config{}, Usagef("--compression: %v", err) // Parse has checked this already
	}
	return journal.Config{Brokers: brokers, Prefix: s.Kafka.Prefix, TLS: encryption, Options: options, Compression: compression}, nil
}

// Bases returns the copies of the bases of trimmed logs in the data folder. They are those of the log only if the folder
// belongs to it.
func (s *Settings) Bases() base.Folder {
	return base.Folder{Dir: filepath.Join(s.Data, "bases"), TopicPrefix: s.Kafka.Prefix}
}

// ArchiveHeads returns the copies of the heads of archives in the data folder. They are those of the log only if the folder belongs
// to it.
func (s *Settings) ArchiveHeads() archive.HeadFolder {
	return archive.HeadFolder{Dir: filepath.Join(s.Data, "archive-heads"), TopicPrefix: s.Kafka.Prefix}
}

// BaseSources returns Bases and, if the log is that of the data folder's embedded broker, the copies in its folder.
func (s *Settings) BaseSources() []base.Source {
	if len(s.Brokers()) > 0 {
		return []base.Source{s.Bases()}
	}
	return []base.Source{s.Bases(), broker.Bases{Dir: filepath.Join(s.Data, "kafka"), TopicPrefix: s.Kafka.Prefix}}
}

// TrustedProxies returns the networks of proxies that are trusted to report a client's address.
func (s *Settings) TrustedProxies() ([]*net.IPNet, error) {
	var out []*net.IPNet
	for _, text := range strings.Split(s.HTTP.Proxies, ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		_, network, err := net.ParseCIDR(text)
		if err != nil {
			return nil, Usagef("--trusted-proxies: %q is not a network like 10.0.0.0/8", text)
		}
		out = append(out, network)
	}
	return out, nil
}
