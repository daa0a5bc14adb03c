// Package follow replays one journal partition into a state and keeps it at the tip. Queries, sockets, snapshots, as-of
// reads and audits share this one implementation. A follower never decides a command.
package follow

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Fold replays one journal partition into a decide.State.
type Fold struct {
	client    *journal.Client
	rules     decide.Rules
	partition int32

	mu        sync.RWMutex
	state     decide.State
	at        record.Position
	term      int64 // term of the seed; 0 without one
	next      int64 // offset after the last record read, valid or not
	err       error
	check     Check         // nil for none
	earlier   *Marks        // nil for none
	stopped   error         // why a checked fold follows no further; the state is that before the wrong record
	applied   chan struct{} // closed and replaced when at advances, or when err or stopped is set
	caughtUp  chan struct{} // closed when the fold has reached the end that the log had at its start, or has ended
	listeners []*listener
}

// Check verifies a record against the state before it. It MUST NOT change the state. An error is final, and should be a
// *record.BrokenRecordError.
type Check func(s decide.State, e record.Entry) error

type listener struct {
	call func(record.Entry, decide.State)
}

// Option configures a new fold.
type Option func(*Fold)

// FromSeed starts the fold from a saved state instead of from genesis.
func FromSeed(seed record.Seed) Option {
	return func(f *Fold) { f.state, f.at, f.term = seed.State, seed.Position, seed.Term }
}

// Checked makes the fold verify each record before it applies it. Such a fold outlives a log that proves wrong: it keeps the
// state before the wrong record, which View shows and Err does not report. Waiting for a later record fails, and Stopped
// returns the reason.
func Checked(c Check) Option { return func(f *Fold) { f.check = c } }

// Through makes the fold hold records back until they are proven to lead to the next mark, a position that was verified before.
// After the last mark, no record is held back. Through is for a log that may have been rewritten since the marks were made.
func Through(earlier *Marks) Option { return func(f *Fold) { f.earlier = earlier } }

// New returns a fold at the position before genesis, or at its seed. Run advances it.
func New(client *journal.Client, rules decide.Rules, partition int32, options ...Option) *Fold {
	f := &Fold{client: client, rules: rules, partition: partition, state: rules.NewState(), at: record.Before,
		applied: make(chan struct{}), caughtUp: make(chan struct{})}
	for _, o := range options {
		o(f)
	}
	return f
}

// Run follows the journal until the context ends or the log proves invalid, and returns the error. It must be called only
// once.
func (f *Fold) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	reached := make(chan bool, 1)
	go func() { reached <- f.catchUp(ctx) }()
	defer func() {
		cancel()
		if !<-reached {
			close(f.caughtUp) // after end: whoever waits finds the error
		}
	}()
	r := journal.NewTail(f.client, f.rules, f.partition, f.Position())
	defer r.Close()
	if f.term > 0 {
		r.InTerm(f.term)
	}
	var held []record.Entry
	for {
		entries, next, err := r.Next(ctx)
		if err == nil {
			var wrong error
			entries, held, wrong = f.earlier.lead(append(held, entries...))
			err = cmp.Or(f.apply(entries), wrong)
		}
		// This comes after the records are applied: a caller of WaitTip reads the state as soon as next reaches the
		// tip.
		f.mu.Lock()
		if err == nil && len(held) == 0 {
			f.next = next
		}
		f.end(err)
		f.moved()
		f.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// tipRetry is the interval between attempts to read the log's end.
const tipRetry = 200 * time.Millisecond

// catchUp closes caughtUp when the fold has reached the log's end, or has ended. It returns false if the context ends before.
func (f *Fold) catchUp(ctx context.Context) bool {
	for f.WaitTip(ctx) != nil && cmp.Or(f.Err(), f.Stopped()) == nil { // no answer, or the log does not exist yet
		select {
		case <-ctx.Done():
			return false
		case <-time.After(tipRetry):
		}
	}
	close(f.caughtUp)
	return true
}

// CaughtUp returns a channel that is closed once the fold has applied the records that the log had when Run was called. It is
// also closed if the fold can apply no further ones: Err and Stopped return the reason.
func (f *Fold) CaughtUp() <-chan struct{} { return f.caughtUp }

// end records why the fold ends, or nil while it runs. The caller must hold the lock.
func (f *Fold) end(err error) {
	switch {
	case f.stopped != nil || f.err != nil: // applySome has recorded the error
	case f.check != nil && record.Final(err):
		f.stopped = err
	default:
		f.err = err
	}
}

// moved wakes all waiters. The caller must hold the lock.
func (f *Fold) moved() {
	close(f.applied)
	f.applied = make(chan struct{})
}

// NextOffset returns the offset after the last record that the fold has read, valid or not.
func (f *Fold) NextOffset() int64 {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.next
}

// maxHeld bounds the number of records applied while the lock is held, so that views can run during a long catch-up.
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
		if f.check != nil {
			if f.stopped = f.check(f.state, e); f.stopped != nil {
				return f.stopped
			}
		}
		if err := f.client.Apply(f.rules.Journal(), f.partition, f.state, e); err != nil {
			f.err = err // set before the lock is released: the state is no longer valid
			return err
		}
		f.at = e.Position
		for _, l := range f.listeners {
			l.call(e, f.state)
		}
	}
	return nil
}

// View calls view with the state and its position. The state must not be kept or changed.
func (f *Fold) View(view func(s decide.State, at record.Position)) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	view(f.state, f.at)
}

// Wait returns nil once the record with the sequence has been applied. Otherwise it returns the context's error or the
// error that ended the fold.
func (f *Fold) Wait(ctx context.Context, sequence int64) error {
	return f.until(ctx, func() bool { return f.at.Sequence >= sequence })
}

// WaitTip returns once the fold has reached the current end of the log. If the log loses its end in the meantime and no
// longer holds the fold's position, WaitTip waits for the later end.
func (f *Fold) WaitTip(ctx context.Context) error {
	if err := cmp.Or(f.Err(), f.Stopped()); err != nil {
		return err
	}
	return f.client.ToTip(ctx, f.rules.Journal(), f.partition, func(ctx context.Context, end int64) error {
		return f.until(ctx, func() bool { return f.next >= end })
	})
}

func (f *Fold) until(ctx context.Context, reached func() bool) error {
	for {
		// All three are read under one lock: a record that is applied afterwards closes this channel.
		f.mu.RLock()
		ok, err, applied := reached(), cmp.Or(f.err, f.stopped), f.applied
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

// Listen registers a function that is called after each record, in order, under the fold's lock: it must be quick and
// must not call the fold. A function registered before Run sees every record.
func (f *Fold) Listen(call func(e record.Entry, s decide.State)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.listeners = append(f.listeners, &listener{call})
}

// ListenFrom calls start with the current state, and then calls call after each later record, with no record missed in
// between. Both run under the fold's lock. The returned function ends the listening.
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

// Stopped returns why a Checked fold follows the log no further, or nil.
func (f *Fold) Stopped() error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.stopped
}

// Err returns the error that ended the fold, or nil while it runs. See Checked for its exception.
func (f *Fold) Err() error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.err
}
