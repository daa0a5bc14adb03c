package journaltest

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/streams/journal"
)

// Cut ends a journal's log before an offset, as an unclean election of a follower does. It deletes the topic, creates
// it again and copies the earlier records to it.
func Cut(t testing.TB, c *journal.Client, name string, end int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	kafka, err := c.Kafka(kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{c.Topic(name): {0: kgo.NewOffset().AtStart()}}))
	if err != nil {
		t.Fatal(err)
	}
	defer kafka.Close()
	var remaining []*kgo.Record
	for int64(len(remaining)) < end {
		fetches := kafka.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		remaining = append(remaining, fetches.Records()...)
	}
	if _, err := kadm.NewClient(kafka).DeleteTopic(ctx, c.Topic(name)); err != nil {
		t.Fatal(err)
	}
	for err := c.EnsureTopics(ctx, name); err != nil; err = c.EnsureTopics(ctx, name) { // Kafka may not have deleted it yet
		if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
	again, err := c.Kafka(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	for _, r := range remaining[:end] {
		copied := &kgo.Record{Topic: r.Topic, Key: r.Key, Value: r.Value, Headers: r.Headers, Timestamp: r.Timestamp}
		if err := again.ProduceSync(ctx, copied).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
}
