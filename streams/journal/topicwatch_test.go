package journal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/perpetua-exchange/perpetua/streams/base"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// watched is a rig whose topic is watched, with what the watch logs.
type watched struct {
	*rig
	admin *kadm.Client
	ended chan error

	mu  sync.Mutex
	log bytes.Buffer
}

// Write implements io.Writer.
func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.Write(p)
}

// count returns how often a text was logged.
func (w *watched) count(text string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Count(w.log.String(), text)
}

func (w *watched) alarms() float64 {
	return testutil.ToFloat64(w.metrics.Alarms.WithLabelValues("trading", "topic"))
}

// set changes a setting of the topic as an administrator would.
func (w *watched) set(name, value string) {
	w.t.Helper()
	changes := []kadm.AlterConfig{{Op: kadm.SetConfig, Name: name, Value: &value}}
	if _, err := w.admin.AlterTopicConfigs(w.context(), changes, w.topic()); err != nil {
		w.t.Fatal(err)
	}
}

// trim deletes the records before an offset as an administrator would.
func (w *watched) trim(offset int64) { w.t.Helper(); deleteBefore(w.rig, offset) }

func deleteBefore(r *rig, offset int64) {
	r.t.Helper()
	admin := kadm.NewClient(must(r.client.Kafka()))
	defer admin.Close()
	var to kadm.Offsets
	to.Add(kadm.Offset{Topic: r.topic(), Partition: 0, At: offset})
	if deleted, err := admin.DeleteRecords(r.context(), to); err != nil || deleted.Error() != nil {
		r.t.Fatal(err, deleted.Error())
	}
}

// newWatched watches the topic of a journal with three records until the test ends.
func newWatched(t *testing.T) *watched {
	w := &watched{rig: newRig(t), ended: make(chan error, 1)}
	w.written(3)
	w.admin = kadm.NewClient(must(w.client.Kafka()))
	t.Cleanup(w.admin.Close)
	client := w.newLoggingClient(nil, nil, slog.New(slog.NewTextHandler(w, nil)))
	ctx, stop := context.WithCancel(context.Background())
	var watch sync.WaitGroup
	watch.Go(func() { w.ended <- client.WatchTopics(ctx, 10*time.Millisecond, "trading") })
	t.Cleanup(func() { stop(); watch.Wait() })
	return w
}

// TestAnAlarmIsRaisedWhileATopicIsSetWrong: retention that somebody sets while a venue runs would delete its records in
// silence.
func TestAnAlarmIsRaisedWhileATopicIsSetWrong(t *testing.T) {
	w := newWatched(t)
	w.set("retention.ms", "604800000")
	eventually(t, "the alarm is raised at each check", func() bool { return w.alarms() > 2 })
	if n := w.count(`retention.ms is \"604800000\"`); n != 1 {
		t.Errorf("it was logged %d times", n)
	}
	w.set("retention.ms", "-1")
	eventually(t, "the topic is right again", func() bool { return w.count("as it must be again") == 1 })
	select {
	case err := <-w.ended:
		t.Errorf("the watch has ended with %v", err)
	default:
	}
}

// TestTheWatchEndsWithTheBeginningOfALog: records that no trim has deleted are lost.
func TestTheWatchEndsWithTheBeginningOfALog(t *testing.T) {
	w := newWatched(t)
	w.trim(2)
	select {
	case err := <-w.ended:
		var base *record.BaseError
		if !errors.As(err, &base) {
			t.Errorf("the watch has ended with %v", err)
		}
	case <-w.context().Done():
		t.Fatal("the watch goes on")
	}
	if w.alarms() == 0 || w.rig.alarms("log_base") == 0 {
		t.Error("no alarm")
	}
}

// TestTwoChecksInSuccessionEndTheWatch: a check that finds the log as it must be forgets the one before it. A check without an
// answer does not.
func TestTwoChecksInSuccessionEndTheWatch(t *testing.T) {
	b := newBased(newFake(t), 60, rand.New(rand.NewPCG(1, 1)))
	known := new(kept)
	check := b.with(known).CheckAgain("trading")
	expect := func(when string, lost bool) {
		t.Helper()
		if err := check(b.context()); record.Final(err) != lost || err != nil && !lost {
			t.Fatalf("%s: %v", when, err)
		}
	}
	expect("the whole log", false)
	b.trim(20)
	expect("the beginning is lost", false)
	known.Store(new(b.base(20)))
	expect("it was trimmed", false)
	deleteBefore(b.rig, b.valid[40].Position.Offset)
	expect("the beginning is lost again", false)
	denied := b.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.DescribeConfigs}, Err: kerr.TopicAuthorizationFailed, Count: -1})
	expect("no answer", false)
	denied.Remove()
	expect("it is still lost", true)
}

// TestADeniedCheckIsLogged once: nothing else says that a topic is watched no more.
func TestADeniedCheckIsLogged(t *testing.T) {
	w := &watched{rig: newFake(t)}
	w.written(3)
	check := w.newLoggingClient(nil, nil, slog.New(slog.NewTextHandler(w, nil))).CheckAgain("trading")
	for i := range 2 {
		denied := w.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.DescribeConfigs}, Err: kerr.TopicAuthorizationFailed, Count: -1})
		for range 2 {
			if err := check(w.context()); err != nil {
				t.Fatal(err)
			}
		}
		if n := w.count("level=WARN"); n != i+1 {
			t.Errorf("it was logged %d times, want %d:\n%s", n, i+1, &w.log)
		}
		denied.Remove()
		if err := check(w.context()); err != nil {
			t.Fatal(err)
		}
	}
	if w.alarms() != 0 {
		t.Error("an alarm was raised")
	}
}

// TestTheAlarmOfATopicExistsBeforeItsFirstCount on every node, not only on engines: otherwise the first count is no increase.
func TestTheAlarmOfATopicExistsBeforeItsFirstCount(t *testing.T) {
	r := newFake(t)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := r.client.WatchTopics(ctx, time.Hour, "trading", "identity"); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(r.metrics)
	kinds := []string{"topic", "log_base", "log_broken", "log_diverged", "log_trimmed"}
	if n, err := testutil.GatherAndCount(registry, "perpetua_journal_alarms_total"); n != 2*len(kinds) || err != nil {
		t.Errorf("%d series, %v", n, err)
	}
	for _, kind := range kinds { // they are among those that were counted
		r.alarms(kind)
	}
	if n, err := testutil.GatherAndCount(registry, "perpetua_journal_alarms_total"); n != 2*len(kinds) || err != nil {
		t.Errorf("%d series, %v", n, err)
	}
}

// TestANewerBaseMayBeInASilentSource: the venue trims its log, and Postgres ends before this node has read the new base. Its folder
// still has the old one. The node must not take the log for lost.
func TestANewerBaseMayBeInASilentSource(t *testing.T) {
	b := newBased(newRig(t), 300, rand.New(rand.NewPCG(1, 1)))
	b.trim(100)
	postgres := &away{Source: b.kept}
	client := b.with(copied{"the data folder", new(b.base(100))}, postgres)
	if err := client.CheckTopics(b.context(), "trading"); err != nil {
		t.Fatal(err)
	}
	b.trim(200)
	postgres.Store(true)
	for range 2 {
		if err := client.CheckTopics(b.context(), "trading"); err == nil || record.Final(err) || !strings.Contains(err.Error(), "no answer") {
			t.Errorf("while a source is silent: %v", err)
		}
	}
	started := b.with(copied{"the data folder", new(b.base(100))}, postgres)
	if err := started.CheckTopics(b.context(), "trading"); err == nil || record.Final(err) {
		t.Errorf("a node that starts while a source is silent: %v", err)
	}
	postgres.Store(false)
	if err := client.CheckTopics(b.context(), "trading"); err != nil {
		t.Errorf("after it has answered: %v", err)
	}
}

// TestNoBaseExplainsAnEmptyLog: a source that is silent does not hide that all records are lost.
func TestNoBaseExplainsAnEmptyLog(t *testing.T) {
	b := newBased(newRig(t), 100, rand.New(rand.NewPCG(1, 1)))
	deleteBefore(b.rig, int64(len(b.kafka)))
	err := b.with(copied{"the data folder", new(b.base(50))}, mute{}).CheckTopics(b.context(), "trading")
	if !record.Final(err) || !strings.Contains(err.Error(), "records are lost") {
		t.Error(err)
	}
}

// TestASilentSourceOfBasesIsAskedAgain: a node that starts while Postgres is away serves once it is back.
func TestASilentSourceOfBasesIsAskedAgain(t *testing.T) {
	b := newBased(newRig(t), 100, rand.New(rand.NewPCG(1, 1)))
	b.trim(50)
	postgres := &away{Source: b.kept}
	postgres.Store(true)
	client := b.with(postgres)
	if err := client.CheckTopics(b.context(), "trading"); err == nil || record.Final(err) {
		t.Fatalf("while it is silent: %v", err)
	}
	postgres.Store(false)
	if err := client.CheckTopics(b.context(), "trading"); err != nil {
		t.Error(err)
	}
}

// away is a source of bases that can be silent.
type away struct {
	base.Source
	atomic.Bool
}

// Base implements base.Source.
func (a *away) Base(ctx context.Context, name string, partition int32) (*record.Base, error) {
	if a.Load() {
		return mute{}.Base(ctx, name, partition)
	}
	return a.Source.Base(ctx, name, partition)
}

// received counts the bytes that a client receives.
type received struct{ atomic.Int64 }

// OnBrokerRead implements kgo.HookBrokerRead.
func (r *received) OnBrokerRead(_ kgo.BrokerMetadata, _ int16, bytes int, _, _ time.Duration, _ error) {
	r.Add(int64(bytes))
}

// TestACheckCostsTheBrokersLittle: every node checks every topic every ten seconds, however long the log is, and however many
// topics the brokers have.
func TestACheckCostsTheBrokersLittle(t *testing.T) {
	b := newBased(newFake(t), 3000, rand.New(rand.NewPCG(1, 1)))
	for i := range 100 {
		if err := b.fake.CreateTopic(fmt.Sprintf("other-%d-%s", i, strings.Repeat("x", 200)), 1, nil); err != nil {
			t.Fatal(err)
		}
	}
	var bytes received
	client := b.clientWith(nil, nil, kgo.WithHooks(&bytes))
	for range 2 {
		bytes.Store(0)
		requests := b.fake.Fault(kfake.Fault{Observe: true, Count: -1, When: func(r kmsg.Request) bool {
			return r.Key() != int16(kmsg.ApiVersions) && r.Key() != int16(kmsg.Metadata)
		}})
		if err := client.CheckTopics(b.context(), "trading"); err != nil {
			t.Fatal(err)
		}
		t.Logf("%d bytes, %d requests", bytes.Load(), requests.Hits())
		if n := bytes.Load(); n > 16<<10 {
			t.Errorf("a check reads %d bytes", n)
		}
		if n := requests.Hits(); n > 4 {
			t.Errorf("a check makes %d requests besides those for metadata", n)
		}
		requests.Remove()
	}
}

// TestATopicThatIsSetTooSmall refuses a record that the rules allow. Its command may be submitted again, and smaller records are taken.
func TestATopicThatIsSetTooSmall(t *testing.T) {
	w := &watched{rig: newRig(t)}
	w.admin = kadm.NewClient(must(w.client.Kafka()))
	defer w.admin.Close()
	o := w.owner("n1").ready()
	w.set("max.message.bytes", "2000")
	var refused *submit.NotAcceptedError
	if _, err := o.Submit(w.context(), command(&add{Name: strings.Repeat("n", 4000), N: 1})); !errors.As(err, &refused) || refused.RetryAfter < time.Second {
		t.Errorf("a large record: %v", err)
	}
	if w.alarms() == 0 {
		t.Error("no alarm")
	}
	o.do(command(&add{Name: "a", N: 1}))
}
