package transfer

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/perpetua-exchange/perpetua/streams/journal"
)

// TestAppendEndsWithItsContext copies to brokers that take what is sent and never answer.
func TestAppendEndsWithItsContext(t *testing.T) {
	fake := kfake.MustCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "words"))
	defer fake.Close()
	arrived := make(chan struct{})
	arrive := sync.OnceFunc(func() { close(arrived) })
	fake.ControlKey(kmsg.Produce.Int16(), func(kmsg.Request) (kmsg.Response, error, bool) {
		fake.KeepControl()
		arrive()
		return nil, errors.New("no answer"), true
	})
	client, err := journal.NewClient(journal.Config{Brokers: fake.ListenAddrs()})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	a, err := Topic(client, "words", "the target").Append(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Append(ctx, &kgo.Record{Value: []byte("one")}); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- a.Close(ctx) }()
	<-arrived
	cancel()
	if err := <-ended; err == nil {
		t.Error("what has no answer was appended")
	}
}
