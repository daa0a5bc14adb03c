// Package broker runs the embedded Kafka broker: franz-go's kfake with a data
// directory, on loopback, spoken to over the ordinary Kafka protocol.
//
// What it promises:
//   - A batch that was acknowledged is in its segment file: synced to disk with
//     Config.Sync, in the page cache (Kafka's own way, which survives kill -9
//     and not a power cut) without it.
//   - With Config.Sync, nobody hears of a record before it is on the disk: no
//     fetch carries it and no offset that is told lies behind it. So nothing
//     that a follower has made of the log (a row, a message on a socket, a
//     position) can be ahead of what a power cut leaves.
//   - The first write or sync that fails ends the broker with a *FailedError:
//     Done is closed, every connection too, and nothing is acknowledged after it.
//   - kfake repairs what it does not understand by cutting it off. So before it
//     opens a folder, Scan reads every segment and index, and Start refuses with
//     a *DamageError, having changed nothing, unless all of it is intact. The one
//     thing ever dropped is the incomplete last batch of a partition's last
//     segment, which is what a crash in the middle of a write leaves behind.
//   - One process at a time: a second Start on the folder fails with *InUseError.
//
// What it does not promise:
//   - Kafka transactions. They are refused, because kfake cannot recover them
//     safely after a crash.
//   - Producer state and group members across a restart. Both are dropped at
//     every start, so that a clean restart and a restart after kill -9 take the
//     same path: idempotent producers are accepted with any sequence, group
//     members join again. A batch whose acknowledgement was lost may then be
//     appended twice; the journal's readers skip the second. Committed group
//     offsets are kept in groups.log; of a damaged groups.log, kfake keeps the
//     entries before the damage. None of this is truth.
//   - To know of a log that was cut exactly between two batches: it looks like a
//     shorter log. The positions that readers keep (offset and hash) tell that.
//
// How it syncs. kfake is run without syncing of its own: that would sync each
// batch by itself and twice, the segment and its index, and drop both errors.
// Instead every connection passes a gate (gate.go) which looks at the responses
// on their way out. Those that tell how far a log goes (logends.go) wait until it
// is on the disk that far (disk.go, flush.go); all that wait share one sync. What
// is there to be synced is read from the segment file, not believed.
//
// How it notices a write that fails. kfake has then moved on the producer's
// sequence window already, so that a resend counts as a duplicate and is
// acknowledged. But it logs the error before it answers, and before it takes the
// next request. The broker stops with that message (storageFailed), and a gate
// of a broker that has stopped lets nothing out.
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

// SizeLimit is the size in bytes of all segments together up to which the
// embedded broker is meant to be used. Beyond it, a warning asks for Kafka.
const SizeLimit = 2 << 30

// Config says how to run the embedded broker.
type Config struct {
	// Dir holds the log and is created if missing. Required.
	Dir string
	// Sync syncs every batch to disk before anybody hears of it.
	Sync bool
	// Logger gets the broker's own messages; slog.Default() if nil.
	Logger *slog.Logger
	// SizeCheck is how often the size of the log is compared with SizeLimit;
	// a minute if zero.
	SizeCheck time.Duration

	syncFile func(*os.File) error // (*os.File).Sync if nil; for tests
}

// Broker is a running embedded broker.
type Broker struct {
	cluster *kfake.Cluster
	addrs   []string
	near    *bothListener
	gates   *gateListener
	disk    *disk // nil without Config.Sync
	dir     string
	lock    *Lock
	logger  *slog.Logger

	halt  *halt
	group sync.WaitGroup
	once  sync.Once
	err   error // of Close

	lateMu sync.Mutex
	late   error // what failed while it closed
}

// Start checks the folder, repairs what a crash left, and serves it. The
// errors to tell apart are *InUseError and *DamageError; on either, nothing on
// disk was changed. The context bounds the check of a large log.
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
	lock, err := LockFolder(dir)
	if err != nil {
		return nil, err
	}
	b := &Broker{dir: dir, lock: lock, logger: config.Logger, halt: newHalt()}
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
	report, err := Scan(ctx, b.dir)
	if err != nil {
		return err
	}
	if err := report.repair(b.logger); err != nil {
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
		// kfake's defaults would let a topic without settings of its own
		// lose what is older than a week.
		kfake.BrokerConfigs(map[string]string{"log.retention.ms": "-1", "log.retention.bytes": "-1"}),
	)
	if err != nil {
		return fmt.Errorf("broker: open %s: %w", b.dir, err)
	}
	b.cluster = cluster
	refuseTransactions(cluster)
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

// fail stops the broker for good at the first error. kfake goes on until Close,
// but nobody hears of it.
func (b *Broker) fail(err error) {
	failed := &FailedError{Dir: b.dir, Err: err}
	if b.halt.stop(failed) {
		b.logger.Error(failed.Error())
		if b.gates != nil { // it is nil if kfake fails while it opens the folder
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

// Done is closed when the broker has stopped, by Close or because it failed.
func (b *Broker) Done() <-chan struct{} { return b.halt.done }

// While returns a context that ends with ctx, or when the broker stops: whatever
// waits for the broker would wait for ever. The caller calls release.
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

// Err returns the *FailedError for which the broker has stopped; nil while it
// serves and after Close.
func (b *Broker) Err() error { return b.halt.cause() }

// Addrs returns the broker's addresses, host:port, on loopback.
func (b *Broker) Addrs() []string { return b.addrs }

// Close stops serving, writes what is left to write, waits for it and unlocks
// the folder. Requests that are being answered may be cut off: their clients
// see a closed connection, as with any broker. The error says what could not be
// written; for a broker that had failed before, see Err.
func (b *Broker) Close() error {
	b.once.Do(func() {
		b.halt.stop(nil)
		b.group.Wait()
		if b.disk != nil {
			// First, for what it does may ask kfake, which answers nobody after its end.
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

// portFile keeps the last port, so that clients and people find a restarted
// broker where it was.
const portFile = "port"

// listen makes the broker's listener. kfake calls it once, and asks for port 0
// because no port is configured.
func (b *Broker) listen(network, _ string) (net.Listener, error) {
	l, err := b.listenTCP(network)
	if err != nil {
		return nil, err
	}
	b.near = listenBoth(l)
	b.gates = &gateListener{Listener: b.near, open: make(chan struct{}), halt: b.halt, disk: b.disk,
		logger: b.logger, gates: map[*gate]struct{}{}}
	return b.gates, nil
}

// listenTCP takes the port of the last run if it is free, else any.
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

// watchSize warns when the log outgrows SizeLimit, once at each doubling.
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

// refuseTransactions answers every request for a transactional producer with an
// error that no client retries.
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

// kfakeLogger writes kfake's messages to slog, and reports those of failures.
type kfakeLogger struct {
	logger *slog.Logger
	failed func(error)
}

// Logf implements kfake.Logger.
func (l kfakeLogger) Logf(level kfake.LogLevel, format string, args ...any) {
	if storageFailed(level, format) {
		// kfake calls this between the failed write and its answer, and takes
		// no request meanwhile. So the gates are shut before there is an answer,
		// or a resend, that they must not let out.
		l.failed(fmt.Errorf("kfake: "+format, args...))
		return
	}
	levels := map[kfake.LogLevel]slog.Level{
		kfake.LogLevelError: slog.LevelError,
		kfake.LogLevelWarn:  slog.LevelWarn,
		// What kfake calls information is one line for each closed connection.
		kfake.LogLevelInfo:  slog.LevelDebug,
		kfake.LogLevelDebug: slog.LevelDebug - 4,
	}
	to, ok := levels[level]
	if !ok || !l.logger.Enabled(context.Background(), to) {
		return
	}
	l.logger.Log(context.Background(), to, "kfake: "+fmt.Sprintf(format, args...))
}

// storageFailed reports whether a message of kfake says that something could not
// be written. These are the words of its persist.go; tests with a full disk fail
// if an update changes them.
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
