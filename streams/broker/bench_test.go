package broker_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/streams/broker"
)

// BenchmarkAppend appends records of a kilobyte: one at a time, which is the latency of an acknowledgement, and as the
// journals do, with many under way.
func BenchmarkAppend(b *testing.B) {
	for _, kind := range []struct {
		name     string
		sync     bool
		clients  int
		underWay int
	}{
		{"synced/one", true, 1, 1},
		{"synced/64 under way", true, 1, 64},
		{"synced/16 clients", true, 16, 1},
		{"not synced/one", false, 1, 1},
		{"not synced/64 under way", false, 1, 64},
	} {
		b.Run(kind.name, func(b *testing.B) {
			server, err := broker.Start(b.Context(), broker.Config{Dir: b.TempDir(), Sync: kind.sync, Logger: quiet()})
			if err != nil {
				b.Fatal(err)
			}
			defer server.Close()
			var clients []*kgo.Client
			for range kind.clients {
				c, err := kgo.NewClient(kgo.SeedBrokers(server.Addrs()...), kgo.Dialer(server.Dial), kgo.ProducerLinger(0),
					kgo.DisableClientMetrics())
				if err != nil {
					b.Fatal(err)
				}
				defer c.Close()
				if len(clients) == 0 {
					if _, err := kadm.NewClient(c).CreateTopic(b.Context(), 1, 1, nil, topic); err != nil {
						b.Fatal(err)
					}
				}
				clients = append(clients, c)
				if err := c.ProduceSync(b.Context(), &kgo.Record{Topic: topic}).FirstErr(); err != nil {
					b.Fatal(err)
				}
			}
			value := []byte(strings.Repeat("x", 1000))
			b.SetBytes(1000)
			b.ResetTimer()
			var all sync.WaitGroup
			for i := range kind.clients * kind.underWay {
				all.Go(func() {
					c := clients[i%kind.clients]
					for n := i; n < b.N; n += kind.clients * kind.underWay {
						if err := c.ProduceSync(b.Context(), &kgo.Record{Topic: topic, Value: value}).FirstErr(); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			all.Wait()
		})
	}
}
