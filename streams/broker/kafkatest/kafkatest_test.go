package kafkatest_test

import (
	"io"
	"os"
	"strings"
	"testing"

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
