package journal_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/perpetua-exchange/perpetua/streams/record"
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
	var to kadm.Offsets
	to.Add(kadm.Offset{Topic: w.topic(), Partition: 0, At: 2})
	if _, err := w.admin.DeleteRecords(w.context(), to); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-w.ended:
		var base *record.BaseError
		if !errors.As(err, &base) {
			t.Errorf("the watch has ended with %v", err)
		}
	case <-w.context().Done():
		t.Fatal("the watch goes on")
	}
	if w.alarms() == 0 {
		t.Error("no alarm")
	}
}
