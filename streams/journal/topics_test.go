package journal_test

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

func TestTopicsAreMadeAsTheyAreChecked(t *testing.T) {
	r := newRig(t)
	if err := r.client.CheckTopics(r.context(), "trading"); err != nil {
		t.Fatal(err)
	}
	r.written(1)
	if err := r.client.EnsureTopics(r.context(), "trading", "identity"); err != nil {
		t.Fatal(err)
	}
	if err := r.client.CheckTopics(r.context(), "trading", "identity"); err != nil {
		t.Fatal(err)
	}
	if n := len(r.all()); n != 3 {
		t.Errorf("%d records are left", n)
	}
}

func TestAClusterKeepsThreeReplicasOfWhichTwoMustAgree(t *testing.T) {
	r := newFake(t, kfake.NumBrokers(3))
	if err := r.client.CheckTopics(r.context(), "trading"); err != nil {
		t.Fatal(err)
	}
	if got := r.fake.TopicInfo(r.topic()).Configs["min.insync.replicas"]; got == nil || *got != "2" {
		t.Errorf("min.insync.replicas is %v", got)
	}
	if err := r.fake.CreateTopic(r.prefix+"identity", 1, nil); err != nil {
		t.Fatal(err)
	}
	err := r.client.CheckTopics(r.context(), "identity")
	for _, want := range []string{"min.insync.replicas", "retention.ms", "max.message.bytes"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
}

func TestTheTipIsAskedForUntilThereIsALeader(t *testing.T) {
	r := newFake(t)
	n := int64(len(r.written(2)))
	for _, without := range []*kerr.Error{kerr.LeaderNotAvailable, kerr.NotLeaderForPartition} {
		r.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets}, Topic: r.topic(), Err: without, Count: 4})
		if end, err := r.client.Tip(r.context(), "trading", 0); end != n || err != nil {
			t.Errorf("the tip is %d, want %d: %v", end, n, err)
		}
	}
	unauthorized := r.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets}, Topic: r.topic(), Err: kerr.TopicAuthorizationFailed, Count: -1})
	defer unauthorized.Remove()
	if _, err := r.client.Tip(r.context(), "trading", 0); !errors.Is(err, kerr.TopicAuthorizationFailed) {
		t.Errorf("without the right to ask: %v", err)
	}
}

func TestEveryDeviationOfATopicIsListed(t *testing.T) {
	r := newRig(t)
	admin := kadm.NewClient(must(r.client.Kafka()))
	defer admin.Close()
	r.written(1)
	var changes []kadm.AlterConfig
	for name, value := range map[string]string{"retention.ms": "1000", "cleanup.policy": "compact", "max.message.bytes": "1000000"} {
		changes = append(changes, kadm.AlterConfig{Op: kadm.SetConfig, Name: name, Value: &value})
	}
	if _, err := admin.AlterTopicConfigs(r.context(), changes, r.topic()); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.CreatePartitions(r.context(), 1, r.topic()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the partition is there", func() bool {
		_, err := r.client.Tip(r.context(), "trading", 1)
		return err == nil
	})
	kc := must(r.client.Kafka(kgo.RecordPartitioner(kgo.ManualPartitioner())))
	defer kc.Close()
	// What another program writes to the added partition is no reason to end a node. A compacted topic takes only records with a key.
	if err := kc.ProduceSync(r.context(), &kgo.Record{Topic: r.topic(), Partition: 1, Key: []byte("key"), Value: []byte("hello")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	err := r.client.CheckTopics(r.context(), "trading", "onboarding")
	var deviations *journal.SettingsError
	if !errors.As(err, &deviations) {
		t.Fatal(err)
	}
	for _, want := range []string{"retention.ms", "cleanup.policy", "max.message.bytes", "2 partitions", "onboarding: there is no such topic"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
	if len(deviations.Deviations) != 5 || deviations.Log != nil {
		t.Errorf("%q", deviations.Deviations)
	}
}

func TestALogThatDoesNotBeginAtZeroIsADeviation(t *testing.T) {
	r := newRig(t)
	r.written(3)
	admin := kadm.NewClient(must(r.client.Kafka()))
	defer admin.Close()
	var to kadm.Offsets
	to.Add(kadm.Offset{Topic: r.topic(), Partition: 0, At: 2})
	if _, err := admin.DeleteRecords(r.context(), to); err != nil {
		t.Fatal(err)
	}
	if err := r.client.CheckTopics(r.context(), "trading"); err == nil || !strings.Contains(err.Error(), "begins at offset 2") {
		t.Error(err)
	}
}

// TestATopicOfAnotherProgramIsADeviation: it has records, and no journal begins in it.
func TestATopicOfAnotherProgramIsADeviation(t *testing.T) {
	r := newRig(t)
	if err := r.client.CheckTopics(r.context(), "trading"); err != nil {
		t.Fatal(err)
	}
	r.produce([]byte("hello"))
	err := r.client.CheckTopics(r.context(), "trading")
	if !record.Final(err) || !strings.Contains(err.Error(), "has no genesis") {
		t.Error(err)
	}
}

// TestATopicWithoutGenesisIsReadOnce by a check, however often that looks for a genesis before it is sure.
func TestATopicWithoutGenesisIsReadOnce(t *testing.T) {
	r := newFake(t)
	values := make([][]byte, 30)
	for i := range values {
		values[i] = bytes.Repeat([]byte("x"), 100_000)
	}
	r.produce(values...)
	var mu sync.Mutex
	fetched := make(map[int64]int)
	r.fake.ControlKey(int16(kmsg.Fetch), func(q kmsg.Request) (kmsg.Response, error, bool) {
		r.fake.KeepControl()
		mu.Lock()
		defer mu.Unlock()
		fetched[q.(*kmsg.FetchRequest).Topics[0].Partitions[0].FetchOffset]++
		return nil, nil, false
	})
	if err := r.client.CheckTopics(r.context(), "trading"); !record.Final(err) {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	for offset, n := range fetched {
		if n > 1 {
			t.Errorf("offset %d was fetched %d times", offset, n)
		}
	}
	if len(fetched) < 3 {
		t.Errorf("fetched: %v", fetched)
	}
}

// TestAnEmptyTopicHasOnePartition: with more of them, the venue would start once, and never again after its genesis.
func TestAnEmptyTopicHasOnePartition(t *testing.T) {
	r := newRig(t)
	admin := kadm.NewClient(must(r.client.Kafka()))
	defer admin.Close()
	if _, err := admin.CreatePartitions(r.context(), 1, r.topic()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the check finds the partition", func() bool {
		err := r.client.CheckTopics(r.context(), "trading")
		return err != nil && strings.Contains(err.Error(), "2 partitions instead of 1")
	})
}

// TestCheckSettingsLeavesTheContentAlone: a copy of a trimmed log begins with a base that only the copy's source knows.
func TestCheckSettingsLeavesTheContentAlone(t *testing.T) {
	r := newRig(t)
	r.produce([]byte("hello"))
	if err := r.client.CheckSettings(r.context(), "trading"); err != nil {
		t.Error(err)
	}
	if err := r.client.CheckSettings(r.context(), "onboarding"); err == nil || !strings.Contains(err.Error(), "no such topic") {
		t.Error(err)
	}
}
