package journal

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/perpetua-exchange/perpetua/streams/record"
)

// The limits on the entries that a feed retains for tails that have not read them yet.
const (
	feedRecords = 8192
	feedBytes   = 32 << 20 // total size of the values
	maxTaken    = 2048     // most entries returned to a tail in one call
)

// A feed that is catching up waits for a slow tail until its other tails have been idle for starveFor plus half of the
// measured time. Measurement restarts after the time in counted. So the feed waits for a tail that takes twice as long
// as the others.
const (
	starveFor = 100 * time.Millisecond
	counted   = 5 * time.Second
)

// feed is the reader of a partition that the tails of a client share. It retains the latest records that it has read.
//
// At the tip the feed never waits for a tail. A tail that falls behind finds that its position is no longer retained,
// and opens a separate reader. While the feed is catching up, and all tails have much to process, it waits for the
// slowest one. It stops waiting when other tails are idle for too long. Then the position of the slow tail is dropped,
// as at the tip.
//
// The guarantees of a Reader hold for each tail. All entries belong to one chain, and a tail only receives the entries
// after its own position if the feed holds that exact position (record.Before at the start of the log). So every check
// of the reader's position also covers the positions of the tails.
type feed struct {
	tails int // guarded by the client's lock
	stop  context.CancelFunc
	done  chan struct{}

	mu          sync.Mutex
	catching    bool                     // it has not reached the tip yet
	subscribers map[*subscriber]struct{} // the tails that the feed may wait for
	starved     starvation               // how long they have been idle
	base        record.Position          // the position of the record before entries[0]
	entries     []record.Entry           // never overwritten, because tails hold parts of the array
	bytes       int
	gone        int           // size of the dropped values that the array of entries still retains
	next        int64         // the offset after the last record read, valid or not
	err         error         // final; returned after the last entry
	over        bool          // no entry follows the last one, because another feed is at the tip
	changed     chan struct{} // closed at the next change; nil if no tail waits
	moved       chan struct{} // signals that a tail has advanced or left
}

// subscriber is the progress of one tail of a feed.
type subscriber struct{ sequence int64 }

// starvation measures how long a feed has left tails idle while it waits for others.
type starvation struct {
	since   time.Time // start of the measurement
	starved time.Duration
	checked time.Time
}

// newFeed makes a feed of a reader and its following records. When a feed that is catching up reaches the tip, it calls
// arrived, which reports whether the feed shall continue. The feed calls ended if reading fails.
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

// put publishes records that were read, and drops old ones.
func (f *feed) put(entries []record.Entry, next int64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if cap(f.entries)-len(f.entries) < len(entries) {
		f.entries, f.gone = slices.Grow(f.entries, len(f.entries)+len(entries)), 0 // grow rarely, and free the old array
	}
	// Tails read parts of this array without the lock. That is safe because published entries are never written again:
	// put appends after them, and shed only moves the start of the slice.
	f.entries = append(f.entries, entries...)
	for _, e := range entries {
		f.bytes += len(e.Value)
	}
	f.shed(!f.catching)
	f.next, f.err = next, err
	f.wake()
}

// shed drops the oldest entries while the feed is over its limits. Only if force is set does it drop entries that a
// tail still needs.
func (f *feed) shed(force bool) {
	for f.full() && (force || !f.needed()) {
		f.base = f.entries[0].Position
		f.bytes -= len(f.entries[0].Value)
		f.gone += len(f.entries[0].Value)
		f.entries = f.entries[1:]
	}
	if f.gone > feedBytes { // the array may have room for very many large records if large ones follow small ones
		f.entries, f.gone = slices.Clone(f.entries), 0
	}
}

func (f *feed) full() bool {
	return len(f.entries) > feedRecords || f.bytes > feedBytes && len(f.entries) > 1
}

// needed reports whether a tail still has to read the oldest entry.
func (f *feed) needed() bool { return f.anybodyAt(f.base.Sequence) }

// starving reports whether a tail has read all entries.
func (f *feed) starving() bool { return f.anybodyAt(f.base.Sequence + int64(len(f.entries))) }

func (f *feed) anybodyAt(sequence int64) bool {
	for s := range f.subscribers {
		if s.sequence == sequence {
			return true
		}
	}
	return false
}

// makeRoom waits while the feed is over its limits: until the tails have read the oldest entries, or until some tails
// have been idle too long.
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

// overfull drops the entries that it may drop, and reports whether the feed is still over its limits.
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

// endCatchUp stops the feed from waiting for tails. over also ends the feed.
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

// wake wakes the tails that wait for a change. The caller must hold the lock.
func (f *feed) wake() {
	if f.changed != nil {
		close(f.changed)
		f.changed = nil
	}
}

// subscribe registers a tail at a position. While the feed is catching up, it waits for registered tails.
func (f *feed) subscribe(at record.Position) *subscriber {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := &subscriber{at.Sequence}
	f.subscribers[s] = struct{}{}
	return s
}

// unsubscribe removes a tail.
func (f *feed) unsubscribe(s *subscriber) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.subscribers, s)
	f.wakeReader()
}

// wakeReader signals that a tail has advanced or left.
func (f *feed) wakeReader() {
	select {
	case f.moved <- struct{}{}:
	default:
	}
}

// after returns the index of the entry after a position. held reports whether the feed holds the position.
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

// behind reports whether the feed has not reached a position yet and may still reach it.
func (f *feed) behind(at record.Position) bool {
	return f.err == nil && !f.over && at.Sequence > f.base.Sequence+int64(len(f.entries))
}

// serves reports whether a tail at a position can use the feed. With wait, a feed that has yet to reach the position
// serves it: the tail can wait for that because it need not read further on its own.
func (f *feed) serves(at record.Position, wait bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, held := f.after(at)
	return held && f.err == nil && !f.over || wait && f.behind(at)
}

// take waits for entries after a tail's position. It returns them with the offset after the last record read. It
// returns no entries if only that offset has advanced past known. held is false if the feed does not hold the position
// or is over. The error is the context's, or the one that ended the feed; the latter comes after the last entry.
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

// await releases the lock until a change or the end of the context.
func (f *feed) await(ctx context.Context) error {
	if f.changed == nil {
		f.changed = make(chan struct{})
	}
	// Fetch the channel before releasing the lock: a change right after the release then closes this channel and wakes
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
