package journal

import (
	"context"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// Tail reads the valid records of one partition with the guarantees of a Reader, for callers that stay at the tip. At
// the tip, all tails of a partition in a client share one reader, so a process fetches, verifies and decodes each
// record once for any number of tails. All of them MUST have the same rules.
//
// A tail begins with a separate reader, which verifies the start position. It joins the shared reader when that has
// passed the tail's position (sequence and hash), or makes its reader the shared one when it reaches the tip first.
// Tails that begin far behind at about the same time, as at the start of a process, also share one reader while they
// catch up. A tail that falls behind the retained records opens a separate reader until it has caught up. A final error
// of the shared reader becomes the tail's error, after the last record before it. A Tail is not safe for concurrent
// use. Its entries are shared and MUST NOT be changed.
type Tail struct {
	client *Client
	rules  decide.Rules
	shard  submit.Shard

	reader       *Reader     // nil while the tail uses a feed
	feed         *feed       // nil while the tail has a separate reader
	subscription *subscriber // to the feed
	apart        bool        // no feed holds the present position: reader waits for the next record

	at       record.Position // of the last record returned
	id       scalar.ID
	term     int64
	next     int64 // the offset after the last record read, valid or not
	reported int64 // the last value of next that Next returned; -1 for none
	err      error
}

// NewTail returns a tail that continues after from. It connects on first use.
func NewTail(client *Client, rules decide.Rules, partition int32, from record.Position) *Tail {
	return NewReader(client, rules, partition, from).tail()
}

// tail returns a tail that continues after the reader's position. It takes ownership of the reader.
func (r *Reader) tail() *Tail {
	return &Tail{client: r.client, rules: r.rules, shard: submit.Shard{Journal: r.chain.Journal(), Partition: r.partition}, reader: r, at: r.chain.Position(), id: r.chain.ID(),
		term: r.chain.Term(), next: r.next, reported: -1}
}

// Poll waits for valid records and returns at least one. Its errors are final, or the context's.
func (t *Tail) Poll(ctx context.Context) ([]record.Entry, error) {
	for {
		entries, _, err := t.Next(ctx)
		if err != nil || len(entries) > 0 {
			return entries, err
		}
	}
}

// Next is Poll for callers that also need the observed end of the log. It returns when that has changed, and the first
// time when the position has been verified, possibly without records. next is the offset after the last record read.
func (t *Tail) Next(ctx context.Context) (entries []record.Entry, next int64, err error) {
	if t.err != nil {
		return nil, t.next, t.err
	}
	for len(entries) == 0 && t.next <= t.reported || t.reported < 0 && len(entries) == 0 && !t.verified() {
		if entries, err = t.read(ctx); err != nil {
			if record.Final(err) {
				t.err = err
				t.Close()
			}
			return nil, t.next, err
		}
	}
	t.reported = t.next
	return entries, t.next, nil
}

// verified reports whether the log was seen to hold the position.
func (t *Tail) verified() bool { return t.feed != nil || t.reader.verifiedPosition() }

// read reads from the feed or from the tail's own reader.
func (t *Tail) read(ctx context.Context) (entries []record.Entry, err error) {
	var next int64
	if t.feed != nil {
		var held bool
		entries, next, held, err = t.feed.take(ctx, t.subscription, t.at, max(t.reported, t.next))
		if err == nil && !held {
			t.fallBack()
			return nil, nil
		}
	} else {
		entries, next, err = t.reader.advance(ctx, !t.apart)
	}
	if err != nil {
		return nil, err
	}
	if entries, next = t.followTerms(entries, next); len(entries) == 0 && t.err != nil {
		return nil, t.err
	}
	if n := len(entries); n > 0 {
		t.at, t.id = entries[n-1].Position, entries[n-1].Journal
	}
	t.next = max(t.next, next)
	if t.reader != nil && t.reader.verifiedPosition() {
		// The reader has the verified offset of the position. Before that, the offset is a hint, which may be past
		// the log's end: a caller that waits for the tip must not mistake the hint for the tip.
		t.at.Offset, t.next = t.reader.chain.Position().Offset, next
	}
	if t.err == nil && t.reader != nil && t.reader.verifiedPosition() {
		t.share()
		t.apart = t.reader != nil && t.reader.atTip()
	}
	return entries, nil
}

// share joins a feed of the partition that has the tail's position or can reach it. If there is none, it makes a feed
// of the tail's own reader.
func (t *Tail) share() {
	reader := t.reader
	if t.join(reader) {
		reader.Close() // after join has released the lock
	}
}

// join does the work of share. left reports that the tail's own reader is no longer needed.
func (t *Tail) join(reader *Reader) (left bool) {
	c, tip := t.client, reader.atTip()
	// Finding a feed and subscribing to it must be one step. Otherwise the feed's last tail could leave and end it in
	// between, and this tail would wait for a closed reader.
	c.sharing.Lock()
	defer c.sharing.Unlock()
	f, g := c.feeds[t.shard], c.catching[t.shard]
	switch {
	case f != nil && f.serves(t.at, tip):
		left = true
	case f == nil && tip:
		f = newFeed(reader, false, nil, func(f *feed) { c.forget(t.shard, f) })
		c.feeds[t.shard] = f
	case g != nil && g.serves(t.at, false):
		f, left = g, true
	case g == nil && reader.farBehind():
		f = newFeed(reader, true, func(f *feed) bool { return c.arrived(t.shard, f) }, func(f *feed) { c.forget(t.shard, f) })
		c.catching[t.shard] = f
	default:
		return false
	}
	t.subscribe(f)
	t.reader = nil
	return left
}

// subscribe connects the tail to a feed. The caller must hold the client's lock.
func (t *Tail) subscribe(f *feed) {
	f.tails++
	t.feed, t.subscription = f, f.subscribe(t.at)
}

// fallBack leaves the feed. It switches to the feed at the tip if the old feed is over and the other has the tail's
// position. Otherwise it opens a separate reader, which verifies the position first.
func (t *Tail) fallBack() {
	over := t.feed.isOver()
	t.leave()
	if over && t.switchFeed() {
		return
	}
	t.reader = NewReader(t.client, t.rules, t.shard.Partition, t.at)
	t.reader.chain.SetID(t.id)
	t.reader.chain.SetTerm(t.term)
	if !over {
		t.client.cfg.Metrics.Behind.WithLabelValues(t.shard.Journal).Inc()
	}
}

// switchFeed subscribes to the feed at the tip, if that has the tail's position.
func (t *Tail) switchFeed() bool {
	t.client.sharing.Lock()
	defer t.client.sharing.Unlock()
	f := t.client.feeds[t.shard]
	if f == nil || !f.serves(t.at, false) {
		return false
	}
	t.subscribe(f)
	return true
}

// leave unsubscribes from the feed. The last tail to leave ends the feed.
func (t *Tail) leave() {
	f := t.feed
	if f == nil {
		return
	}
	f.unsubscribe(t.subscription)
	t.feed, t.subscription = nil, nil
	c := t.client
	c.sharing.Lock()
	f.tails--
	last := f.tails == 0
	if last {
		c.drop(t.shard, f)
	}
	c.sharing.Unlock()
	// Stop the feed without the lock: its goroutine may be about to acquire the lock, in arrived or forget, and must
	// finish first. No tail can subscribe any more, because the feed was dropped under the lock.
	if last {
		f.stop()
		<-f.done
	}
}

// forget removes a feed that has ended, so that no tail joins it.
func (c *Client) forget(p submit.Shard, f *feed) {
	c.sharing.Lock()
	defer c.sharing.Unlock()
	c.drop(p, f)
}

// drop is forget for callers that hold the lock.
func (c *Client) drop(p submit.Shard, f *feed) {
	for _, feeds := range []map[submit.Shard]*feed{c.feeds, c.catching} {
		if feeds[p] == f {
			delete(feeds, p)
		}
	}
}

// arrived makes a feed that has caught up the feed at the tip, and reports whether it succeeded. If another feed is
// already at the tip, or no tail is left, the feed is over.
func (c *Client) arrived(p submit.Shard, f *feed) bool {
	c.sharing.Lock()
	defer c.sharing.Unlock()
	c.drop(p, f)
	first := c.feeds[p] == nil && f.tails > 0
	if first {
		c.feeds[p] = f
	}
	f.endCatchUp(!first)
	return first
}

// Position returns the position of the last record that was returned.
func (t *Tail) Position() record.Position { return t.at }

// Close closes the tail's reader or leaves its feed. The tail may be polled again and then continues after its
// position.
func (t *Tail) Close() {
	if t.feed != nil {
		t.leave()
		t.reader = NewReader(t.client, t.rules, t.shard.Partition, t.at)
		t.reader.chain.SetID(t.id)
		t.reader.chain.SetTerm(t.term)
	}
	t.reader.Close()
}
