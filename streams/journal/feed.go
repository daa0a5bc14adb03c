package journal

import (
	"context"
	"slices"
	"sync"
)

// The bounds of what a feed holds for the tails that have not got to it yet.
const (
	feedRecords = 8192
	feedBytes   = 32 << 20 // of their values
	maxTaken    = 2048     // that a tail gets at once
)

// place is one partition of one journal.
type place struct {
	journal   string
	partition int32
}

// feed is the one reader at the tip of a partition that the tails of a client share, with the latest records that it
// has read. It waits for nobody: a tail that does not keep up finds that its place is gone, and reads for itself.
//
// What the reader promises holds for each tail: the records stand in one chain, and a tail is given what comes after
// its own position only where the feed has that very position, or none before it. So what verifies the reader's
// position, again and again, verifies all of theirs, of which it is the continuation.
type feed struct {
	tails int // guarded by the client's lock
	stop  context.CancelFunc
	done  chan struct{}

	mu      sync.Mutex
	base    Position // of the record before the first entry
	entries []Entry  // never overwritten, since tails hold parts of it
	bytes   int
	next    int64         // the offset after the last record looked at
	err     error         // final, after the last entry
	changed chan struct{} // closed at the next change; nil if nobody waits
}

// newFeed makes a feed of a reader and everything that it reads from now on.
func newFeed(r *Reader, ended func(*feed)) *feed {
	ctx, stop := context.WithCancel(context.Background())
	f := &feed{stop: stop, done: make(chan struct{}), base: r.Position(), next: r.next}
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
		}
	}()
	return f
}

// put publishes what was read, and lets go of what is old.
func (f *feed) put(entries []Entry, next int64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if cap(f.entries)-len(f.entries) < len(entries) {
		f.entries = slices.Grow(f.entries, len(f.entries)+len(entries)) // so that it is seldom, and the old array goes
	}
	f.entries = append(f.entries, entries...)
	for _, e := range entries {
		f.bytes += len(e.Value)
	}
	for len(f.entries) > feedRecords || f.bytes > feedBytes && len(f.entries) > 1 {
		f.base = f.entries[0].Position
		f.bytes -= len(f.entries[0].Value)
		f.entries = f.entries[1:]
	}
	f.next, f.err = next, err
	if f.changed != nil {
		close(f.changed)
		f.changed = nil
	}
}

// after returns the index of the entry that follows a position, and whether the feed holds that position.
func (f *feed) after(at Position) (i int, held bool) {
	n := at.Sequence - f.base.Sequence
	switch {
	case n < 0 || n > int64(len(f.entries)):
		return 0, false
	case n == 0:
		return 0, at == f.base
	}
	return int(n), f.entries[n-1].Position == at
}

// behind reports whether the feed has not come to a position yet, and may still.
func (f *feed) behind(at Position) bool {
	return f.err == nil && at.Sequence > f.base.Sequence+int64(len(f.entries))
}

// meets reports whether a tail at a position can go on with the feed: at once or, where it need not be the one that
// reads on, when the feed has come to the position.
func (f *feed) meets(at Position, wait bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, held := f.after(at)
	return held && f.err == nil || wait && f.behind(at)
}

// take waits for something that follows a position, and returns it with the offset after the last record looked at;
// without an entry if only that is beyond what the caller knows of. held is false if the feed does not hold the
// position, or no more. The error comes after the last entry: the context's, or the one that ended the feed.
func (f *feed) take(ctx context.Context, at Position, known int64) (entries []Entry, next int64, held bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
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
