// Package follow folds one journal partition into a state and keeps it at the tip: the one fold that queries,
// sockets, snapshots, as-of reads and audits share. A follower never decides anything.
package follow

import (
	"context"
	"sync"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Fold follows one journal partition into a decide.State.
type Fold struct {
	client    *journal.Client
	rules     decide.Rules
	partition int32

	mu        sync.RWMutex
	state     decide.State
	at        record.Position
	term      int64 // of the seed; 0 if there was none
	next      int64 // the offset after the last record observed, valid or not
	err       error
	applied   chan struct{} // closed and replaced when at moves on or err is set
	listeners []*listener
}

type listener struct {
	call func(record.Entry, decide.State)
}

// Option changes how a fold starts.
type Option func(*Fold)

// FromSeed starts the fold from a state that was saved, instead of from genesis.
func FromSeed(seed record.Seed) Option {
	return func(f *Fold) { f.state, f.at, f.term = seed.State, seed.Position, seed.Term }
}

// New returns a fold that stands before genesis until Run moves it.
func New(client *journal.Client, rules decide.Rules, partition int32, options ...Option) *Fold {
	f := &Fold{client: client, rules: rules, partition: partition, state: rules.NewState(), at: record.Before,
		applied: make(chan struct{})}
	for _, o := range options {
		o(f)
	}
	return f
}

// Run follows the journal until the context ends or the log turns out to be at fault, and returns why.
func (f *Fold) Run(ctx context.Context) error {
	r := journal.NewTail(f.client, f.rules, f.partition, f.Position())
	defer r.Close()
	if f.term > 0 {
		r.InTerm(f.term)
	}
	for {
		entries, next, err := r.Next(ctx)
		if err == nil {
			err = f.apply(entries)
		}
		// After the records up to it were applied: who waits for the tip reads the state as soon as next has reached it.
		f.mu.Lock()
		if err == nil {
			f.next = next
		}
		f.err = err
		f.moved()
		f.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// moved wakes those who wait. The lock must be held.
func (f *Fold) moved() {
	close(f.applied)
	f.applied = make(chan struct{})
}

// NextOffset returns the offset after the last record that the fold has observed, whether it was valid or not.
func (f *Fold) NextOffset() int64 {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.next
}

// maxHeld bounds how many records are applied under one hold of the lock, so that a long catch-up lets views in.
const maxHeld = 256

func (f *Fold) apply(entries []record.Entry) error {
	for len(entries) > 0 {
		n := min(len(entries), maxHeld)
		if err := f.applySome(entries[:n]); err != nil {
			return err
		}
		entries = entries[n:]
	}
	return nil
}

func (f *Fold) applySome(entries []record.Entry) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.moved()
	for _, e := range entries {
		if err := f.client.Apply(f.rules.Journal(), f.partition, f.state, e); err != nil {
			f.err = err // at once: what the state says now is void
			return err
		}
		f.at = e.Position
		for _, l := range f.listeners {
			l.call(e, f.state)
		}
	}
	return nil
}

// View calls view with the state and the position that it stands at. The state must not be kept or changed.
func (f *Fold) View(view func(s decide.State, at record.Position)) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	view(f.state, f.at)
}

// Wait returns once the record with the sequence has been applied, or with the context's error, or with the error
// that ended the fold.
func (f *Fold) Wait(ctx context.Context, sequence int64) error {
	return f.until(ctx, func() bool { return f.at.Sequence >= sequence })
}

// WaitTip returns once the fold has reached the end that the log has now: or the end that it has later, should it lose its
// end meanwhile and the fold's position not be in that.
func (f *Fold) WaitTip(ctx context.Context) error {
	if err := f.Err(); err != nil {
		return err
	}
	return f.client.ToTip(ctx, f.rules.Journal(), f.partition, func(ctx context.Context, end int64) error {
		return f.until(ctx, func() bool { return f.next >= end })
	})
}

func (f *Fold) until(ctx context.Context, reached func() bool) error {
	for {
		// Both under one hold of the lock: a record that is applied right after it closes this very channel.
		f.mu.RLock()
		ok, err, applied := reached(), f.err, f.applied
		f.mu.RUnlock()
		if ok {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-applied:
		}
	}
}

// Listen registers a function that is called after each record, in order, under the fold's lock: it must be quick
// and must not call the fold. Registered before Run it sees every record.
func (f *Fold) Listen(call func(e record.Entry, s decide.State)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.listeners = append(f.listeners, &listener{call})
}

// ListenFrom calls start with the state as it is and then call after each later record, with nothing between the two.
// Both run under the fold's lock. The function that it returns ends the listening.
func (f *Fold) ListenFrom(start func(s decide.State, at record.Position), call func(e record.Entry, s decide.State)) (stop func()) {
	l := &listener{call}
	f.mu.Lock()
	defer f.mu.Unlock()
	start(f.state, f.at)
	f.listeners = append(f.listeners, l)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		for i, x := range f.listeners {
			if x == l {
				f.listeners = append(f.listeners[:i:i], f.listeners[i+1:]...)
				return
			}
		}
	}
}

// Position returns the position of the last record applied.
func (f *Fold) Position() record.Position {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.at
}

// Err returns the error that ended the fold, or nil while it runs.
func (f *Fold) Err() error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.err
}
