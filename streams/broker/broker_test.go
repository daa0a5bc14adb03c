package broker_test

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
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/streams/broker"
	"github.com/perpetua-exchange/perpetua/streams/broker/kafkatest"
)

const topic = "trading"

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func start(t *testing.T, dir string) *broker.Broker {
	t.Helper()
	b, err := broker.Start(t.Context(), broker.Config{Dir: dir, Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	port, err := os.ReadFile(filepath.Join(dir, "port"))
	if err != nil || !strings.HasSuffix(b.Addrs()[0], ":"+strings.TrimSpace(string(port))) {
		t.Errorf("the broker at %s remembers the port %q, %v", b.Addrs()[0], port, err)
	}
	return b
}

func client(t *testing.T, addrs []string, options ...kgo.Opt) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(append(options, kgo.SeedBrokers(addrs...), kgo.ProducerLinger(0), kgo.DisableClientMetrics(),
		kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func createTopic(t *testing.T, c *kgo.Client, name string, settings map[string]*string) {
	t.Helper()
	if _, err := kadm.NewClient(c).CreateTopic(t.Context(), 1, 1, settings, name); err != nil {
		t.Fatal(err)
	}
}

// produce appends one batch for each value and returns the offset of the last.
func produce(t *testing.T, c *kgo.Client, name string, values ...string) int64 {
	t.Helper()
	last := int64(-1)
	for _, v := range values {
		r, err := c.ProduceSync(t.Context(), &kgo.Record{Topic: name, Value: []byte(v)}).First()
		if err != nil {
			t.Fatal(err)
		}
		last = r.Offset
	}
	return last
}

// values reads a topic from its start to its end as of now.
func values(t *testing.T, addrs []string, name string) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := client(t, addrs, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{name: {0: kgo.NewOffset().At(0)}}))
	defer c.Close() // while the broker is there: a consumer takes leave of it
	ends, err := kadm.NewClient(c).ListEndOffsets(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	end, ok := ends.Lookup(name, 0)
	if !ok || end.Err != nil {
		t.Fatalf("no end offset: %v", end.Err)
	}
	var all []string
	for next := int64(0); next < end.Offset; {
		fetches := c.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if r.Offset != next {
				t.Fatalf("offset %d where %d was expected", r.Offset, next)
			}
			all, next = append(all, string(r.Value)), r.Offset+1
		})
	}
	return all
}

func numbered(from, to int) []string {
	var all []string
	for i := from; i < to; i++ {
		all = append(all, fmt.Sprintf("value %d", i))
	}
	return all
}

// reservePort gives the broker of a folder a port that no other process takes while the broker is down.
func reservePort(t *testing.T, dir string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "port"), []byte(kafkatest.Port(t)), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestRestartKeepsTopicsRecordsAndPort(t *testing.T) {
	dir := t.TempDir()
	reservePort(t, dir)
	b := start(t, dir)
	c := client(t, b.Addrs())
	retention := "-1"
	createTopic(t, c, topic, map[string]*string{"retention.ms": &retention})
	produce(t, c, topic, numbered(0, 20)...)
	// The idempotent producer c lives on across the restarts: it must be
	// accepted by a broker that has forgotten it.
	for i := 20; i < 50; i += 10 {
		addrs := b.Addrs()
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		b = start(t, dir)
		if got := b.Addrs(); got[0] != addrs[0] {
			t.Fatalf("restarted on %s, was on %s", got[0], addrs[0])
		}
		if last := produce(t, c, topic, numbered(i, i+10)...); last != int64(i+9) {
			t.Fatalf("last offset %d, want %d", last, i+9)
		}
	}
	if got := values(t, b.Addrs(), topic); fmt.Sprint(got) != fmt.Sprint(numbered(0, 50)) {
		t.Fatalf("got %q", got)
	}
}

func TestPortTakenMeansAnother(t *testing.T) {
	dir := t.TempDir()
	reservePort(t, dir)
	b := start(t, dir)
	addr := b.Addrs()[0]
	b.Close()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if again := start(t, dir).Addrs()[0]; again == addr {
		t.Fatalf("two listeners on %s", addr)
	}
}

func TestFolderInUse(t *testing.T) {
	dir := t.TempDir()
	b := start(t, dir)
	ended, end := context.WithCancel(t.Context())
	end() // else the start waits
	_, err := broker.Start(ended, broker.Config{Dir: dir, Logger: quiet()})
	inUse := (*broker.InUseError)(nil)
	if !errors.As(err, &inUse) || inUse.PID != os.Getpid() {
		t.Fatalf("got %v, want the folder in use by process %d", err, os.Getpid())
	}
	b.Close()
	start(t, dir)
}

// TestLockFolderSoon: the process that has locked the folder is named once, and waited for.
func TestLockFolderSoon(t *testing.T) {
	dir := t.TempDir()
	first, err := broker.LockFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	log := slog.New(slog.NewTextHandler(writerFunc(func(line []byte) (int, error) {
		lines = append(lines, string(line))
		return len(line), first.Unlock()
	}), nil))
	second, err := broker.LockFolderSoon(t.Context(), dir, log)
	if err != nil {
		t.Fatal(err)
	}
	if len(lines) != 1 || !strings.Contains(lines[0], "process="+strconv.Itoa(os.Getpid())) {
		t.Errorf("the log says %q", lines)
	}
	if err := second.Unlock(); err != nil {
		t.Error(err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

func TestSegmentsRoll(t *testing.T) {
	dir := t.TempDir()
	b := start(t, dir)
	c := client(t, b.Addrs())
	bytes := "300"
	createTopic(t, c, topic, map[string]*string{"segment.bytes": &bytes})
	produce(t, c, topic, numbered(0, 20)...)
	b.Close()
	segments, err := filepath.Glob(filepath.Join(dir, "partitions", "*", "*.dat"))
	if err != nil || len(segments) < 5 {
		t.Fatalf("%d segments, %v", len(segments), err)
	}
	b = start(t, dir)
	produce(t, client(t, b.Addrs()), topic, numbered(20, 40)...)
	b.Close()
	b = start(t, dir)
	if got := values(t, b.Addrs(), topic); fmt.Sprint(got) != fmt.Sprint(numbered(0, 40)) {
		t.Fatalf("got %q", got)
	}
}

func TestTransactionsAreRefused(t *testing.T) {
	b := start(t, t.TempDir())
	c := client(t, b.Addrs(), kgo.TransactionalID("t"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	createTopic(t, client(t, b.Addrs()), topic, nil)
	err := c.BeginTransaction()
	if err == nil {
		err = c.ProduceSync(ctx, &kgo.Record{Topic: topic}).FirstErr()
	}
	if !errors.Is(err, kerr.TransactionalIDAuthorizationFailed) {
		t.Fatalf("got %v, want the transaction refused", err)
	}
}
