package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/perpetua-exchange/perpetua/domain/reference"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/transfer"
	"github.com/perpetua-exchange/perpetua/streams/verify"
)

// TestWrittenLogIsRightlyDecided verifies a written log, and that it has the work of a venue in it.
func TestWrittenLogIsRightlyDecided(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.zst")
	var said strings.Builder
	// The day is chosen: at other hours the log may end between a settlement's price and its first posting.
	age := time.Since(time.Date(2026, 10, 2, 20, 0, 0, 0, time.UTC)).String()
	if err := run(t.Context(), []string{"log", "--records", "6000", "--gap", "15s", "--age", age, "--to", path}, nil, io.Discard, &said); err != nil {
		t.Fatal(err)
	}
	report, err := verify.Verify(t.Context(), verify.Config{Rules: trading.Rules(), Codec: trading.Codec(), Payloads: trading.Payloads(),
		Source: verify.FromLog(transfer.Source(path, "trading")), Model: reference.New()})
	if err != nil || report.Difference != nil {
		t.Fatal(err, report.Difference)
	}
	if report.Records < 6000 || report.Decided.Same != report.Records-2 || report.Modeled != report.Records {
		t.Errorf("%+v", report)
	}
	// The last decision may take several records.
	if want := fmt.Sprintf("%d of 6000 records, ", report.Records); !strings.HasPrefix(said.String(), want) {
		t.Errorf("it said %s", said.String())
	}
	types := countTypes(t, path)
	for _, kind := range []string{"order.amended", "order.canceled", "order.rejected", "trade.executed", "funding.posted", "settlement.posted", "trigger.fired", "stop_loss"} {
		if types[kind] == 0 {
			t.Errorf("the log has no %s: %v", kind, types)
		}
	}
}

// TestLogIsWrittenToBrokers appends a log to a topic, compressed. A second log does not follow it.
func TestLogIsWrittenToBrokers(t *testing.T) {
	fake := kfake.MustCluster(kfake.NumBrokers(1))
	t.Cleanup(fake.Close)
	client, err := journal.NewClient(journal.Config{Brokers: fake.ListenAddrs(), Prefix: "long."})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	to := strings.Join(fake.ListenAddrs(), ",")
	args := []string{"log", "--to", to, "--topic-prefix", "long.", "--compression", "zstd", "--records", "3000"}
	if err := run(t.Context(), args, nil, io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	topic := transfer.Topic(client, "trading", to)
	report, err := verify.Verify(t.Context(), verify.Config{Rules: trading.Rules(), Codec: trading.Codec(), Payloads: trading.Payloads(),
		Source: verify.FromLog(topic), Model: reference.New()})
	if err != nil || report.Difference != nil || report.Records < 3000 {
		t.Fatal(report.Records, err, report.Difference)
	}
	records, err := topic.Records(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer records.Close()
	const zstd = 4 // Kafka's number of this compression
	if first, err := records.Next(t.Context()); err != nil || first.Attrs.CompressionType() != zstd {
		t.Fatal(err, first)
	}
	var end *transfer.EndError
	if err := run(t.Context(), args, nil, io.Discard, io.Discard); !errors.As(err, &end) || end.Found != report.Records {
		t.Errorf("a second log: %v", err)
	}
}

// TestTheLastRecordIsOfTheAge: whatever the gap, the last record is about as old as --age says, and no record is later. The last step may leave
// many records at once.
func TestTheLastRecordIsOfTheAge(t *testing.T) {
	for _, gap := range []time.Duration{time.Millisecond, 8 * time.Second, 15 * time.Minute} {
		path, before := filepath.Join(t.TempDir(), "log"+gap.String()+".jsonl"), time.Now().Add(-time.Minute)
		if err := writeLog(t.Context(), []string{"--records", "3000", "--gap", gap.String(), "--age", "1m", "--to", path}, io.Discard); err != nil {
			t.Fatal(err)
		}
		after := time.Now().Add(-time.Minute)
		records, err := transfer.Source(path, "trading").Records(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer records.Close()
		var first, last time.Time
		for {
			r, err := records.Next(t.Context())
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if last = r.Timestamp; first.IsZero() {
				first = last
			}
		}
		if last.Before(before.Add(-100*gap)) || last.After(after.Add(time.Millisecond)) || first.After(after.Add(-2900*gap)) {
			t.Errorf("with a gap of %s, the records are from %s to %s, which should be after %s", gap, first, last, before)
		}
	}
}

// countTypes counts the members "type" of a log by their values.
func countTypes(t *testing.T, path string) map[string]int {
	t.Helper()
	types := make(map[string]int)
	records, err := transfer.Source(path, "trading").Records(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer records.Close()
	for {
		r, err := records.Next(t.Context())
		if errors.Is(err, io.EOF) {
			return types
		}
		if err != nil {
			t.Fatal(err)
		}
		for part := range strings.SplitSeq(string(r.Value), `"type":"`) {
			kind, _, _ := strings.Cut(part, `"`)
			types[kind]++
		}
	}
}

// TestLogUsage refuses arguments.
func TestLogUsage(t *testing.T) {
	for _, args := range [][]string{{}, {"--to", "x", "--records", "0"}, {"--to", "x", "--gap", "0s"}, {"--to", "x", "y"}, {"--nonsense"},
		{"--to", "x", "--compression", "zstd"}, {"--to", "x:1", "--compression", "brotli"}, {"--to", "x", "--topic-prefix", "p"}} {
		var wrong *usageError
		if err := writeLog(t.Context(), args, io.Discard); !errors.As(err, &wrong) {
			t.Errorf("%v: %v", args, err)
		}
	}
}
