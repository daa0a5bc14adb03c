package journal_test

import (
	"errors"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// TestASilentBrokerIsGivenUpInTime: a broker takes a produce, or the question where the log ends, and never answers, as one
// that was stopped. The same command is answered all the same: its owner asks again, over a new connection, within the ten
// seconds that a command has. A busy machine may take longer once, but not five times. Whatever the broker still does with what
// it was sent, the record is in the log once.
func TestASilentBrokerIsGivenUpInTime(t *testing.T) {
	for name, key := range map[string]int16{"produce": kmsg.Produce.Int16(), "list offsets": kmsg.ListOffsets.Int16()} {
		t.Run(name, func(t *testing.T) {
			var err error
			for range 5 {
				if err = silentBroker(t, key); !unknown(err) && !notAccepted(err) {
					break
				}
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// silentBroker returns the error of a command if a broker does not answer the first request of a kind.
func silentBroker(t *testing.T, key int16) error {
	t.Helper()
	r := newFake(t)
	cfg := r.ownerConfig("a").Impatient()
	cfg.Deadline = 0 // ten seconds
	o := r.run(cfg).ready()
	var first atomic.Bool
	held, release := make(chan struct{}), make(chan struct{})
	r.fake.ControlKey(key, func(kmsg.Request) (kmsg.Response, error, bool) {
		if !first.CompareAndSwap(false, true) {
			return nil, nil, false
		}
		close(held)
		r.fake.SleepControl(func() { <-release })
		return nil, nil, false
	})
	done := make(chan error, 1)
	go func() {
		// A refusal waits for the end of the log, an addition for its record.
		if key == kmsg.Produce.Int16() {
			_, err := o.Submit(t.Context(), command(&add{Name: "a", N: 1}))
			done <- err
			return
		}
		_, err := o.Submit(t.Context(), command(&read{Name: "a"}))
		done <- refusedOnly(err)
	}()
	<-held
	err := <-done
	close(release)
	if err == nil && key == kmsg.Produce.Int16() {
		if n := len(r.all()); n != 3 { // genesis, taken, the addition
			t.Errorf("%d records", n)
		}
	}
	return err
}

// TestASilentFetchIsGivenUpInTime: a broker takes a fetch and never answers. The reader fetches again over a new connection, after
// two seconds; with the timeouts of franz-go it would after fifteen. A busy machine may take that long once, but not five times.
func TestASilentFetchIsGivenUpInTime(t *testing.T) {
	var took, unanswered time.Duration
	for range 5 {
		if took, unanswered = silentFetch(t); took < 14*time.Second && unanswered < 5*time.Second {
			break
		}
	}
	if took < 1500*time.Millisecond || took > 14*time.Second {
		t.Errorf("the records came %v after a fetch that got no answer", took)
	}
	if unanswered > 5*time.Second {
		t.Errorf("no broker has answered for %v", unanswered)
	}
}

// silentFetch returns how long after a fetch without an answer the records came, and for how long no broker has answered then.
func silentFetch(t *testing.T) (took, unanswered time.Duration) {
	t.Helper()
	r := newFake(t)
	want := len(r.written(3))
	var first atomic.Bool
	held, release := make(chan time.Time, 1), make(chan struct{})
	defer close(release)
	r.fake.ControlKey(kmsg.Fetch.Int16(), func(kmsg.Request) (kmsg.Response, error, bool) {
		if first.CompareAndSwap(false, true) {
			held <- time.Now()
			r.fake.SleepControl(func() { <-release })
		}
		return nil, nil, false
	})
	client := r.newClient(nil, nil)
	reader := journal.NewReader(client, r.rules, 0, record.Before)
	defer reader.Close()
	for got := 0; got < want; {
		entries, err := reader.Poll(r.context())
		if err != nil {
			t.Fatal(err)
		}
		got += len(entries)
	}
	return time.Since(<-held), client.Unanswered()
}

// TestASilentLeaderIsReplaced: the leader of a partition never answers, neither a produce nor a question about the cluster.
// The timeouts of the writer are longer than the test, so only a refresh that asks the other brokers finds the new leader.
func TestASilentLeaderIsReplaced(t *testing.T) {
	r := newFake(t, kfake.NumBrokers(3))
	const long = 10 * time.Minute
	cfg := r.ownerConfig("a")
	cfg.Client = r.clientWith(nil, slog.New(slog.DiscardHandler),
		kgo.ProduceRequestTimeout(long), kgo.RequestTimeoutOverhead(long), kgo.MetadataMaxAge(long))
	o := r.run(cfg).ready()
	silent := r.fake.LeaderFor(r.topic(), 0)
	if err := r.fake.MoveTopicPartition(r.topic(), 0, (silent+1)%3); err != nil {
		t.Fatal(err)
	}
	without := r.metadataWithout(silent)
	release := make(chan struct{})
	defer close(release)
	r.fake.Control(func(request kmsg.Request) (kmsg.Response, error, bool) {
		r.fake.KeepControl()
		_, metadata := request.(*kmsg.MetadataRequest)
		_, produce := request.(*kmsg.ProduceRequest)
		if (metadata || produce) && r.fake.CurrentNode() == silent {
			r.fake.SleepControl(func() { <-release })
			return nil, nil, false
		}
		if metadata {
			answer := without
			answer.SetVersion(request.GetVersion())
			return &answer, nil, true
		}
		return nil, nil, false
	})
	if _, err := o.Submit(t.Context(), command(&add{Name: "a", N: 1})); err != nil {
		t.Error(err)
	}
}

// metadataWithout returns what the brokers say of the cluster once one of them is lost.
func (r *rig) metadataWithout(lost int32) kmsg.MetadataResponse {
	r.t.Helper()
	answer := kmsg.NewMetadataResponse()
	for id, address := range r.fake.ListenAddrs() {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			r.t.Fatal(err)
		}
		if int32(id) != lost {
			answer.Brokers = append(answer.Brokers, kmsg.MetadataResponseBroker{NodeID: int32(id), Host: at.Addr().String(), Port: int32(at.Port())})
		}
	}
	name := r.topic()
	topic, partition := kmsg.NewMetadataResponseTopic(), kmsg.NewMetadataResponseTopicPartition()
	info := r.fake.PartitionInfo(name, 0)
	partition.Leader, partition.LeaderEpoch = info.Leader, info.Epoch
	topic.Topic, topic.TopicID = &name, r.fake.TopicInfo(name).TopicID
	topic.Partitions = []kmsg.MetadataResponseTopicPartition{partition}
	answer.Topics = []kmsg.MetadataResponseTopic{topic}
	return answer
}

// refusedOnly returns nil for a refusal.
func refusedOnly(err error) error {
	var refused *submit.RefusedError
	if errors.As(err, &refused) {
		return nil
	}
	return err
}
