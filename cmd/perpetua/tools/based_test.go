package tools

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/base"
	"github.com/perpetua-exchange/perpetua/streams/broker"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/journal/journaltest"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// outputTo returns an IO without an environment.
func outputTo(out io.Writer) settings.IO {
	return settings.IO{Out: out, Err: io.Discard, Env: func(string) (string, bool) { return "", false }}
}

// termsOf makes a log of terms, and returns also its values and the base at a record.
func termsOf(topic string, n, at int) (all []*kgo.Record, values []string, first record.Base) {
	return termsOfNode(topic, n, at, "n", 0)
}

// termsOfNode is termsOf. The terms from a record on are those of a node.
func termsOfNode(topic string, n, at int, node string, from int64) (all []*kgo.Record, values []string, first record.Base) {
	id, prev := scalar.ID{5}, record.Hash{}
	for i := range int64(n) {
		r := &record.Record{Sequence: i, Prev: prev, Time: scalar.Time(1_700_000_000_000_000 + i), Outcome: decide.Accepted,
			Command: decide.Recorded{ID: scalar.ID{byte(i), byte(i >> 8)}, Type: record.TypeTermStarted, Actor: decide.Engine},
			Events:  []decide.Event{&record.TermStarted{Term: i, Node: "n", URL: "http://n", Build: "test"}}}
		if i >= from {
			r.Events = []decide.Event{&record.TermStarted{Term: i, Node: node, URL: "http://n", Build: "test"}}
		}
		if i == 0 {
			r.Command.Type, r.Events = record.TypeGenesis, []decide.Event{&record.Genesis{Journal: "trading", JournalID: id, Partitions: 1}}
		}
		if i == int64(at) {
			first = record.Base{Journal: "trading", Partitions: 1, JournalID: id, Sequence: i, Prev: prev, Term: i - 1}
		}
		value, err := record.Encode(nil, r)
		if err != nil {
			panic(err)
		}
		prev, values = sha256.Sum256(value), append(values, string(value))
		all = append(all, journal.KafkaRecord(topic, "trading", 0, id, r, value))
	}
	return all, values, first
}

// trimmedFolder makes a data folder with a log of terms that was trimmed to a base, and returns the values of the log.
func trimmedFolder(t *testing.T, n, at int) (dir string, values []string) {
	t.Helper()
	all, values, first := termsOf("trading", n, at)
	return filledFolder(t, all, 2<<10, func(b *broker.Broker, client *journal.Client, folder base.Folder) {
		if err := folder.Keep(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		if start, err := client.Trim(t.Context(), b, first, int64(at)); err != nil || start == 0 || start > int64(at) {
			t.Fatal(start, err)
		}
	}), values
}

// filledFolder makes a data folder with the records of a log, in batches of at most that many bytes. then is called while its broker runs.
func filledFolder(t *testing.T, all []*kgo.Record, batch int32, then func(*broker.Broker, *journal.Client, base.Folder)) (dir string) {
	t.Helper()
	dir = t.TempDir()
	b, err := broker.Start(t.Context(), broker.Config{Dir: filepath.Join(dir, "kafka"), Logger: slog.New(slog.DiscardHandler), SegmentBytes: 4 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	folder := base.Folder{Dir: filepath.Join(dir, "bases")}
	client, err := journal.NewClient(journal.Config{Brokers: b.Addrs(), Bases: []base.Source{folder}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.EnsureTopics(t.Context(), "trading", "identity", "onboarding"); err != nil {
		t.Fatal(err)
	}
	kc, err := client.Kafka(kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchMaxBytes(batch))
	if err != nil {
		t.Fatal(err)
	}
	defer kc.Close()
	if err := kc.ProduceSync(t.Context(), all...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	then(b, client, folder)
	return dir
}

// TestLogOfATrimmedFolder prints from the base on, and says so where it can't print what is asked.
func TestLogOfATrimmedFolder(t *testing.T) {
	const n, at = 300, 200
	dir, values := trimmedFolder(t, n, at)
	print := func(args ...string) (string, error) {
		var out bytes.Buffer
		err := Log(t.Context(), append([]string{"--data", dir}, args...), outputTo(&out))
		return out.String(), err
	}
	lines := func(from, to int) string { return strings.Join(values[from:to], "\n") + "\n" }
	for what, c := range map[string]struct {
		args []string
		want string
	}{
		"all":          {nil, lines(at, n)},
		"the base":     {[]string{"--from", fmt.Sprint(at)}, lines(at, n)},
		"a later part": {[]string{"--from", "250", "--to", "260"}, lines(250, 261)},
		"checked":      {[]string{"--from", "290", "--check-all"}, lines(290, n)},
	} {
		if got, err := print(c.args...); err != nil || got != c.want {
			t.Errorf("%s: %d bytes, %v; want %d", what, len(got), err, len(c.want))
		}
	}
	var trimmed *record.TrimmedError
	for _, args := range [][]string{{"--from", "5"}, {"--from", "5", "--to", "7"}, {"--to", "7"}, {"--from", fmt.Sprint(at - 150)}} {
		if got, err := print(args...); got != "" || !errors.As(err, &trimmed) {
			t.Errorf("%v: %q, %v", args, got, err)
		}
	}
	// The broker's folder has a copy. A log without any is not readable.
	if err := os.RemoveAll(filepath.Join(dir, "bases")); err != nil {
		t.Fatal(err)
	}
	if got, err := print(); err != nil || got != lines(at, n) {
		t.Errorf("without the folder of bases: %d bytes, %v", len(got), err)
	}
	other := base.Folder{Dir: filepath.Join(dir, "bases")}
	if err := other.Keep(t.Context(), record.Base{Journal: "trading", Partitions: 1, JournalID: scalar.ID{6}, Sequence: at, Prev: record.Hash{1}}); err != nil {
		t.Fatal(err)
	}
	var refused *record.BaseError
	if got, err := print(); got != "" || !errors.As(err, &refused) {
		t.Errorf("with the base of another journal: %q, %v", got, err)
	}
}

// TestLogThatLostItsBeginning: nothing knows a base of a log whose first records somebody has deleted. The command says so, and
// does not wait for a base.
func TestLogThatLostItsBeginning(t *testing.T) {
	client := journaltest.NewClient(t, "trading")
	kafka, err := client.Kafka()
	if err != nil {
		t.Fatal(err)
	}
	all, _, _ := termsOf(client.Topic("trading"), 100, 0)
	if err := kafka.ProduceSync(t.Context(), all...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	admin := kadm.NewClient(kafka)
	defer admin.Close()
	var to kadm.Offsets
	to.Add(kadm.Offset{Topic: client.Topic("trading"), Partition: 0, At: 50})
	if deleted, err := admin.DeleteRecords(t.Context(), to); err != nil || deleted.Error() != nil {
		t.Fatal(err, deleted.Error())
	}
	brokers := kafka.OptValue(kgo.SeedBrokers).([]string)
	database, _, _ := booked(t)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	var out bytes.Buffer
	err = Log(ctx, []string{"--data", t.TempDir(), "--kafka-brokers", strings.Join(brokers, ","), "--topic-prefix", client.Prefix(),
		"--database-url", database}, outputTo(&out))
	var lost *record.BaseError
	if !errors.As(err, &lost) || out.Len() > 0 {
		t.Errorf("%d bytes, %v", out.Len(), err)
	}
}

// TestCopyOfATrimmedFolder copies a data folder to another and to a file, and reads the copies.
func TestCopyOfATrimmedFolder(t *testing.T) {
	const n, at = 300, 200
	dir, values := trimmedFolder(t, n, at)
	file, other, back := filepath.Join(t.TempDir(), "log.zst"), filepath.Join(t.TempDir(), "other"), filepath.Join(t.TempDir(), "back")
	// A copy may be repeated: the target then has records and no genesis.
	for _, c := range [][2]string{{dir, other}, {dir, other}, {dir, file}, {file, back}, {file, back}} {
		var out bytes.Buffer
		if err := CopyLog(t.Context(), []string{"--data", dir, "--from", c[0], "--to", c[1]}, outputTo(&out)); err != nil {
			t.Fatalf("from %s to %s: %v\n%s", c[0], c[1], err, &out)
		}
	}
	for _, copied := range []string{other, back} {
		var out bytes.Buffer
		err := Log(t.Context(), []string{"--data", copied}, outputTo(&out))
		if want := strings.Join(values[at:], "\n") + "\n"; err != nil || out.String() != want {
			t.Errorf("%s: %d bytes, %v; want %d", copied, out.Len(), err, len(want))
		}
	}
}
