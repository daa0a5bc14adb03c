package follow_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/streams/follow"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/journal/journaltest"
)

// asked tells when a broker has told where a log ends.
type asked chan struct{}

const keyListOffsets = 2

// OnBrokerE2E implements kgo.HookBrokerE2E.
func (a asked) OnBrokerE2E(_ kgo.BrokerMetadata, key int16, e2e kgo.BrokerE2E) {
	if key == keyListOffsets && e2e.Err() == nil {
		select {
		case a <- struct{}{}:
		default:
		}
	}
}

// TestAFoldDoesNotWaitForAnEndThatTheLogHasLost cuts the log between the look at its tip and the fold.
func TestAFoldDoesNotWaitForAnEndThatTheLogHasLost(t *testing.T) {
	said := make(asked)
	c := journaltest.Connect(t, journal.Config{Options: []kgo.Opt{kgo.WithHooks(said)}}, "trading")
	say, stop := serve(t, c)
	first := say("one")
	say("two")
	say("three")
	stop()
	kept := records(t, c, first.Position.Offset+1)

	f := follow.New(c, journaltest.Words{Name: "trading"}, 0)
	waited := make(chan error, 1)
	go func() { waited <- f.WaitTip(within(t)) }()
	select { // the fold does not run yet, so it waits for what the log has now
	case <-said:
	case err := <-waited:
		t.Fatalf("it did not wait: %v", err)
	}
	replace(t, c, kept)
	run(t, f)
	if err := <-waited; err != nil {
		t.Fatal(err)
	}
	if list, _ := words(f); list != "one" {
		t.Errorf("it has %q", list)
	}
}

// records returns the first records of the log.
func records(t *testing.T, c *journal.Client, n int64) (kept []*kgo.Record) {
	t.Helper()
	kafka, err := c.Kafka(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{c.Topic("trading"): {0: kgo.NewOffset().AtStart()}}))
	if err != nil {
		t.Fatal(err)
	}
	defer kafka.Close()
	for int64(len(kept)) < n {
		fetches := kafka.PollFetches(within(t))
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		kept = append(kept, fetches.Records()...)
	}
	return kept[:n]
}

// replace makes the log hold other records than it did.
func replace(t *testing.T, c *journal.Client, records []*kgo.Record) {
	t.Helper()
	kafka, err := c.Kafka(kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer kafka.Close()
	if _, err := kadm.NewClient(kafka).DeleteTopic(within(t), c.Topic("trading")); err != nil {
		t.Fatal(err)
	}
	if err := c.EnsureTopics(within(t), "trading"); err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if err := kafka.ProduceSync(within(t), &kgo.Record{Topic: r.Topic, Value: r.Value}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
}
