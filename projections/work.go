package projections

import (
	"context"
	"time"

	"github.com/perpetua-exchange/perpetua/streams/record"
)

// prepared are entries and what their transaction writes.
type prepared struct {
	entries []record.Entry
	batch   Batch
}

// work cuts what a feed reads into transactions. Far behind the tip these are as large as can be, and the next one is
// made ready while Postgres works on the last. At the tip each takes what there is.
type work struct {
	entries *feed
	ready   func(*prepared) // makes the batch of the entries
	idle    func() error    // called every now and then while there are no entries; its error ends the waiting

	slots [2]prepared
	turn  int           // which slot is the last transaction's
	ahead chan struct{} // closed when the other slot is ready; nil if it is empty

	taken time.Time // when the last entries were, …
	rate  float64   // … and how many there were to a second
}

// Under load a transaction waits until there is something to gather: what it costs beside its rows is then paid a few
// tens of times a second. Where records are rare each is applied at once.
const (
	gather = 40 * time.Millisecond
	rare   = 400 // records a second
)

// idleFor is how long entries are waited for before idle is called.
const idleFor = 250 * time.Millisecond

// next returns what the next transaction writes, at most limit entries of it. It may be used until next is called
// again. Whatever comes through wanted cuts the gathering short.
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
	// The slot of the transaction before is free: that has been committed, or next would not be called. It is filled
	// while Postgres works on the one that is returned. No runner touches it until the channel is closed.
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

// pace waits, if the last records came fast, until a while after they were taken or a whole transaction is there.
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

// wait waits for what is being made ready, so that no goroutine outlives the session and writes into its slots.
func (w *work) wait() {
	if w.ahead != nil {
		<-w.ahead
	}
}
