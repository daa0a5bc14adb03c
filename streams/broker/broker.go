// Package broker runs the embedded Kafka broker: franz-go's kfake with a data directory, listening on loopback and
// speaking the ordinary Kafka protocol. Start reading here; gate.go, disk.go and flush.go make acknowledgements
// durable, scan.go and repair.go check and repair a folder before it is opened, trim.go and deletions.go delete the beginning of a log.
//
// It promises:
//   - An acknowledged batch is in its segment file: synced to disk with Config.Sync; without it in the page cache,
//     which survives kill -9 but not a power cut (Kafka's own default).
//   - With Config.Sync, no client can see a record before it is on disk: no fetch returns it, and no response reports
//     an offset after it. So nothing that a follower derived from the log (a row, a message on a socket, a position)
//     can be ahead of the log that a power cut leaves.
//   - The first write or sync that fails ends the broker with a *FailedError: it closes Done and every connection, and
//     acknowledges nothing afterwards.
//   - kfake repairs a log that it cannot parse by truncating it. So Start reads every segment and index before kfake
//     opens the folder, and Start returns a *DamageError, having changed nothing, unless the whole log is intact. The
//     only data ever dropped is an incomplete last batch in a partition's last segment, which a crash in the middle of
//     a write leaves behind.
//   - A log begins at offset 0, or at or below the offset in its trim.json, which is on disk before the first segment is
//     deleted. Requests to delete records are refused beyond that offset.
//   - Only one process uses a folder: a second Start on it fails with *InUseError.
//
// It does not promise:
//   - Kafka transactions. They are refused, because kfake cannot recover them safely after a crash.
//   - Producer state and group members across a restart. Start always drops both, so that a clean restart and a restart
//     after kill -9 take the same path: idempotent producers are accepted with any sequence, and group members join
//     again. If an acknowledgement was lost, the batch may then be appended twice; the journal's readers skip the
//     second copy. Committed group offsets are kept in groups.log; if that file is damaged, kfake keeps the entries
//     before the damage. None of this is authoritative.
//   - To detect a log that was cut exactly between two batches: it looks like a shorter log. Readers detect the cut by
//     the positions that they keep (offset and hash).
//
// How it syncs. kfake runs with its own syncing switched off: that would sync each batch separately and twice, the
// segment and its index, and drop both errors. Instead every connection passes a gate (gate.go), which inspects each
// response on its way out. A response that reveals how far a log extends (logends.go) waits until the log is on disk up
// to that offset (disk.go, flush.go); all waiting responses share one sync. The extent to sync is read from the segment
// file, not taken from the response.
//
// How it notices a failed write. By then kfake has already advanced the producer's sequence window, so a resend counts
// as a duplicate and is acknowledged. But kfake logs the error before it answers, and before it takes the next request.
// The broker stops at that log message (storageFailed), and once it has stopped its gates pass no more responses.
package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// SizeLimit is the total size in bytes of all segments up to which the embedded broker is meant to be used. Beyond it,
// the broker logs a warning to move to Kafka.
const SizeLimit = 2 << 30

// Config configures the embedded broker.
type Config struct {
	// Dir holds the log and is created if missing. Required.
	Dir string
	// Sync makes the broker sync every batch to disk before any client can see it.
	Sync bool
	// Logger receives the broker's log messages. Nil means slog.Default().
	Logger *slog.Logger
	// Checked is called while Start checks the log: with the bytes that it has checked, and with the bytes of the whole log. It may be
	// nil. Opening the log after that takes about as long.
	Checked func(bytes, of int64)
	// SegmentBytes is the size from which a batch begins another segment; 16 MiB if zero. Only whole segments can be trimmed.
	SegmentBytes int
	// SizeCheck is the interval between comparisons of the log's size with SizeLimit. Zero means one minute.
	SizeCheck time.Duration

	syncFile  func(*os.File) error // (*os.File).Sync if nil; for tests
	trimmed   func()               // called between the trim.json and the deletion of a trim; for tests
	tellEvery time.Duration        // the constant of that name if zero; for tests
}

// Broker is a running embedded broker.
type Broker struct {
	cluster *kfake.Cluster
	addrs   []string
	near    *bothListener
	gates   *gateListener
	disk    *disk // nil without Config.Sync
	dir     string
	sync    func(*os.File) error
	lock    *Lock
	logger  *slog.Logger

	deletions *deletions

	halt  *halt
	group sync.WaitGroup
	once  sync.Once
	err   error // result of Close

	lateMu sync.Mutex
	late   error // errors that occurred while the broker closed
}

// Start checks the folder, repairs the traces of a crash, and serves the log. It returns *InUseError or *DamageError
// without having changed anything on disk. The context bounds the check of a large log, and the wait for another process
// that has locked the folder (LockFolderSoon).
func Start(ctx context.Context, config Config) (*Broker, error) {
	if config.Dir == "" {
		return nil, errors.New("broker: no data directory")
	}
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	if config.SizeCheck <= 0 {
		config.SizeCheck = time.Minute
	}
	if config.SegmentBytes <= 0 {
		config.SegmentBytes = 16 << 20
	}
	if config.tellEvery == 0 {
		config.tellEvery = tellEvery
	}
	if config.syncFile == nil {
		config.syncFile = (*os.File).Sync
	}
	dir, err := filepath.Abs(config.Dir)
	if err != nil {
		return nil, fmt.Errorf("broker: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("broker: create data directory: %w", err)
	}
	lock, err := LockFolderSoon(ctx, dir, config.Logger)
	if err != nil {
		return nil, err
	}
	b := &Broker{dir: dir, sync: config.syncFile, lock: lock, logger: config.Logger, deletions: newDeletions(dir, config.trimmed), halt: newHalt()}
	if err := b.open(ctx, config); err != nil {
		return nil, errors.Join(err, lock.Unlock())
	}
	return b, nil
}

func (b *Broker) open(ctx context.Context, config Config) (err error) {
	if config.Sync {
		if err := flushAll(b.dir, config.syncFile); err != nil {
			return fmt.Errorf("broker: %w", err)
		}
	}
	report, err := b.scan(ctx, config)
	if err != nil {
		return err
	}
	if err := report.repair(b.sync, b.logger); err != nil {
		return err
	}
	if config.Sync {
		b.disk = newDisk(b.dir, config.syncFile, b.halt, b.fail)
		if err := b.disk.resume(report); err != nil {
			return fmt.Errorf("broker: %w", errors.Join(err, b.disk.close()))
		}
	}
	if err := b.serve(config); err != nil {
		return err
	}
	b.logger.Info("embedded broker started", "addrs", b.addrs, "dir", b.dir,
		"sync", config.Sync, "bytes", report.Bytes())
	b.group.Go(func() { b.watchSize(config.SizeCheck) })
	return nil
}

// tellEvery is the time between two lines of the progress of a scan.
const tellEvery = 10 * time.Second

// scan scans the folder. It logs the progress at intervals: every byte of the log is read, so a large one takes minutes.
func (b *Broker) scan(ctx context.Context, config Config) (*Report, error) {
	all, err := segmentBytes(b.dir)
	if err != nil {
		return nil, fmt.Errorf("broker: %w", err)
	}
	done, last, reported := int64(0), time.Now(), false
	report, err := scan(ctx, b.dir, func(bytes int64) {
		done += bytes
		if config.Checked != nil {
			config.Checked(done, all)
		}
		if now := time.Now(); now.Sub(last) >= config.tellEvery {
			last, reported = now, true
			b.logger.Info("checking the embedded log", "bytes", done, "of", all)
		}
	})
	if err == nil && reported {
		// kfake reads every byte a second time, and tells no progress.
		b.logger.Info("opening the embedded log, which takes as long as the check", "bytes", all)
	}
	return report, err
}

func (b *Broker) serve(config Config) error {
	id, err := clusterID(b.dir)
	if err == nil {
		err = nameCluster(b.dir, id)
	}
	if err != nil {
		return fmt.Errorf("broker: name the cluster: %w", err)
	}
	cluster, err := kfake.NewCluster(
		kfake.NumBrokers(1),
		kfake.DataDir(b.dir),
		kfake.ClusterID(id),
		kfake.DefaultNumPartitions(1),
		kfake.WithLogger(kfakeLogger{b.logger, b.fail}),
		kfake.ListenFn(b.listen),
		// By default kfake would delete records older than a week from a topic without retention settings.
		kfake.BrokerConfigs(map[string]string{"log.retention.ms": "-1", "log.retention.bytes": "-1",
			"log.segment.bytes": strconv.Itoa(config.SegmentBytes)}),
	)
	if err != nil {
		return fmt.Errorf("broker: open %s: %w", b.dir, err)
	}
	b.cluster = cluster
	refuseTransactions(cluster)
	b.deletions.control(cluster)
	b.addrs = cluster.ListenAddrs()
	if b.disk != nil {
		b.disk.cluster = cluster
	}
	if err := b.rememberPort(); err != nil {
		cluster.Close()
		return err
	}
	close(b.gates.open)
	return nil
}

// fail stops the broker for good at the first error. kfake runs on until Close, but its responses no longer reach a
// client.
func (b *Broker) fail(err error) {
	failed := &FailedError{Dir: b.dir, Err: err}
	if b.halt.stop(failed) {
		b.logger.Error(failed.Error())
		if b.gates != nil { // gates is nil if kfake fails while it opens the folder
			b.gates.hangUp()
		}
		return
	}
	if b.halt.cause() == nil { // Close came first
		b.lateMu.Lock()
		defer b.lateMu.Unlock()
		b.late = errors.Join(b.late, failed)
	}
}

// Done returns a channel that is closed when the broker stops, by Close or because it failed.
func (b *Broker) Done() <-chan struct{} { return b.halt.done }

// While returns a context that ends with ctx or when the broker stops: an operation that waits for a stopped broker
// would otherwise wait forever. The caller must call release.
func (b *Broker) While(ctx context.Context) (_ context.Context, release func()) {
	ctx, cancel := context.WithCancel(ctx)
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		select {
		case <-ctx.Done():
		case <-b.Done():
			cancel()
		}
	}()
	return ctx, func() { cancel(); <-watching }
}

// Err returns the *FailedError that stopped the broker. It is nil while the broker serves and after Close.
func (b *Broker) Err() error { return b.halt.cause() }

// Addrs returns the broker's addresses, host:port, on loopback.
func (b *Broker) Addrs() []string { return b.addrs }

// Close stops serving, finishes outstanding writes and unlocks the folder. It may cut off requests in progress: their
// clients see a closed connection, as with any broker. The error describes the data that could not be written. If the
// broker had failed before, see Err.
func (b *Broker) Close() error {
	b.once.Do(func() {
		b.halt.stop(nil)
		b.group.Wait()
		if b.disk != nil {
			// The disk is closed first: its pending work may query kfake, which answers nothing after its Close.
			b.err = b.disk.close()
		}
		b.cluster.Close()
		b.lateMu.Lock()
		defer b.lateMu.Unlock()
		b.err = errors.Join(b.err, b.late, b.lock.Unlock())
		b.logger.Info("embedded broker stopped", "dir", b.dir)
	})
	return b.err
}

// portFile stores the last port, so that a restarted broker keeps its address.
const portFile = "port"

// listen returns the broker's listener. kfake calls it once, with port 0 because no port is configured.
func (b *Broker) listen(network, _ string) (net.Listener, error) {
	l, err := b.listenTCP(network)
	if err != nil {
		return nil, err
	}
	b.near = listenBoth(l, b.logger)
	b.gates = &gateListener{Listener: b.near, open: make(chan struct{}), halt: b.halt, disk: b.disk,
		logger: b.logger, gates: map[*gate]struct{}{}}
	return b.gates, nil
}

// listenTCP listens on the port of the last run if it is free, else on any port.
func (b *Broker) listenTCP(network string) (net.Listener, error) {
	if text, err := os.ReadFile(filepath.Join(b.dir, portFile)); err == nil {
		port, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 16)
		if err == nil && port > 0 {
			l, err := new(net.ListenConfig).Listen(context.Background(), network, net.JoinHostPort("127.0.0.1", strconv.FormatUint(port, 10)))
			if err == nil {
				return l, nil
			}
			b.logger.Info("the embedded broker's last port is taken; using another", "port", port)
		}
	}
	return new(net.ListenConfig).Listen(context.Background(), network, "127.0.0.1:0")
}

func (b *Broker) rememberPort() error {
	_, port, err := net.SplitHostPort(b.addrs[0])
	if err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	if err := os.WriteFile(filepath.Join(b.dir, portFile), []byte(port+"\n"), 0o600); err != nil {
		return fmt.Errorf("broker: remember the port: %w", err)
	}
	return nil
}

// watchSize warns when the log exceeds SizeLimit, and again each time its size doubles.
func (b *Broker) watchSize(every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for limit := int64(SizeLimit); ; {
		if size, err := segmentBytes(b.dir); err != nil {
			b.logger.Warn("cannot measure the embedded log", "error", err)
		} else if size > limit {
			b.logger.Warn("the embedded log has outgrown the embedded broker; move to Kafka (--kafka-brokers)",
				"bytes", size, "limit", int64(SizeLimit))
			for limit < size {
				limit *= 2
			}
		}
		select {
		case <-b.halt.done:
			return
		case <-ticker.C:
		}
	}
}

// refuseTransactions answers every request for a transactional producer with an error that clients do not retry.
func refuseTransactions(cluster *kfake.Cluster) {
	cluster.ControlKey(kmsg.InitProducerID.Int16(), func(r kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		request, ok := r.(*kmsg.InitProducerIDRequest)
		if !ok || request.TransactionalID == nil {
			return nil, nil, false
		}
		response := request.ResponseKind().(*kmsg.InitProducerIDResponse)
		response.ErrorCode = kerr.TransactionalIDAuthorizationFailed.Code
		return response, nil, true
	})
}

// kfakeLogger writes kfake's messages to slog and reports failed writes.
type kfakeLogger struct {
	logger *slog.Logger
	failed func(error)
}

// Logf implements kfake.Logger.
func (l kfakeLogger) Logf(level kfake.LogLevel, format string, args ...any) {
	if storageFailed(level, format) {
		// kfake logs between the failed write and its answer and takes no request in between. So the gates are shut
		// before an answer, or a resend, exists that they must not pass.
		l.failed(fmt.Errorf("kfake: "+format, args...))
		return
	}
	levels := map[kfake.LogLevel]slog.Level{
		kfake.LogLevelError: slog.LevelError,
		kfake.LogLevelWarn:  slog.LevelWarn,
		// kfake logs one line at this level for each closed connection.
		kfake.LogLevelInfo:  slog.LevelDebug,
		kfake.LogLevelDebug: slog.LevelDebug - 4,
	}
	to, ok := levels[level]
	if !ok || !l.logger.Enabled(context.Background(), to) {
		return
	}
	l.logger.Log(context.Background(), to, "kfake: "+fmt.Sprintf(format, args...))
}

// storageFailed reports whether a message of kfake announces a failed write. The prefixes are those of messages in
// kfake's persist.go; tests with a full disk fail if an update changes them.
func storageFailed(level kfake.LogLevel, format string) bool {
	if level != kfake.LogLevelWarn && level != kfake.LogLevelError {
		return false
	}
	for _, begin := range []string{"persist ", "rebuildSegments ", "compact ", "save session state", "endTx: failed to persist"} {
		if strings.HasPrefix(format, begin) {
			return true
		}
	}
	return false
}
