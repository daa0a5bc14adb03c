package e2e

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/journal"
)

// cut makes the trading journal end some records earlier, as an unclean election of a follower does.
func (w *withheld) cut(records int) {
	w.t.Helper()
	ctx, topic := context.Background(), w.prefix+"trading"
	client, err := journal.NewClient(journal.Config{Brokers: w.fake.ListenAddrs(), Prefix: w.prefix})
	if err != nil {
		w.t.Fatal(err)
	}
	defer client.Close()
	kafka, err := client.Kafka(kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}))
	if err != nil {
		w.t.Fatal(err)
	}
	defer kafka.Close()
	end := w.fake.PartitionInfo(topic, 0).HighWatermark
	var kept []*kgo.Record
	for int64(len(kept)) < end {
		fetches := kafka.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			w.t.Fatal(err)
		}
		kept = append(kept, fetches.Records()...)
	}
	if err := w.fake.DeleteTopic(topic); err != nil {
		w.t.Fatal(err)
	}
	if err := client.EnsureTopics(ctx, "trading"); err != nil {
		w.t.Fatal(err)
	}
	again, err := client.Kafka(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		w.t.Fatal(err)
	}
	defer again.Close()
	for _, r := range kept[:len(kept)-records] {
		copied := &kgo.Record{Topic: topic, Key: r.Key, Value: r.Value, Headers: r.Headers, Timestamp: r.Timestamp}
		if err := again.ProduceSync(ctx, copied).FirstErr(); err != nil {
			w.t.Fatal(err)
		}
	}
}

// tradingRows returns what the tables hold that are made from the trading journal alone. The identity journal goes on.
func (w *withheld) tradingRows() map[string]projections.Digest {
	w.t.Helper()
	digests := w.digests()
	for _, shared := range []string{"records", "checkpoints", "anchors", "brokers", "users"} {
		delete(digests, shared)
	}
	return digests
}

// ends returns where each journal ends in the brokers.
func (w *withheld) ends() map[string]int64 {
	ends := make(map[string]int64)
	for _, name := range journals.All().Names() {
		ends[name] = w.fake.PartitionInfo(w.prefix+name, 0).HighWatermark
	}
	return ends
}

// TestTruncatedLog cuts the end of the log off, once behind a stopped venue's back and once under a running one. Both
// must say so and end, and leave the read models as they were. A start must not add to the other journals either: the log may
// be an older copy, and the venue must be able to return to its own.
func TestTruncatedLog(t *testing.T) {
	t.Parallel()
	fake, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fake.Close)
	for _, running := range []bool{false, true} {
		v := newVenue(t)
		v.prefix = map[bool]string{false: "stopped-", true: "running-"}[running]
		v.env = append(v.env, "PERPETUA_KAFKA_BROKERS="+strings.Join(fake.ListenAddrs(), ","))
		w := &withheld{venue: v, fake: fake}
		v.start()
		v.fund("10000", "ANNA", "BEN")
		last := fmt.Sprint("trading/0@", len(v.records("trading"))-1)
		v.must(200, "broker-a", http.MethodGet, bensOrders, nil, "X-Min-Log-Position", last)
		v.stop()
		rows := w.digests
		if running {
			rows = w.tradingRows
		}
		before := rows()
		if running {
			v.start()
		}
		w.cut(3)
		ends := w.ends()
		if !running {
			v.launch()
		}
		if code := v.ended(); code != exitFailed {
			t.Errorf("running %v: with a truncated log, perpetua exits with %d, want %d:\n%s", running, code, exitFailed, v.output)
		}
		for _, want := range []string{"LOG_DIVERGED", "trading"} {
			if !strings.Contains(v.output.said(), want) {
				t.Errorf("running %v: with a truncated log, perpetua does not say %s:\n%s", running, want, v.output)
			}
		}
		now := w.ends()
		if running {
			ends = map[string]int64{"trading": ends["trading"]}
			now = map[string]int64{"trading": now["trading"]}
		}
		if !maps.Equal(now, ends) {
			t.Errorf("running %v: records were appended: the journals ended at %v, and end at %v", running, ends, now)
		}
		if after := rows(); !maps.Equal(before, after) {
			t.Errorf("running %v: the read models were touched:\nbefore %v\nafter  %v", running, before, after)
		}
	}
}

// TestTruncatedLogWithAWitnessOnly stops a venue cleanly right after a write and takes away the last record, the rows and
// the snapshots. The node's witness still knows how far the log went: the venue does not start, and no tool believes the
// log or hangs on it.
func TestTruncatedLogWithAWitnessOnly(t *testing.T) {
	t.Parallel()
	fake, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fake.Close)
	v := newVenue(t, "--snapshot-records", "0")
	v.prefix = "witnessed-"
	v.env = append(v.env, "PERPETUA_KAFKA_BROKERS="+strings.Join(fake.ListenAddrs(), ","),
		"PERPETUA_BLOB_URL="+blob.URLOf(filepath.Join(v.dir, "blob")))
	w := &withheld{venue: v, fake: fake}
	v.start()
	v.fund("10000", "ANNA", "BEN")
	v.stop()
	whole := v.records("trading")
	v.dropDatabase()
	w.cut(1)
	backup := filepath.Join(v.dir, "backup.zst")
	for _, tool := range [][]string{{"rebuild"}, {"audit"}, {"log", "--journal", "trading"},
		{"log", "copy", "--from", strings.Join(fake.ListenAddrs(), ","), "--to", backup}} {
		out, err := v.command(tool...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "LOG_DIVERGED: journal trading/0") {
			t.Errorf("with a truncated log, %v: %v\n%s", tool, err, out)
		}
		if printed := strings.Count(string(out), "\n{") + 1; tool[0] == "log" && tool[1] != "copy" && printed != len(whole)-1 {
			t.Errorf("log printed %d of %d records", printed, len(whole)-1)
		}
	}
	if _, err := os.Stat(backup); err == nil {
		t.Error("there is a backup of the truncated log")
	}
	end := fake.PartitionInfo(v.prefix+"trading", 0).HighWatermark
	for range 2 { // what the first start has seen must not be all that the second knows
		v.dropDatabase()
		v.launch()
		if code := v.ended(); code != exitFailed || !strings.Contains(v.output.said(), "LOG_DIVERGED") {
			t.Errorf("with a truncated log, perpetua exits with %d:\n%s", code, v.output)
		}
	}
	if now := fake.PartitionInfo(v.prefix+"trading", 0).HighWatermark; now != end {
		t.Errorf("%d records were appended to the truncated log", now-end)
	}
	if out, err := v.command("admin", "forget-log", "--journal", "trading").CombinedOutput(); err != nil || !strings.Contains(string(out), "1 witnesses") {
		t.Fatalf("forget-log: %v\n%s", err, out)
	}
	v.start()
	v.fund("10000", "CARL")
	v.stop()
}
