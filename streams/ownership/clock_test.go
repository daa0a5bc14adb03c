package ownership_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/journal/journaltest"
	"github.com/perpetua-exchange/perpetua/streams/ownership"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// shifted is the machine's clock, and wrong.
type shifted struct {
	journal.Clock
	by time.Duration
}

func (c shifted) Wall() time.Time { return c.Clock.Wall().Add(c.by) }

// A node whose clock is off does not join, so that those whose clocks are right keep what they own, and it does once its
// clock is right again.
func TestANodeWhoseClockIsOffDoesNotJoin(t *testing.T) {
	fake, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fake.Close)
	words := []decide.Rules{journaltest.Words{Name: "trading"}}
	alarms := make(map[string]func() float64)
	begin := func(id string, off time.Duration, other func(context.Context) (time.Time, error)) *node {
		metrics := journal.NewMetrics()
		alarms[id] = func() float64 { return testutil.ToFloat64(metrics.Alarms.WithLabelValues("trading", "clock")) }
		c, err := journal.NewClient(journal.Config{Brokers: fake.ListenAddrs(), Metrics: metrics, Clock: shifted{journal.SystemClock(), off}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		if err := c.EnsureTopics(t.Context(), "trading"); err != nil {
			t.Fatal(err)
		}
		return startNode(t, ownership.Config{Client: c, NodeID: id, URL: "http://" + id + ":8080", Build: "test", Rules: words, OtherClock: other})
	}
	var right atomic.Bool
	wrong := begin("wrong", 0, func(context.Context) (time.Time, error) {
		if right.Load() {
			return time.Now(), nil
		}
		return time.Now().Add(2 * time.Minute), nil
	})
	eventually(t, "there is an alarm", func() bool { return alarms["wrong"]() == 1 })
	n := begin("right", 0, func(context.Context) (time.Time, error) { return time.Time{}, errors.New("away") })
	eventually(t, "the right one serves", func() bool { return n.serves("trading") })
	c := journaltest.Say("hello")
	if _, err := journaltest.Insist(func() (submit.Result, error) { return n.Submit(t.Context(), "trading", c) }); err != nil {
		t.Fatal(err)
	}
	late := begin("late", -2*time.Minute, nil) // by the log, which it folds before it joins
	eventually(t, "there is an alarm", func() bool { return alarms["late"]() == 1 })
	right.Store(true)
	if err := n.end(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the first one serves once its clock is right", func() bool { return wrong.serves("trading") })
	if term, _ := wrong.Serving("trading", 0); term != 2 || late.serves("trading") {
		t.Errorf("in term %d", term)
	}
}
