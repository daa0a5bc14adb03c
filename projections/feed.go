package projections

import (
	"context"
	"sync"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Log is where a runner reads entries. A tail of the journal is behind it, and tests put their own entries there.
type Log interface {
	// From returns a reader of the entries after the position.
	From(at record.Position) Reader
	// Tip returns the log's end offset: one more than the offset of its last record.
	Tip(ctx context.Context) (int64, error)
}

// Reader is what a runner needs of a journal.Tail, and what that promises: valid entries in order, errors final.
type Reader interface {
	Poll(ctx context.Context) ([]record.Entry, error)
	Close()
}

// NewLog returns the log of one partition of the rules' journal.
func NewLog(client *journal.Client, rules decide.Rules, partition int32) Log {
	return partitionLog{client, rules, partition}
}

// partitionLog reads one partition of a journal.
type partitionLog struct {
	client    *journal.Client
	rules     decide.Rules
	partition int32
}

func (l partitionLog) From(at record.Position) Reader {
	return journal.NewTail(l.client, l.rules, l.partition, at)
}

func (l partitionLog) Tip(ctx context.Context) (int64, error) {
	return l.client.Tip(ctx, l.rules.Journal(), l.partition)
}

// How much a feed reads ahead of the transactions, and how much one transaction takes at most.
const (
	maxAhead      = 8192     // entries
	maxAheadBytes = 32 << 20 // of their values
	maxBatch      = 4096     // entries
)

// feed polls a reader in a goroutine of its own, so that the next entries are fetched and decoded while the last
// ones are being committed.
type feed struct {
	mu      sync.Mutex
	entries []record.Entry
	bytes   int
	err     error
	changed chan struct{} // closed and replaced at every change
}

// startFeed starts to read. The goroutine ends when ctx does or the reader fails; wait returns after it.
func startFeed(ctx context.Context, reader Reader) (f *feed, wait func()) {
	f = &feed{changed: make(chan struct{})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer reader.Close()
		for {
			entries, err := reader.Poll(ctx)
			if !f.put(ctx, entries, err) {
				return
			}
		}
	}()
	return f, func() { <-done }
}

// put adds what was polled and waits until there is room for more; false means that reading is over.
func (f *feed) put(ctx context.Context, entries []record.Entry, err error) bool {
	f.mu.Lock()
	f.entries = append(f.entries, entries...)
	for _, e := range entries {
		f.bytes += len(e.Value)
	}
	f.err = err
	f.signal()
	// The reader stops here while Postgres is slower than the log, rather than filling the memory with what it decoded.
	for f.err == nil && (len(f.entries) >= maxAhead || f.bytes >= maxAheadBytes) {
		if !f.await(ctx) {
			break
		}
	}
	f.mu.Unlock()
	return err == nil && ctx.Err() == nil
}

// take waits for entries and returns at most limit of them. The reader's error comes after its last entry.
func (f *feed) take(ctx context.Context, limit int) ([]record.Entry, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.entries) == 0 {
		if f.err != nil {
			return nil, f.err
		}
		if !f.await(ctx) {
			return nil, ctx.Err()
		}
	}
	return f.cut(min(len(f.entries), limit)), nil
}

// has reports whether there are n entries.
func (f *feed) has(n int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.entries) >= n
}

// takeFull returns n entries if there are so many, else none. It does not wait.
func (f *feed) takeFull(n int) []record.Entry {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.entries) < n {
		return nil
	}
	return f.cut(n)
}

// cut takes the first n entries. The lock is held.
func (f *feed) cut(n int) []record.Entry {
	taken := f.entries[:n:n] // so that nobody appends to it what is read meanwhile
	f.entries = f.entries[n:]
	for _, e := range taken {
		f.bytes -= len(e.Value)
	}
	f.signal()
	return taken
}

// signal wakes whoever waits. The lock is held.
func (f *feed) signal() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// await gives the lock up until something changed; false means that ctx ended.
func (f *feed) await(ctx context.Context) bool {
	changed := f.changed
	f.mu.Unlock()
	defer f.mu.Lock()
	select {
	case <-changed:
		return true
	case <-ctx.Done():
		return false
	}
}
