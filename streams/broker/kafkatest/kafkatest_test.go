package kafkatest_test

import (
	"context"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/streams/broker/kafkatest"
)

func TestNothingThere(t *testing.T) {
	t.Setenv(kafkatest.Variable, "")
	t.Setenv("PATH", "")
	t.Setenv("DOCKER_HOST", "unix:///nonexistent.sock")
	_, err := kafkatest.Start(t.Context(), io.Discard)
	if err == nil {
		t.Fatal("a Kafka from nothing")
	}
	for _, missing := range []string{"Docker", "Java"} {
		if !strings.Contains(err.Error(), "no "+missing) {
			t.Errorf("%s is not named as missing: %v", missing, err)
		}
	}
}

func TestBrokersTakeRecords(t *testing.T) {
	if os.Getenv(kafkatest.Variable) == "" {
		t.Skip("run by make test-kafka")
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(kafkatest.Brokers(t)...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	if _, err := admin.CreateTopic(t.Context(), 1, 1, nil, "kafkatest"); err != nil {
		t.Fatal(err)
	}
	defer admin.DeleteTopic(t.Context(), "kafkatest")
	if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: "kafkatest", Value: []byte("one")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// TestCluster loses one of three nodes by a kill and by a pause. Records are
// taken all the while, and the node comes back.
func TestCluster(t *testing.T) {
	if os.Getenv(kafkatest.Variable) == "" {
		t.Skip("run by make test-kafka")
	}
	c, err := kafkatest.StartCluster(t.Context(), kafkatest.ClusterConfig{Settings: kafkatest.RecommendedTimings(), Log: t.Output()})
	if err != nil {
		t.Skip(err) // no Java here: the broker that the other tests use is a container or somebody's own
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	client, err := kgo.NewClient(kgo.SeedBrokers(c.Brokers()...), kgo.RecordRetries(1000))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	admin := kadm.NewClient(client)
	if _, err := admin.CreateTopic(ctx, 1, 3, nil, "kafkatest"); err != nil {
		t.Fatal(err)
	}
	awaitInSync := func() {
		t.Helper()
		for {
			topics, err := admin.ListTopics(ctx, "kafkatest")
			if err == nil && len(topics["kafkatest"].Partitions[0].ISR) == 3 {
				return
			}
			select {
			case <-ctx.Done():
				t.Fatal("the node did not come back into sync")
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
	produce := func() {
		t.Helper()
		if err := client.ProduceSync(ctx, &kgo.Record{Topic: "kafkatest", Value: []byte("one")}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	awaitInSync()
	produce()
	if err := c.Kill(1); err != nil {
		t.Fatal(err)
	}
	produce()
	if err := c.Start(1); err != nil {
		t.Fatal(err)
	}
	awaitInSync()
	if err := c.Pause(2); err != nil {
		t.Fatal(err)
	}
	produce()
	if err := c.Resume(2); err != nil {
		t.Fatal(err)
	}
	awaitInSync()
	end, err := admin.ListEndOffsets(ctx, "kafkatest")
	if err != nil {
		t.Fatal(err)
	}
	if at, _ := end.Lookup("kafkatest", 0); at.Offset != 3 {
		t.Errorf("the topic holds %d records instead of 3", at.Offset)
	}
}
