package journal

import (
	"context"
	"crypto/sha256"
	"errors"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/record/recordtest"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// longLog is a client of a cluster whose log of trading holds more than a feed does, and what it holds.
func longLog(t *testing.T, change func(values [][]byte)) (*Client, [][]byte) {
	t.Helper()
	wide(t)
	c := onItsOwn(t)
	values := make([][]byte, 2*feedRecords)
	var prev record.Hash
	for i := range values {
		events := []decide.Event{&recordtest.Note{Text: "n"}}
		if i == 0 {
			events[0] = &record.Genesis{Journal: "trading", JournalID: scalar.ID{5}, Partitions: 1}
		}
		values[i] = recordtest.Link(int64(i), prev, events...)
		prev = sha256.Sum256(values[i])
	}
	if change != nil {
		change(values)
	}
	w, err := c.writer()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	var records []*kgo.Record
	for _, v := range values {
		records = append(records, &kgo.Record{Topic: c.Topic("trading"), Value: v})
	}
	for len(records) > 0 { // no more at a time than the writer's window has room for
		n := min(len(records), windowRecords/2)
		if err := w.ProduceSync(t.Context(), records[:n]...).FirstErr(); err != nil {
			t.Fatal(err)
		}
		records = records[n:]
	}
	return c, values
}

// follower is a tail and what it has read.
type follower struct {
	*Tail
	t    *testing.T
	seen []record.Entry
	err  error
}

func (c *Client) follower(t *testing.T) *follower {
	f := &follower{Tail: NewTail(c, recordtest.Rules{}, 0, record.Before), t: t}
	t.Cleanup(f.Close)
	return f
}

// step reads once.
func (f *follower) step() {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), time.Minute)
	defer cancel()
	var some []record.Entry
	some, _, f.err = f.Next(ctx)
	f.seen = append(f.seen, some...)
}

// join reads until it shares a feed: on a busy machine, its session may break after the first records.
func (f *follower) join() {
	f.t.Helper()
	for f.step(); f.err == nil && f.feed == nil; {
		f.step()
	}
}

// to reads up to a sequence, or to an error.
func (f *follower) to(sequence int64) {
	f.t.Helper()
	for f.err == nil && f.Position().Sequence < sequence {
		f.step()
	}
}

// together has followers read at the same time.
func together(sequence int64, all ...*follower) {
	var group sync.WaitGroup
	for _, f := range all {
		group.Go(func() { f.to(sequence) })
	}
	group.Wait()
}

// check compares what a follower has read with the log.
func (f *follower) check(values [][]byte) {
	f.t.Helper()
	if len(f.seen) != len(values) {
		f.t.Fatalf("%d records, and not %d (%v)", len(f.seen), len(values), f.err)
	}
	for i, e := range f.seen {
		if e.Position.Sequence != int64(i) || e.Position.Offset != int64(i) || e.Record.Sequence != int64(i) || string(e.Value) != string(values[i]) {
			f.t.Fatalf("record %d is %v", i, e.Position)
		}
	}
}

// sharedFeeds returns the feeds at the tip and on the way there.
func (c *Client) sharedFeeds() (tip, catching *feed) {
	c.sharing.Lock()
	defer c.sharing.Unlock()
	p := submit.Shard{Journal: "trading"}
	return c.feeds[p], c.catching[p]
}

// arrivedAt waits until a feed is the one at the tip, and there is no other.
func (c *Client) arrivedAt(t *testing.T, f *feed) {
	t.Helper()
	for range 45_000 {
		if tip, catching := c.sharedFeeds(); tip == f && catching == nil {
			return
		}
		<-time.After(2 * time.Millisecond)
	}
	t.Fatal("it does not arrive")
}

// behind returns how often a tail had to read for itself.
func (c *Client) behind() (n float64) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(c.cfg.Metrics.Behind)
	families, _ := registry.Gather()
	for _, f := range families {
		for _, m := range f.GetMetric() {
			n += m.GetCounter().GetValue()
		}
	}
	return n
}

func TestTailsFarBehindShareOneReaderToTheTip(t *testing.T) {
	c, values := longLog(t, nil)
	last := int64(len(values) - 1)
	a, b := c.follower(t), c.follower(t)
	a.join()
	b.join() // of the first there is still everything, since a does not go on
	if tip, catching := c.sharedFeeds(); a.feed == nil || a.feed != b.feed || catching != a.feed || tip != nil {
		t.Fatal("they do not share")
	}
	together(last, a, b)
	a.check(values)
	b.check(values)
	if !reflect.DeepEqual(a.seen[last], b.seen[last]) || a.seen[last].Record != b.seen[last].Record {
		t.Error("it was decoded twice")
	}
	if n := c.behind(); n != 0 {
		t.Errorf("%v fell behind", n)
	}
	// At the tip theirs is the feed that everybody shares.
	late := c.follower(t)
	next := recordtest.Link(last+1, a.Position().Hash, &recordtest.Note{Text: "more"})
	if err := c.append(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	together(last+1, a, b, late)
	late.check(append(values, next))
	if a.feed == nil || a.feed != b.feed {
		t.Error("they share no more")
	}
	c.arrivedAt(t, a.feed)
}

func TestATailThatDawdlesOnTheWayIsNotWaitedForForEver(t *testing.T) {
	c, values := longLog(t, nil)
	last := int64(len(values) - 1)
	a, slow := c.follower(t), c.follower(t)
	a.join()
	slow.join()
	if slow.feed == nil || slow.feed != a.feed {
		t.Fatal("they do not share")
	}
	a.to(last) // though the slow one does not read
	a.check(values)
	slow.to(last)
	slow.check(values)
	if n := c.behind(); n != 1 {
		t.Errorf("%v fell behind", n)
	}
}

func TestTailsGoOverToTheFeedAtTheTip(t *testing.T) {
	c, values := longLog(t, nil)
	last := int64(len(values) - 1)
	first := c.follower(t)
	first.to(last)
	first.check(values)
	c.arrivedAt(t, first.feed)
	a, b := c.follower(t), c.follower(t)
	a.join()
	b.join()
	if a.feed == nil || a.feed == first.feed || a.feed != b.feed {
		t.Fatal("they do not share on their way")
	}
	together(last, a, b)
	over := func() bool { return a.feed == first.feed && b.feed == first.feed }
	for !over() && len(values) < int(last)+10 { // if the session of their feed has just broken, it sees only with another record that it is at the tip
		var group sync.WaitGroup
		for _, f := range []*follower{a, b, first} {
			group.Go(f.step)
		}
		next := recordtest.Link(int64(len(values)), first.Position().Hash, &recordtest.Note{Text: "more"})
		if err := c.append(t.Context(), next); err != nil {
			t.Fatal(err)
		}
		group.Wait()
		together(int64(len(values)), a, b, first)
		values = append(values, next)
	}
	for _, f := range []*follower{a, b, first} {
		f.check(values)
	}
	if !over() || first.feed == nil {
		t.Error("one did not go over")
	}
	if n := c.behind(); n != 0 {
		t.Errorf("%v fell behind", n)
	}
	c.arrivedAt(t, first.feed)
}

func TestEveryTailOnTheWayHearsWhatIsWrong(t *testing.T) {
	const at = feedRecords + 77
	c, values := longLog(t, func(values [][]byte) {
		r := recordtest.Sample()
		r.Sequence, r.Prev = at+5, sha256.Sum256(values[at-1])
		value, err := record.Encode(nil, r)
		if err != nil {
			t.Fatal(err)
		}
		values[at] = value
	})
	a, b := c.follower(t), c.follower(t)
	a.join()
	b.join()
	together(int64(len(values)), a, b)
	for _, f := range []*follower{a, b} {
		var broken *record.BrokenRecordError
		if !errors.As(f.err, &broken) || broken.Offset != at || broken.Sequence != at+5 {
			t.Errorf("%v", f.err)
		}
		f.check(values[:at])
	}
}

func TestTheLastTailEndsAFeedThatWaitsForIt(t *testing.T) {
	c, values := longLog(t, nil)
	a := c.follower(t)
	a.join()
	if a.feed == nil {
		t.Fatal("it does not read ahead")
	}
	a.Close()
	if tip, catching := c.sharedFeeds(); tip != nil || catching != nil {
		t.Error("the feed is still there")
	}
	a.to(int64(len(values) - 1))
	a.check(values)
}

// TestASlowSessionIsWaitedForAtLast: a reader that gets no record in time opens another session. If it never waited for longer, a
// busy machine would keep it from its position for ever.
func TestASlowSessionIsWaitedForAtLast(t *testing.T) {
	c, values := longLog(t, nil)
	first := NewReader(c, recordtest.Rules{}, 0, record.Before)
	defer first.Close()
	entries, err := first.Poll(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := NewReader(c, recordtest.Rules{}, 0, entries[0].Position)
	defer r.Close()
	r.within = time.Millisecond // less than it takes to connect
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if entries, err = r.Poll(ctx); err != nil {
		t.Fatalf("after %d sessions: %v", r.slow, err)
	}
	if string(entries[0].Value) != string(values[1]) || r.slow != 0 {
		t.Errorf("record %v after %d sessions", entries[0].Position, r.slow)
	}
}
