package projections

import (
	"context"
	"time"

	"github.com/perpetua-exchange/perpetua/streams/record"
)

// prepared holds entries and the writes of their transaction.
type prepared struct {
	entries []record.Entry
	batch   Batch
}

// work cuts the entries of a feed into transactions. Far behind the tip, transactions are as large as possible, and the
// next one is prepared while Postgres runs the current one. At the tip, each transaction takes the available entries.
type work struct {
	entries *feed
	ready   func(*prepared) // fills the batch from the entries
	idle    func() error    // called periodically while there are no entries; its error ends the wait

	slots [2]prepared
	turn  int           // the slot of the current transaction
	ahead chan struct{} // closed when the other slot is prepared; nil if nothing is being prepared

	taken time.Time // the time when the last entries were taken
	rate  float64   // their number per second
}

// Under load, a transaction waits to gather entries, so that its fixed cost is paid only a few tens of times a second.
// Below the rate rare, entries are applied immediately.
const (
	gather = 40 * time.Millisecond
	rare   = 400 // in records a second
)

// idleFor is the time without entries after which idle is called.
const idleFor = 250 * time.Millisecond

// next returns the writes of the next transaction, from at most limit entries. They are valid until the next call. A
// value from wanted ends the gathering early.
func (w *work) next(ctx context.Context, limit int, wanted <-chan struct{}) (*prepared, error) {
	last, other := &w.slots[w.turn], &w.slots[1-w.turn]
	if w.ahead != nil {
		<-w.ahead
		w.ahead = nil
	} else {
		if err := w.pace(ctx, limit, wanted); err != nil {
			return nil, err
		}
		entries, err := w.await(ctx, limit)
		if err != nil {
			return nil, err
		}
		w.take(other, entries)
		w.ready(other)
	}
	w.turn = 1 - w.turn
	// The slot of the previous transaction is free: next is called only after that transaction was committed. It is
	// filled while Postgres runs the returned one. The runner does not touch it until the channel is closed.
	if more := w.entries.takeFull(limit); more != nil {
		w.take(last, more)
		done := make(chan struct{})
		w.ahead = done
		go func() {
			defer close(done)
			w.ready(last)
		}()
	}
	return other, nil
}

// await waits for entries and takes at most limit of them.
func (w *work) await(ctx context.Context, limit int) ([]record.Entry, error) {
	for {
		waiting, cancel := context.WithTimeout(ctx, idleFor)
		entries, err := w.entries.take(waiting, limit)
		idle := err != nil && waiting.Err() != nil && ctx.Err() == nil
		cancel()
		if !idle {
			return entries, err
		}
		if err := w.idle(); err != nil {
			return nil, err
		}
	}
}

func (w *work) take(p *prepared, entries []record.Entry) {
	now := time.Now()
	p.entries, w.rate, w.taken = entries, float64(len(entries))/now.Sub(w.taken).Seconds(), now
}

// pace waits at high rates until gather has passed since the last entries were taken, or until limit entries are
// available.
func (w *work) pace(ctx context.Context, limit int, wanted <-chan struct{}) error {
	left := gather - time.Since(w.taken)
	if w.rate < rare || left <= 0 || w.entries.has(limit) {
		return nil
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-wanted:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// wait waits for the preparation in progress, so that no goroutine outlives the session and writes into its slots.
func (w *work) wait() {
	if w.ahead != nil {
		<-w.ahead
	}
}
