package journal_test

import (
	"bytes"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/streams/journal"
)

// TestCompression appends with each of them and reads what kind the batch in the log is of. A client that is told
// nothing compresses nothing: any Kafka client reads that without add-ons.
func TestCompression(t *testing.T) {
	fake := kfake.MustCluster(kfake.NumBrokers(1))
	defer fake.Close()
	for name, kind := range map[string]uint8{"": 0, "none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4} {
		t.Run(name, func(t *testing.T) {
			compression, err := journal.ParseCompression(name)
			if err != nil {
				t.Fatal(err)
			}
			client, err := journal.NewClient(journal.Config{Brokers: fake.ListenAddrs(), Compression: compression})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			topic := "topic-" + name
			kc, err := client.Kafka(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}))
			if err != nil {
				t.Fatal(err)
			}
			defer kc.Close()
			if _, err := kadm.NewClient(kc).CreateTopic(t.Context(), 1, 1, nil, topic); err != nil {
				t.Fatal(err)
			}
			value := bytes.Repeat([]byte("what can be compressed "), 100)
			if err := kc.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Value: value}).FirstErr(); err != nil {
				t.Fatal(err)
			}
			for _, r := range kc.PollFetches(t.Context()).Records() {
				if got := r.Attrs.CompressionType(); got != kind || !bytes.Equal(r.Value, value) {
					t.Errorf("the batch is of kind %d, want %d", got, kind)
				}
			}
		})
	}
	if _, err := journal.ParseCompression("brotli"); err == nil {
		t.Error("brotli is known")
	}
}
