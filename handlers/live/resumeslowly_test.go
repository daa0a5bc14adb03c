package live_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/handlers/live"
	"github.com/perpetua-exchange/perpetua/handlers/live/livetest"
)

// TestTooSlowToResume has a client that resumes stop reading. It is closed as any slow reader is; when it reads again, it
// finds all that was queued for it without a hole, then why it was closed.
func TestTooSlowToResume(t *testing.T) {
	var s stalling
	v := newVenue(t, live.Limits{QueueMessages: 40, ResumeWait: time.Millisecond, WriteWait: patience}, s.wrap)
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(v.hub.Collectors()...)
	begin := v.stamp().Sequence - 1
	for range 500 {
		v.place(limit("A1", btc, order.Sell, "0.001", "1000"))
	}
	c := v.dial(v.reader("alpha"))
	release := s.conn(0).stall()
	c.Send(livetest.Request{Op: "subscribe", Args: []string{"orders"}, ResumeFrom: fmt.Sprintf("trading/0@%d", begin), Data: map[string]bool{"positions": true}})
	eventually(t, "the client counts as slow", func() bool { return gather(t, registry)["perpetua_live_slow_consumers_total"] == 1 })
	release()
	if code, reason := c.Closed(); code != websocket.ClosePolicyViolation || reason != string(live.SlowConsumer) {
		t.Errorf("closed with %d %s", code, reason)
	}
	all := c.Messages()
	if last := all[len(all)-1]; last.Code != string(live.SlowConsumer) {
		t.Errorf("the last message is %s", last.Raw)
	}
	for i, m := range c.On("orders") {
		if want := fmt.Sprintf("trading/0@%d", begin+1+int64(i)); m.Fields()["position"] != want {
			t.Fatalf("message %d is not of %s: %s", i, want, m.Raw)
		}
	}
}

// TestASlowReaderLetsOthersResume has as many clients of a user as may read the log at once stop reading in the middle of
// it. One more is served meanwhile, and they themselves when they read again: everything, once and in its order.
func TestASlowReaderLetsOthersResume(t *testing.T) {
	const several, orders = 4, 300
	var s stalling
	v := newVenue(t, live.Limits{QueueMessages: 40, ResumeWait: patience, WriteWait: patience}, s.wrap)
	begin := v.stamp().Sequence - 1
	for range orders {
		v.place(limit("A1", btc, order.Sell, "0.001", "1000"))
	}
	request := livetest.Request{Op: "subscribe", Args: []string{"orders"}, ResumeFrom: fmt.Sprintf("trading/0@%d", begin), Data: map[string]bool{"positions": true}}
	var slow []*livetest.Client
	var releases []func()
	for i := range several {
		c := v.dial(v.reader("alpha"))
		slow, releases = append(slow, c), append(releases, s.conn(i).stall())
		c.Send(request)
	}
	eventually(t, "all read the log", func() bool { return v.reads.Load() >= several })
	quick := v.dial(v.reader("alpha"))
	quick.Send(request)
	quick.Until("all orders", func(all []livetest.Message) bool { return len(all) == 1+orders })
	for range 5 {
		v.place(limit("A1", btc, order.Sell, "0.001", "1000"))
	}
	for _, release := range releases {
		release()
	}
	for _, c := range append(slow, quick) {
		c.Until("all orders", func(all []livetest.Message) bool { return len(all) == 1+orders+5 })
		for i, m := range c.On("orders") {
			if want := fmt.Sprintf("trading/0@%d", begin+1+int64(i)); m.Fields()["position"] != want {
				t.Fatalf("message %d is not of %s: %s", i, want, m.Raw)
			}
		}
	}
}

// TestWhoNoLongerResumesIsNotTooSlow has clients give up the subscriptions that resume while much else is queued for them,
// but less than the queue holds. Nobody waits for them to read any more, so they stay.
func TestWhoNoLongerResumesIsNotTooSlow(t *testing.T) {
	const several, others = 4, 15
	var s stalling
	v := newVenue(t, live.Limits{QueueMessages: 40, ResumeWait: time.Millisecond, WriteWait: patience}, s.wrap)
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(v.hub.Collectors()...)
	begin := v.stamp().Sequence - 1
	v.place(limit("A1", btc, order.Sell, "0.001", "1000"))
	givenUp := make(chan struct{})
	v.reading = func() { <-givenUp }
	request := livetest.Request{Op: "subscribe", Args: []string{"orders"}, ResumeFrom: fmt.Sprintf("trading/0@%d", begin)}
	var slow []*livetest.Client
	var releases []func()
	for i := range several {
		c := v.dial(v.reader("alpha"))
		slow, releases = append(slow, c), append(releases, s.conn(i).stall())
		for range others {
			c.Send(livetest.Request{Op: "ping"})
		}
		c.Send(request)
		c.Send(livetest.Request{Op: "unsubscribe", Args: []string{"orders"}})
	}
	eventually(t, "all have given up", func() bool {
		return v.reads.Load() == several && gather(t, registry)["perpetua_live_subscriptions"] == 0
	})
	close(givenUp)
	quick := v.dial(v.reader("alpha")) // its turn comes when another's wait is over
	quick.Send(request)
	quick.Until("all orders", func(all []livetest.Message) bool { return len(all) == 2 })
	for i, c := range slow {
		releases[i]()
		c.Until("all answers", func(all []livetest.Message) bool { return len(all) == others+2 })
		c.Send(livetest.Request{Op: "ping"})
		c.Until("one more", func(all []livetest.Message) bool { return len(all) == others+3 })
	}
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !is(); <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it did not come to it that %s", what)
		}
	}
}
