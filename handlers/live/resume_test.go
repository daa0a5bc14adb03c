package live_test

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/handlers/live"
	"github.com/perpetua-exchange/perpetua/handlers/live/livetest"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// TestResume lets clients come back at every kind of position while records go on, and compares what each gets with
// what a client that never left got.
func TestResume(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 2))
	v := newVenue(t, live.Limits{QueueMessages: 1 << 16, QueueBytes: 1 << 30}, nil) // nobody is too slow here
	topics := []string{"orders", "trades", "balance-changes", "market-trades:" + btc}
	steady := v.dial(v.reader("alpha"))
	steady.SubscribeWith(livetest.Request{Args: topics, Data: map[string]bool{"positions": true}})
	begin := fmt.Sprintf("trading/0@%d", v.stamp().Sequence-1)
	for range 400 {
		v.someone(r, btc)
	}
	steady.Ask(livetest.Request{Op: "ping"})

	type comeback struct {
		client *livetest.Client
		topic  string
		had    int // messages of the topic before it left
	}
	var mu sync.Mutex
	var back []comeback
	var coming sync.WaitGroup
	for _, topic := range topics {
		known := steady.On(topic)
		for _, had := range []int{0, 1, len(known) / 3, r.IntN(len(known)), r.IntN(len(known)), len(known) - 1, len(known)} {
			position := begin
			if had > 0 {
				position = known[had-1].Fields()["position"]
			}
			coming.Go(func() {
				c := livetest.Dial(t, v.url, v.reader("alpha"))
				c.Send(livetest.Request{Op: "subscribe", Args: []string{topic}, ResumeFrom: position, Data: map[string]bool{"positions": true}})
				mu.Lock()
				defer mu.Unlock()
				back = append(back, comeback{c, topic, had})
			})
		}
	}
	for range 1500 {
		v.someone(r, btc)
	}
	coming.Wait()
	for range 20 {
		v.someone(r, btc)
	}
	for _, b := range back {
		last := v.lastOf(steady, b.topic)
		b.client.Until("the last message", func(all []livetest.Message) bool {
			return len(all) > 0 && string(all[len(all)-1].Raw) == string(last.Raw)
		})
		want, got := steady.On(b.topic)[b.had:], b.client.On(b.topic)
		if len(got) != len(want) {
			t.Fatalf("%s after %d: %d messages, want %d", b.topic, b.had, len(got), len(want))
		}
		for i := range want {
			if string(got[i].Raw) != string(want[i].Raw) {
				t.Fatalf("%s after %d, message %d: %s, want %s", b.topic, b.had, i, got[i].Raw, want[i].Raw)
			}
		}
	}
}

// lastOf returns the last message of a topic once everything has arrived at the client.
func (v *venue) lastOf(c *livetest.Client, topic string) livetest.Message {
	c.Ask(livetest.Request{Op: "ping"})
	all := c.On(topic)
	return all[len(all)-1]
}

// TestEachTopicResumesFromItsOwnPosition leaves a connection after each message of a record that has several on each of
// three topics, and comes back to each topic with the position of the last message that came on it. A position is of one
// topic: the record's messages on several topics come mixed, and the same position stands behind other messages of the
// record on each of them.
func TestEachTopicResumesFromItsOwnPosition(t *testing.T) {
	v := newVenue(t, live.Limits{}, nil)
	v.place(limit("A1", btc, order.Sell, "1", "1000"))
	v.place(limit("A1", btc, order.Sell, "1", "1001"))
	begin := fmt.Sprintf("trading/0@%d", v.stamp().Sequence-1)
	topics := []string{"orders", "trades", "balance-changes"}
	steady := v.dial(v.reader("alpha"))
	steady.SubscribeWith(livetest.Request{Args: topics, Data: map[string]bool{"positions": true}})
	v.place(limit("A2", btc, order.Buy, "2", "1001"))
	steady.Ask(livetest.Request{Op: "ping"})
	all := slices.DeleteFunc(steady.Messages(), func(m livetest.Message) bool { return m.Op != "" })
	for _, topic := range topics {
		if n := len(steady.On(topic)); n < 3 {
			t.Fatalf("the record has %d messages on %s", n, topic)
		}
	}

	for cut := range len(all) + 1 {
		had, came := make(map[string]string), make(map[string]int)
		for _, m := range all[:cut] {
			had[m.Channel] = m.Fields()["position"]
			came[m.Channel]++
		}
		c := v.dial(v.reader("alpha"))
		for _, topic := range topics {
			c.SubscribeWith(livetest.Request{Args: []string{topic}, ResumeFrom: cmp.Or(had[topic], begin), Data: map[string]bool{"positions": true}})
		}
		c.Until("the rest", func(got []livetest.Message) bool { return len(got) >= len(topics)+len(all)-cut })
		for _, topic := range topics {
			same := func(a, b livetest.Message) bool { return string(a.Raw) == string(b.Raw) }
			if got, want := c.On(topic), steady.On(topic)[came[topic]:]; !slices.EqualFunc(got, want, same) {
				t.Errorf("left after %d messages: %d on %s, want %d", cut, len(got), topic, len(want))
			}
		}
	}
}

func TestResumeIsForTheReader(t *testing.T) {
	v := newVenue(t, live.Limits{}, nil)
	v.place(limit("A1", btc, order.Sell, "1", "1000"))
	v.place(limit("B1", btc, order.Buy, "0.5", "1000"))
	v.place(limit("A2", btc, order.Buy, "0.5", "1000"))
	c := v.dial(v.reader("beta"))
	c.SubscribeWith(livetest.Request{Args: []string{"orders", "trades", "balance-changes"}, ResumeFrom: "trading/0@0"})
	some := func(channel, status string) func([]livetest.Message) bool { // the topics catch up side by side
		return func(all []livetest.Message) bool {
			return slices.ContainsFunc(all, func(m livetest.Message) bool {
				return m.Channel == channel && m.Op == "" && (status == "" || m.Fields()["status"] == status)
			})
		}
	}
	c.Until("the order", some("orders", "filled"))
	c.Until("the trade", some("trades", ""))
	c.Until("the fee", some("balance-changes", ""))
	v.place(limit("A1", btc, order.Sell, "1", "1000"))
	v.place(limit("B1", btc, order.Buy, "0.5", "999"))
	c.Until("the new order", some("orders", "open"))
	for _, m := range c.Messages() {
		if f := m.Fields(); m.Op == "" && f["customer_code"] != "B1" {
			t.Errorf("%s", m.Raw)
		}
	}
}

func TestResumeRefused(t *testing.T) {
	v := newVenue(t, live.Limits{ResumeRecords: 20}, nil)
	for range 30 {
		v.place(limit("A1", btc, order.Sell, "0.001", "1000"))
	}
	c := v.dial(v.reader("alpha"))
	at := v.stamp().Sequence - 1
	ask := func(position string) livetest.Message {
		return c.Ask(livetest.Request{Op: "subscribe", Args: []string{"orders"}, ResumeFrom: position})
	}
	if m := ask(fmt.Sprintf("trading/0@%d", at-21)); m.Code != string(live.ResumeTooOld) || m.Args[0] != "orders" {
		t.Errorf("%s", m.Raw)
	}
	if m := ask(fmt.Sprintf("trading/0@%d", at+1)); m.Code != string(live.InvalidMessage) {
		t.Errorf("%s", m.Raw)
	}
	v.mu.Lock()
	v.broken = errors.New("LOG_DIVERGED")
	v.mu.Unlock()
	if m := ask(fmt.Sprintf("trading/0@%d", at-20)); m.Op != "subscribed" {
		t.Errorf("%s", m.Raw)
	}
	if m := c.Next("the end", func(m livetest.Message) bool { return m.Op == "error" }); m.Code != string(live.UpstreamError) {
		t.Errorf("%s", m.Raw)
	}
	if m := ask(fmt.Sprintf("trading/0@%d", at)); m.Op != "subscribed" { // nothing to read
		t.Errorf("%s", m.Raw)
	}
}

// TestResumeOnATrimmedLog resumes where the anchor below the position is gone, and where the position is.
func TestResumeOnATrimmedLog(t *testing.T) {
	v := newVenue(t, live.Limits{}, nil)
	for range 30 {
		v.place(limit("A1", btc, order.Sell, "0.001", "1000"))
	}
	last := v.stamp().Sequence - 1
	v.mu.Lock()
	v.base = &record.Base{Journal: "trading", Partitions: 1, Sequence: last - 9}
	v.mu.Unlock()
	for _, back := range []int64{5, 10} {
		c := v.dial(v.reader("alpha"))
		c.SubscribeWith(livetest.Request{Args: []string{"orders"}, ResumeFrom: fmt.Sprintf("trading/0@%d", last-back)})
		c.Until("the missed orders", func(all []livetest.Message) bool {
			return len(slices.DeleteFunc(slices.Clone(all), func(m livetest.Message) bool { return m.Channel != "orders" || m.Op != "" })) == int(back)
		})
	}
	c := v.dial(v.reader("alpha"))
	c.SubscribeWith(livetest.Request{Args: []string{"orders"}, ResumeFrom: fmt.Sprintf("trading/0@%d", last-11)})
	if m := c.Next("the end", func(m livetest.Message) bool { return m.Op == "error" }); m.Code != string(live.ResumeTooOld) {
		t.Errorf("%s", m.Raw)
	}
}

// TestResumeAhead names a position that the node has not reached: it tells one that nobody has from one that it has not
// read yet or can't read any more, and does not wait for somebody who may not have it.
func TestResumeAhead(t *testing.T) {
	v := newVenue(t, live.Limits{}, nil)
	ahead := fmt.Sprintf("trading/0@%d", v.stamp().Sequence+5)
	ask := func(c *livetest.Client) string {
		return c.Ask(livetest.Request{Op: "subscribe", Args: []string{"orders"}, ResumeFrom: ahead}).Code
	}
	if code := ask(v.dial("")); code != string(live.AuthenticationRequired) {
		t.Errorf("without a token: %s", code)
	}
	c := v.dial(v.reader("alpha"))
	tip := v.tip
	v.tip = make(chan struct{}) // never reached: the brokers don't answer
	if code := ask(c); code != string(live.UpstreamError) {
		t.Errorf("while the node may be behind: %s", code)
	}
	v.tip = tip
	if code := ask(c); code != string(live.InvalidMessage) {
		t.Errorf("beyond the end of the log: %s", code)
	}
	v.fail(errors.New("LOG_DIVERGED"))
	if code := ask(c); code != string(live.UpstreamError) {
		t.Errorf("with a log that can't be read: %s", code)
	}
}

// TestHeldMessagesAreBounded lets the log hang when a client has nearly caught up: the live messages that are held
// back meanwhile don't pile up without end. The client is not slow for that: it is told all, in order.
func TestHeldMessagesAreBounded(t *testing.T) {
	v := newVenue(t, live.Limits{QueueMessages: 20}, nil)
	begin := v.stamp().Sequence - 1
	v.place(limit("A1", btc, order.Sell, "0.001", "1000"))
	reads, release := make(chan struct{}), make(chan struct{})
	hang := sync.OnceFunc(func() {
		close(reads)
		<-release
	})
	v.mu.Lock()
	v.reading = hang
	v.mu.Unlock()
	c := v.dial(v.reader("alpha"))
	c.SubscribeWith(livetest.Request{Args: []string{"orders"}, ResumeFrom: fmt.Sprintf("trading/0@%d", begin), Data: map[string]bool{"positions": true}})
	<-reads
	for range 30 {
		v.place(limit("A1", btc, order.Sell, "0.001", "1000"))
	}
	close(release)
	c.Until("all orders", func(all []livetest.Message) bool { return len(all) >= 32 })
	at := begin
	for _, m := range c.On("orders") {
		at++
		if want := fmt.Sprintf("trading/0@%d", at); m.Fields()["position"] != want {
			t.Errorf("after %s comes %s", want, m.Raw)
		}
	}
}

// TestResumeWaitsForASlowReader serves far more than the queue holds to a client that stops reading in between.
func TestResumeWaitsForASlowReader(t *testing.T) {
	var s stalling
	v := newVenue(t, live.Limits{QueueMessages: 40}, s.wrap)
	begin := v.stamp().Sequence - 1
	for range 500 {
		v.place(limit("A1", btc, order.Sell, "0.001", "1000"))
	}
	c := v.dial(v.reader("alpha"))
	release := s.conn(0).stall()
	c.Send(livetest.Request{Op: "subscribe", Args: []string{"orders"}, ResumeFrom: fmt.Sprintf("trading/0@%d", begin)})
	release()
	c.Next("the acknowledgement", func(m livetest.Message) bool { return m.Op == "subscribed" })
	c.Until("all orders", func(all []livetest.Message) bool { return len(all) == 501 })
	if m := c.Ask(livetest.Request{Op: "unsubscribe", Args: []string{"orders"}}); m.Op != "unsubscribed" {
		t.Errorf("%s", m.Raw)
	}
}

// TestOneUserLeavesRoomForOthers lets the log hang for one user who resumes on many connections: only some of them read
// it, and somebody else resumes meanwhile. In the end all have been served.
func TestOneUserLeavesRoomForOthers(t *testing.T) {
	v := newVenue(t, live.Limits{}, nil)
	begin := fmt.Sprintf("trading/0@%d", v.stamp().Sequence-1)
	v.place(limit("A1", btc, order.Sell, "0.001", "1000"))
	v.place(limit("B1", btc, order.Sell, "0.001", "1001"))
	reads, hanging := make(chan struct{}, 100), make(chan struct{})
	release := sync.OnceFunc(func() { close(hanging) })
	defer release()
	hang := func(do func()) {
		v.mu.Lock()
		v.reading = do
		v.mu.Unlock()
	}
	hang(func() {
		reads <- struct{}{}
		<-hanging
	})
	var many []*livetest.Client
	for range 20 {
		c := v.dial(v.reader("alpha"))
		c.SubscribeWith(livetest.Request{Args: []string{"orders"}, ResumeFrom: begin})
		many = append(many, c)
	}
	for range 4 {
		<-reads
	}
	hang(nil)
	other := v.dial(v.reader("beta"))
	other.SubscribeWith(livetest.Request{Args: []string{"orders"}, ResumeFrom: begin})
	other.Next("the order", func(m livetest.Message) bool { return m.Channel == "orders" && m.Op == "" })
	if n := len(reads); n > 0 {
		t.Errorf("%d more subscriptions of one user read the log than may", n)
	}
	for _, c := range many[:3] { // some give up, whether they read or wait
		c.Close()
	}
	release()
	for _, c := range many[3:] {
		c.Next("the order", func(m livetest.Message) bool { return m.Channel == "orders" && m.Op == "" })
	}
}
