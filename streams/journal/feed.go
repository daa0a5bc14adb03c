package journal

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/perpetua-exchange/perpetua/streams/record"
)

// The bounds of what a feed holds for the tails that have not got to it yet.
const (
	feedRecords = 8192
	feedBytes   = 32 << 20 // of their values
	maxTaken    = 2048     // that a tail gets at once
)

// starveFor is how long a feed on its way to the tip lets its other tails starve for one that does not keep up, beside
// half of the time for which it is counted: what takes twice as long as others is waited for.
const (
	starveFor = 100 * time.Millisecond
	counted   = 5 * time.Second
)

// feed is the one reader of a partition that the tails of a client share, with the latest records that it has read.
//
// At the tip it waits for nobody: a tail that does not keep up finds that its place is gone, and reads for itself. On
// its way there (catching up), where everybody has a lot to do, it waits for the slowest, unless others have nothing to
// do meanwhile: then its place is gone as well.
//
// What the reader promises holds for each tail: the records stand in one chain, and a tail is given what comes after
// its own position only where the feed has that very position, or none before it. So what verifies the reader's
// position, again and again, verifies all of theirs, of which it is the continuation.
type feed struct {
	tails int // guarded by the client's lock
	stop  context.CancelFunc
	done  chan struct{}

	mu          sync.Mutex
	catching    bool                     // it has not been at the tip yet
	subscribers map[*subscriber]struct{} // of the tails that it may wait for
	starved     starvation               // and how long they may
	base        record.Position          // of the record before the first entry
	entries     []record.Entry           // never overwritten, since tails hold parts of it
	bytes       int
	gone        int           // bytes of those that were let go of, and that the array of the entries still holds
	next        int64         // the offset after the last record observed, valid or not
	err         error         // final, after the last entry
	over        bool          // nothing comes after the last entry, since there is another feed at the tip
	changed     chan struct{} // closed at the next change; nil if nobody waits
	moved       chan struct{} // holds something once a tail has gone on, or away
}

// subscriber is how far a tail of a feed has come.
type subscriber struct{ sequence int64 }

// starvation is how long a feed has let tails starve for others.
type starvation struct {
	since   time.Time // it is counted
	starved time.Duration
	checked time.Time
}

// newFeed makes a feed of a reader and everything that it reads from now on. arrived is called when a feed that is
// catching up gets to the tip, and says whether it is to go on.
func newFeed(r *Reader, catching bool, arrived func(*feed) bool, ended func(*feed)) *feed {
	ctx, stop := context.WithCancel(context.Background())
	f := &feed{stop: stop, done: make(chan struct{}), base: r.Position(), next: r.next, catching: catching,
		subscribers: make(map[*subscriber]struct{}), moved: make(chan struct{}, 1), starved: starvation{since: time.Now()}}
	go func() {
		defer close(f.done)
		defer r.Close()
		for {
			entries, next, err := r.Next(ctx)
			f.put(entries, next, err)
			if err != nil {
				ended(f)
				return
			}
			if catching && r.atTip() {
				if catching = false; !arrived(f) {
					return
				}
			}
			if catching {
				f.makeRoom(ctx)
			}
		}
	}()
	return f
}

// put publishes what was read, and lets go of what is old.
func (f *feed) put(entries []record.Entry, next int64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if cap(f.entries)-len(f.entries) < len(entries) {
		f.entries, f.gone = slices.Grow(f.entries, len(f.entries)+len(entries)), 0 // so that it is seldom, and the old array goes
	}
	// Tails read parts of this array without the lock. What they hold is never written again: entries are only added after
	// it, and shed moves the beginning of the slice and not the entries.
	f.entries = append(f.entries, entries...)
	for _, e := range entries {
		f.bytes += len(e.Value)
	}
	f.shed(!f.catching)
	f.next, f.err = next, err
	f.wake()
}

// shed lets go of the oldest entries, of more than there is room for; by force even of those that a tail still needs.
func (f *feed) shed(force bool) {
	for f.full() && (force || !f.needed()) {
		f.base = f.entries[0].Position
		f.bytes -= len(f.entries[0].Value)
		f.gone += len(f.entries[0].Value)
		f.entries = f.entries[1:]
	}
	if f.gone > feedBytes { // where large records follow on small ones, the array has room for very many of them
		f.entries, f.gone = slices.Clone(f.entries), 0
	}
}

func (f *feed) full() bool {
	return len(f.entries) > feedRecords || f.bytes > feedBytes && len(f.entries) > 1
}

// needed reports whether a tail, whose place is not gone already, still has to get the oldest entry.
func (f *feed) needed() bool { return f.anybodyAt(f.base.Sequence) }

// starving reports whether a tail has had everything.
func (f *feed) starving() bool { return f.anybodyAt(f.base.Sequence + int64(len(f.entries))) }

func (f *feed) anybodyAt(sequence int64) bool {
	for s := range f.subscribers {
		if s.sequence == sequence {
			return true
		}
	}
	return false
}

// makeRoom waits until the tails have got to the oldest entries of a feed that holds too many, or until some of them
// have waited long enough for others.
func (f *feed) makeRoom(ctx context.Context) {
	f.starved.checked = time.Now()
	if !f.overfull() {
		return
	}
	again := time.NewTicker(starveFor / 5)
	defer again.Stop()
	for f.overfull() {
		select {
		case <-ctx.Done():
			return
		case <-f.moved:
		case <-again.C:
		}
	}
}

// overfull lets go of what it may, and reports whether that was not enough.
func (f *feed) overfull() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shed(false)
	if !f.full() {
		return false
	}
	w, now := &f.starved, time.Now()
	if now.Sub(w.since) > counted {
		w.since, w.starved = w.checked, 0
	}
	if f.starving() {
		w.starved += now.Sub(w.checked)
	}
	w.checked = now
	if w.starved < starveFor+now.Sub(w.since)/2 {
		return true
	}
	*w = starvation{since: now, checked: now}
	f.shed(true)
	return false
}

// endCatchUp ends the waiting for tails, and the feed as well if it is over.
func (f *feed) endCatchUp(over bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.catching, f.over = false, over
	f.wake()
}

func (f *feed) isOver() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.over
}

// wake wakes those who wait for something. The lock must be held.
func (f *feed) wake() {
	if f.changed != nil {
		close(f.changed)
		f.changed = nil
	}
}

// subscribe has the feed wait for a tail that is at a position, where it waits for any.
func (f *feed) subscribe(at record.Position) *subscriber {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := &subscriber{at.Sequence}
	f.subscribers[s] = struct{}{}
	return s
}

// unsubscribe has it wait for the tail no more.
func (f *feed) unsubscribe(s *subscriber) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.subscribers, s)
	f.wakeReader()
}

// wakeReader says that a tail has.
func (f *feed) wakeReader() {
	select {
	case f.moved <- struct{}{}:
	default:
	}
}

// after returns the index of the entry that follows a position, and whether the feed holds that position.
func (f *feed) after(at record.Position) (i int, held bool) {
	n := at.Sequence - f.base.Sequence
	switch {
	case n < 0 || n > int64(len(f.entries)):
		return 0, false
	case n == 0:
		return 0, at.Equal(f.base)
	}
	return int(n), f.entries[n-1].Position.Equal(at)
}

// behind reports whether the feed has not come to a position yet, and may still.
func (f *feed) behind(at record.Position) bool {
	return f.err == nil && !f.over && at.Sequence > f.base.Sequence+int64(len(f.entries))
}

// serves reports whether a tail at a position can go on with the feed: at once or, where it need not be the one that
// reads on, when the feed has come to the position.
func (f *feed) serves(at record.Position, wait bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, held := f.after(at)
	return held && f.err == nil && !f.over || wait && f.behind(at)
}

// take waits for something that follows the position of a tail, and returns it with the offset after the last record
// observed; without an entry if only that is beyond what the caller knows of. held is false if the feed does not hold
// the position, or no more, or is over. The error comes after the last entry: the context's, or the one that ended the
// feed.
func (f *feed) take(ctx context.Context, s *subscriber, at record.Position, known int64) (entries []record.Entry, next int64, held bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.catching {
		s.sequence = at.Sequence
		f.wakeReader()
	}
	for {
		i, held := f.after(at)
		switch {
		case !held && !f.behind(at):
			return nil, known, false, nil
		case held && i < len(f.entries):
			end := min(i+maxTaken, len(f.entries))
			entries, next = f.entries[i:end:end], f.next
			if end < len(f.entries) {
				next = entries[len(entries)-1].Position.Offset + 1
			}
			return entries, next, true, nil
		case held && f.err != nil:
			return nil, f.next, true, f.err
		case held && f.over:
			return nil, known, false, nil
		case held && f.next > known:
			return nil, f.next, true, nil
		}
		if err := f.await(ctx); err != nil {
			return nil, known, true, err
		}
	}
}

// await gives the lock up until something changes or the context ends.
func (f *feed) await(ctx context.Context) error {
	if f.changed == nil {
		f.changed = make(chan struct{})
	}
	// The channel is taken before the lock is given up, so that a change right after that closes this very one and wakes
	// the tail.
	changed := f.changed
	f.mu.Unlock()
	defer f.mu.Lock()
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
