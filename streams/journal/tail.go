package journal

import (
	"context"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// Tail reads the valid records of one partition as a Reader does and promises the same, for those who stay at the tip:
// there, all tails of a client's partition share one reader, so that a record is fetched, verified and decoded once in
// a process, however many follow it. They must know the same rules.
//
// A tail begins with a reader of its own, which verifies the position that it starts from. It shares as soon as its
// position, sequence and hash, is one that the shared reader has passed, or starts the sharing once it is at the tip.
// Those that begin far behind at about the same time, as at the start of a process, share one reader on their way to the
// tip as well. One that falls behind what is held for it reads for itself until it has caught up. A final error of the
// shared reader is the tail's, after the last record before it. A Tail is not safe for concurrent use, and its entries
// are shared: nobody may change what they hold.
type Tail struct {
	client *Client
	rules  decide.Rules
	shard  submit.Shard

	own          *Reader     // nil while it shares
	feed         *feed       // nil while it does not
	subscription *subscriber // there
	apart        bool        // the feed does not have the present position: the own reader waits for what comes after it

	at       record.Position // of the last record returned
	id       scalar.ID
	term     int64
	next     int64 // the offset after the last record observed, valid or not
	reported int64 // what of it Next has returned
	err      error
}

// NewTail returns a tail that goes on after from. It does not connect before it is polled.
func NewTail(client *Client, rules decide.Rules, partition int32, from record.Position) *Tail {
	return NewReader(client, rules, partition, from).tail()
}

// tail returns a tail that goes on where a reader stands, with that reader. The reader is the tail's from then on.
func (r *Reader) tail() *Tail {
	return &Tail{client: r.client, rules: r.rules, shard: submit.Shard{Journal: r.chain.Journal(), Partition: r.partition}, own: r, at: r.chain.Position(), id: r.chain.ID(),
		term: r.chain.Term(), next: r.next, reported: -1}
}

// Poll waits for valid records and returns at least one. What errors it returns are final, or the context's.
func (t *Tail) Poll(ctx context.Context) ([]record.Entry, error) {
	for {
		entries, _, err := t.Next(ctx)
		if err != nil || len(entries) > 0 {
			return entries, err
		}
	}
}

// Next is Poll for those who also want to know how far the log has been observed: it returns when that has changed,
// and at first when the position is verified and nothing may have come after it. next is the offset after the last
// record observed.
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
func (t *Tail) verified() bool { return t.feed != nil || t.own.verifiedPosition() }

// read reads on, from wherever the records come at present.
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
		entries, next, err = t.own.advance(ctx, !t.apart)
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
	if t.own != nil && t.own.verifiedPosition() {
		// The own reader knows where the position lies. Until it has, the tail has a hint, which may lie past
		// the log's end: who waits for the tip must not take that for having seen it.
		t.at.Offset, t.next = t.own.chain.Position().Offset, next
	}
	if t.err == nil && t.own != nil && t.own.verifiedPosition() {
		t.share()
		t.apart = t.own != nil && t.own.atTip()
	}
	return entries, nil
}

// share goes on with the client's feed of the partition, if that has the tail's position or may come to it, or makes a
// feed of the tail's own reader if there is none.
func (t *Tail) share() {
	own := t.own
	if t.join(own) {
		own.Close() // with nobody kept waiting meanwhile
	}
}

// join is share, and says whether the tail's own reader is left over.
func (t *Tail) join(own *Reader) (left bool) {
	c, tip := t.client, own.atTip()
	// To find a feed and to subscribe is one step: between the two its last tail could leave and end it, and this tail
	// would wait for a reader that is closed.
	c.sharing.Lock()
	defer c.sharing.Unlock()
	f, g := c.feeds[t.shard], c.catching[t.shard]
	switch {
	case f != nil && f.serves(t.at, tip):
		left = true
	case f == nil && tip:
		f = newFeed(own, false, nil, func(f *feed) { c.forget(t.shard, f) })
		c.feeds[t.shard] = f
	case g != nil && g.serves(t.at, false):
		f, left = g, true
	case g == nil && own.farBehind():
		f = newFeed(own, true, func(f *feed) bool { return c.arrived(t.shard, f) }, func(f *feed) { c.forget(t.shard, f) })
		c.catching[t.shard] = f
	default:
		return false
	}
	t.subscribe(f)
	t.own = nil
	return left
}

// subscribe has the tail read from a feed. The client's lock must be held.
func (t *Tail) subscribe(f *feed) {
	f.tails++
	t.feed, t.subscription = f, f.subscribe(t.at)
}

// fallBack leaves the feed: for the one at the tip if that has the position, or else for a reader of the tail's own,
// which verifies its position first.
func (t *Tail) fallBack() {
	over := t.feed.isOver()
	t.leave()
	if over && t.switchFeed() {
		return
	}
	t.own = NewReader(t.client, t.rules, t.shard.Partition, t.at)
	t.own.chain.SetID(t.id)
	t.own.chain.SetTerm(t.term)
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

// leave ends the sharing. The last to leave a feed ends it.
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
	// Without the lock: the feed's goroutine may be about to take it, in arrived or forget, and has to end first. Nobody
	// subscribes any more, since the feed was dropped under the lock.
	if last {
		f.stop()
		<-f.done
	}
}

// forget has nobody join a feed that has ended.
func (c *Client) forget(p submit.Shard, f *feed) {
	c.sharing.Lock()
	defer c.sharing.Unlock()
	c.drop(p, f)
}

// drop is forget with the lock held.
func (c *Client) drop(p submit.Shard, f *feed) {
	for _, feeds := range []map[submit.Shard]*feed{c.feeds, c.catching} {
		if feeds[p] == f {
			delete(feeds, p)
		}
	}
}

// arrived makes a feed that has caught up the one at the tip, and returns whether it is: if there is one already, the
// feed is over.
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

// Close ends what the tail reads with. It may be polled again and then goes on after its position.
func (t *Tail) Close() {
	if t.feed != nil {
		t.leave()
		t.own = NewReader(t.client, t.rules, t.shard.Partition, t.at)
		t.own.chain.SetID(t.id)
		t.own.chain.SetTerm(t.term)
	}
	t.own.Close()
}
