package tradingtest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
	"github.com/perpetua-exchange/perpetua/streams/past"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// Journal is a journal in memory with the real rules, real records and one owner, but without Kafka. Records pass
// through the journal's codec, so followers see decoded bytes.
type Journal struct {
	rules decide.Rules
	id    scalar.ID
	log   *projectiontest.Log
	now   func() scalar.Time

	mu        sync.RWMutex
	state     decide.State // state of the owner
	followed  decide.State // state of the follower, from decoded records
	entries   []record.Entry
	applied   int // number of entries that the follower has applied
	held      bool
	moved     chan struct{}
	pastErr   error // of Deciding and StateAt
	slow      *slow // for the next call of StateAt
	listening []func(record.Entry, decide.State)
}

func newJournal(rules decide.Rules, now func() scalar.Time) *Journal {
	j := &Journal{rules: rules, id: scalar.ID{0xa1, rules.Journal()[0]}, log: projectiontest.NewLog(), now: now,
		state: rules.NewState(), followed: rules.NewState(), moved: make(chan struct{})}
	engine := decide.Recorded{ID: scalar.ID{1}, Actor: decide.Engine}
	engine.Type = record.TypeGenesis
	j.append(engine, decide.Accepted, &record.Genesis{Journal: rules.Journal(), JournalID: j.id, Partitions: 1})
	engine.ID, engine.Type = scalar.ID{2}, record.TypeTermStarted
	j.append(engine, decide.Accepted, &record.TermStarted{Term: 1, Node: "test", URL: "http://127.0.0.1", Build: "test"})
	return j
}

func (j *Journal) stamp() decide.Stamp {
	at := decide.Stamp{Journal: j.id, Sequence: int64(len(j.entries)), Time: j.time()}
	if n := len(j.entries); n > 0 {
		at.Prev = j.entries[n-1].Position.Hash
	}
	return at
}

// time returns the time of the next record: the venue's, but never before the last record. The caller holds the lock.
func (j *Journal) time() scalar.Time {
	t := j.now()
	if n := len(j.entries); n > 0 {
		t = max(t, j.entries[n-1].Record.Time)
	}
	return t
}

func (j *Journal) append(c decide.Recorded, outcome decide.Outcome, events ...decide.Event) record.Entry {
	return j.appendWith("", c, outcome, events...)
}

// appendWith appends a record with an input.
func (j *Journal) appendWith(input string, c decide.Recorded, outcome decide.Outcome, events ...decide.Event) record.Entry {
	at := j.stamp()
	r := &record.Record{Sequence: at.Sequence, Time: at.Time, Command: c, Input: input, Outcome: outcome, Events: events}
	if n := len(j.entries); n > 0 {
		r.Prev = j.entries[n-1].Position.Hash
	}
	value, err := record.Encode(nil, r)
	if err != nil {
		panic(fmt.Sprintf("tradingtest: encoding %s: %v", c.Type, err))
	}
	decoded, err := record.Decode(j.rules.Registry(), value)
	if err != nil {
		panic(fmt.Sprintf("tradingtest: decoding %s: %v", value, err))
	}
	e := record.Entry{Record: decoded, Position: record.Position{Offset: at.Sequence, Sequence: at.Sequence, Hash: sha256.Sum256(value)},
		Journal: j.id, Value: value}
	j.state.Evolve(at, c, outcome, events)
	j.entries = append(j.entries, e)
	j.log.Append(e)
	if !j.held {
		j.follow()
	}
	return e
}

// follow applies the remaining entries to the follower. The caller must hold the lock.
func (j *Journal) follow() {
	for _, e := range j.entries[j.applied:] {
		j.followed.Evolve(e.Stamp(), e.Record.Command, e.Record.Outcome, e.Record.Events)
		j.applied++
		for _, call := range j.listening {
			call(e, j.followed)
		}
	}
	close(j.moved)
	j.moved = make(chan struct{})
}

// HoldFold stops the follower until release is called. The owner continues.
func (j *Journal) HoldFold() (release func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.held = true
	return func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.held = false
		j.follow()
	}
}

// SetAside sets the next due work aside, as if its step had failed twice.
func (j *Journal) SetAside(cause string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	d := j.state.SetAside(j.stamp(), cause)
	j.append(decide.Recorded{ID: scalar.ID{3}, Type: "engine.step", Actor: decide.Engine}, d.Outcome, d.Events...)
}

// Submit decides a command and appends its record and the records of all work that it makes due.
func (j *Journal) Submit(_ context.Context, c decide.Command) (submit.Result, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.drain(scalar.ID{})
	d, err := j.state.Decide(j.stamp(), c)
	if err != nil {
		var refusal *decide.Refusal
		if !errors.As(err, &refusal) {
			return submit.Result{}, &submit.DecideError{CommandID: c.ID, Cause: err}
		}
		return submit.Result{}, &submit.RefusedError{Refusal: refusal, AsOf: j.tip()}
	}
	if d.Repeated {
		return submit.Result{Position: j.tip(), Entry: &j.entries[d.Repeat], Repeated: true}, nil
	}
	e := j.appendWith(d.Input, c.Recorded(), d.Outcome, d.Events...)
	if d.Pending {
		e = j.drain(c.ID)
	}
	return submit.Result{Position: record.LogPosition{Journal: j.rules.Journal(), Sequence: e.Position.Sequence}, Entry: &e}, nil
}

// drain executes due work. It returns the record that finishes the given command.
func (j *Journal) drain(finishing scalar.ID) (finished record.Entry) {
	for range 100_000 {
		if j.state.Due(j.time()) == decide.Nothing {
			return finished
		}
		d := j.state.Step(j.stamp(), false)
		e := j.append(decide.Recorded{ID: scalar.ID{3, byte(len(j.entries)), byte(len(j.entries) >> 8)}, Type: "engine.step", Actor: decide.Engine},
			d.Outcome, d.Events...)
		if !finishing.IsZero() && d.Finishes == finishing {
			finished = e
		}
	}
	panic("tradingtest: due work does not end")
}

func (j *Journal) tip() record.LogPosition {
	return record.LogPosition{Journal: j.rules.Journal(), Sequence: int64(len(j.entries)) - 1}
}

// Tip returns the position of the last record.
func (j *Journal) Tip() record.LogPosition {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return j.tip()
}

// Entries returns all records.
func (j *Journal) Entries() []record.Entry {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return append([]record.Entry(nil), j.entries...)
}

// View calls look with the follower's state. With View, Wait and Err, a Journal implements a follower.
func (j *Journal) View(look func(s decide.State, at record.Position)) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	look(j.followed, j.entries[j.applied-1].Position)
}

// Listen registers a function that is called after each later record.
func (j *Journal) Listen(call func(e record.Entry, s decide.State)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.listening = append(j.listening, call)
}

// ListenFrom calls start with the follower's current state, and then call after each later record until stop is
// called.
func (j *Journal) ListenFrom(start func(s decide.State, at record.Position), call func(e record.Entry, s decide.State)) (stop func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	start(j.followed, j.entries[j.applied-1].Position)
	stopped := false
	j.listening = append(j.listening, func(e record.Entry, s decide.State) {
		if !stopped {
			call(e, s)
		}
	})
	return func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		stopped = true
	}
}

// WaitTip waits until the follower has applied the last record.
func (j *Journal) WaitTip(ctx context.Context) error { return j.Wait(ctx, j.Tip().Sequence) }

// CaughtUp returns a closed channel: the follower starts with the journal.
func (j *Journal) CaughtUp() <-chan struct{} { return record.AtOnce() }

// Position returns the position of the follower.
func (j *Journal) Position() (at record.Position) {
	j.View(func(_ decide.State, position record.Position) { at = position })
	return at
}

// Wait waits until the follower has applied the record with the sequence.
func (j *Journal) Wait(ctx context.Context, sequence int64) error {
	for {
		j.mu.RLock()
		there, moved := int64(j.applied) > sequence, j.moved
		j.mu.RUnlock()
		if there {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-moved:
		}
	}
}

// Err returns nil, because the follower never fails.
func (j *Journal) Err() error { return nil }

// Drain executes due work, as an owner does without being asked.
func (j *Journal) Drain() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.drain(scalar.ID{})
}

// FailDeciding makes Deciding and StateAt fail with an error, or work again for nil.
func (j *Journal) FailDeciding(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.pastErr = err
}

// slow makes a call wait.
type slow struct{ entered, release chan struct{} }

// SlowState makes the next call of StateAt wait for release. entered is closed when it waits.
func (j *Journal) SlowState() (entered <-chan struct{}, release func()) {
	s := &slow{make(chan struct{}), make(chan struct{})}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.slow = s
	return s.entered, sync.OnceFunc(func() { close(s.release) })
}

// Deciding implements past.Decisions. It folds the journal from its beginning.
func (j *Journal) Deciding(ctx context.Context, name string, partition int32, sequence int64, look func(past.Met) error) error {
	state, before, err := j.StateAt(ctx, name, partition, sequence-1)
	if err != nil {
		return err
	}
	entries := j.Entries()
	if sequence >= int64(len(entries)) {
		return &past.AfterError{Tip: entries[len(entries)-1].Position}
	}
	return look(past.Met{State: state, Before: before, Time: entries[sequence-1].Record.Time, Entry: entries[sequence], Build: "test"})
}

// StateAt implements past.States. It folds the journal from its beginning.
func (j *Journal) StateAt(ctx context.Context, _ string, _ int32, sequence int64) (decide.State, record.Position, error) {
	j.mu.Lock()
	err, slow := j.pastErr, j.slow
	j.slow = nil
	j.mu.Unlock()
	if err != nil {
		return nil, record.Position{}, err
	}
	if slow != nil {
		close(slow.entered)
		select {
		case <-slow.release:
		case <-ctx.Done():
			return nil, record.Position{}, ctx.Err()
		}
	}
	entries := j.Entries()
	switch {
	case sequence < 0:
		return nil, record.Position{}, past.ErrBefore
	case sequence >= int64(len(entries)):
		return nil, record.Position{}, &past.AfterError{Tip: entries[len(entries)-1].Position}
	}
	state := j.rules.NewState()
	for _, e := range entries[:sequence+1] {
		state.Evolve(e.Stamp(), e.Record.Command, e.Record.Outcome, e.Record.Events)
	}
	return state, entries[sequence].Position, nil
}
