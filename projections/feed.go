package projections

import (
	"context"
	"sync"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Log is the source of a runner's entries. NewLog returns a log that tails a journal; tests supply their own entries.
type Log interface {
	// From returns a reader of the entries after the position.
	From(at record.Position) Reader
	// Tip returns the log's end offset: one more than the offset of the last record.
	Tip(ctx context.Context) (int64, error)
}

// Reader is the part of journal.Tail that a runner needs. It MUST return valid entries in order, and its errors are
// final.
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

// Limits for the entries that a feed reads ahead and for the entries of one transaction.
const (
	maxAhead      = 8192     // entries
	maxAheadBytes = 32 << 20 // of the entries' values
	maxBatch      = 4096     // entries
)

// feed polls a reader in a goroutine, so that the next entries are fetched and decoded while earlier ones are committed.
type feed struct {
	mu      sync.Mutex
	entries []record.Entry
	bytes   int
	err     error
	changed chan struct{} // closed and replaced at every change
}

// startFeed starts the goroutine. It ends when ctx ends or the reader fails. wait returns after it has ended.
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

// put adds polled entries and waits until there is room for more. It returns false if reading must stop.
func (f *feed) put(ctx context.Context, entries []record.Entry, err error) bool {
	f.mu.Lock()
	f.entries = append(f.entries, entries...)
	for _, e := range entries {
		f.bytes += len(e.Value)
	}
	f.err = err
	f.signal()
	// The reader waits here while Postgres is slower than the log, so that decoded entries do not fill the memory.
	for f.err == nil && (len(f.entries) >= maxAhead || f.bytes >= maxAheadBytes) {
		if !f.await(ctx) {
			break
		}
	}
	f.mu.Unlock()
	return err == nil && ctx.Err() == nil
}

// take waits for entries and returns at most limit of them. The reader's error is returned after its last entry.
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

// takeFull returns n entries, or nil if there are fewer. It does not wait.
func (f *feed) takeFull(n int) []record.Entry {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.entries) < n {
		return nil
	}
	return f.cut(n)
}

// cut removes and returns the first n entries. The caller holds the lock.
func (f *feed) cut(n int) []record.Entry {
	taken := f.entries[:n:n] // capped, so that an append cannot overwrite entries read later
	f.entries = f.entries[n:]
	for _, e := range taken {
		f.bytes -= len(e.Value)
	}
	f.signal()
	return taken
}

// signal wakes all waiting goroutines. The caller holds the lock.
func (f *feed) signal() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// await releases the lock until the feed changes. It returns false if ctx ended.
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
