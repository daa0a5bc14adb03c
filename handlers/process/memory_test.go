package process

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/document"
	"github.com/perpetua-exchange/perpetua/domain/document/format"
	"github.com/perpetua-exchange/perpetua/domain/entitlement"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/seal"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// memory is a journal in memory under its real rules, and a fold of it, which can be held back.
type memory struct {
	record.Follower
	rules decide.Rules
	now   func() scalar.Time

	mu        sync.Mutex
	state     decide.State
	entries   []record.Entry
	commands  []decide.Recorded // of the records
	fold      decide.State
	folded    int // of the entries
	held      bool
	moved     chan struct{}
	listeners map[int]func(record.Entry, decide.State)
	next      int
}

func newMemory(rules decide.Rules, now func() scalar.Time) *memory {
	return &memory{rules: rules, now: now, state: rules.NewState(), fold: rules.NewState(), moved: make(chan struct{}),
		listeners: make(map[int]func(record.Entry, decide.State))}
}

func (m *memory) stamp() decide.Stamp {
	return decide.Stamp{Journal: scalar.ID{9, m.rules.Journal()[0]}, Sequence: int64(len(m.entries)), Time: m.now()}
}

func (m *memory) append(c decide.Recorded, d decide.Decision) {
	at := m.stamp()
	m.state.Evolve(at, c, d.Outcome, d.Events)
	m.commands = append(m.commands, c)
	m.entries = append(m.entries, record.Entry{Journal: at.Journal, Position: record.Position{Sequence: at.Sequence},
		Record: &record.Record{Sequence: at.Sequence, Time: at.Time, Command: c, Outcome: d.Outcome, Events: d.Events}})
	m.follow()
}

func (m *memory) follow() {
	for ; m.folded < len(m.entries) && !m.held; m.folded++ {
		e := m.entries[m.folded]
		m.fold.Evolve(e.Stamp(), e.Record.Command, e.Record.Outcome, e.Record.Events)
		for _, call := range m.listeners {
			call(e, m.fold)
		}
	}
	close(m.moved)
	m.moved = make(chan struct{})
}

// hold keeps the fold where it is, or lets it go on.
func (m *memory) hold(held bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.held = held
	m.follow()
}

func (m *memory) submit(c decide.Command) (submit.Result, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, err := m.state.Decide(m.stamp(), c)
	var refusal *decide.Refusal
	if errors.As(err, &refusal) {
		return submit.Result{}, &submit.RefusedError{Refusal: refusal, AsOf: record.LogPosition{Sequence: int64(len(m.entries)) - 1}}
	}
	if err != nil {
		return submit.Result{}, err
	}
	if d.Repeated {
		return submit.Result{Position: record.LogPosition{Sequence: d.Repeat}, Repeated: true}, nil
	}
	m.append(c.Recorded(), d)
	at := int64(len(m.entries)) - 1
	for m.state.Due(m.now()) != decide.Nothing {
		m.append(decide.Recorded{Type: "engine.step", Actor: decide.Engine}, m.state.Step(m.stamp(), false))
	}
	return submit.Result{Position: record.LogPosition{Sequence: at}}, nil
}

func (m *memory) View(look func(decide.State, record.Position)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	look(m.fold, record.Position{Sequence: int64(m.folded) - 1})
}

func (m *memory) ListenFrom(start func(decide.State, record.Position), call func(record.Entry, decide.State)) (stop func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	start(m.fold, record.Position{Sequence: int64(m.folded) - 1})
	n := m.next
	m.next++
	m.listeners[n] = call
	return func() {}
}

func (m *memory) WaitTip(context.Context) error { return nil }

func (m *memory) CaughtUp() <-chan struct{} { return record.AtOnce() }

func (m *memory) Wait(ctx context.Context, sequence int64) error {
	for {
		m.mu.Lock()
		there, moved := int64(m.folded) > sequence, m.moved
		m.mu.Unlock()
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

// venue is both journals, the keys, the files, and faults.
type venue struct {
	t          *testing.T
	onboarding *memory
	trading    *memory
	keys       *seal.Owners
	fault      func(where string) error // what is to go wrong before or after a step; nil for nothing

	mu    sync.Mutex
	files map[string]bool
	last  *Managers // that were started
	end   func()    // ends them
}

func newVenue(t *testing.T) *venue {
	t.Helper()
	begun := time.Now()
	now := func() scalar.Time { return scalar.Time(begun.UnixMicro()) }
	box, err := seal.New(make([]byte, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	keys, err := seal.OpenOwners(t.Context(), blob.URLOf(t.TempDir()), box)
	if err != nil {
		t.Fatal(err)
	}
	return &venue{t: t, onboarding: newMemory(onboarding.Rules(), now), trading: newMemory(trading.Rules(), now), keys: keys, files: make(map[string]bool)}
}

func (v *venue) at(where string) error {
	if v.fault == nil {
		return nil
	}
	return v.fault(where)
}

// Submit implements submit.Submitter.
func (v *venue) Submit(_ context.Context, name string, c decide.Command) (submit.Result, error) {
	if err := v.at("before " + c.Type); err != nil {
		return submit.Result{}, err
	}
	m := v.onboarding
	if name == tradingJournal {
		m = v.trading
	}
	result, err := m.submit(c)
	if lost := v.at("after " + c.Type); lost != nil {
		return submit.Result{}, lost
	}
	return result, err
}

// Destroy implements Keys.
func (v *venue) Destroy(ctx context.Context, of string) error {
	if err := v.at("before destroy"); err != nil {
		return err
	}
	if err := v.keys.Destroy(ctx, of); err != nil {
		return err
	}
	return v.at("after destroy")
}

// Hold holds an owner's key.
func (v *venue) Hold(ctx context.Context, of string) (bool, error) {
	if err := v.at("before hold"); err != nil {
		return false, err
	}
	return v.keys.Hold(ctx, of)
}

// Release releases it.
func (v *venue) Release(ctx context.Context, of string) (bool, error) { return v.keys.Release(ctx, of) }

// KeyID names an owner's key.
func (v *venue) KeyID(ctx context.Context, of string) (string, error) { return v.keys.KeyID(ctx, of) }

// Delete implements Files.
func (v *venue) Delete(_ context.Context, keys ...string) error {
	if err := v.at("before delete"); err != nil {
		return err
	}
	v.mu.Lock()
	for _, key := range keys {
		delete(v.files, key)
	}
	v.mu.Unlock()
	return v.at("after delete")
}

// kill ends the managers that were started last, without waiting. It is for faults.
func (v *venue) kill() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.end()
}

// manage runs managers as one node does, until stop is called.
func (v *venue) manage() (stop func()) {
	ctx, cancel := context.WithCancel(v.t.Context())
	m := New(Config{Onboarding: v.onboarding, Trading: v.trading, Journals: v, Keys: v, Files: v, Logger: slog.New(slog.DiscardHandler)})
	v.mu.Lock()
	v.last, v.end = m, cancel
	v.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = m.Run(ctx)
	}()
	return func() { cancel(); <-done }
}

var (
	client   = decide.Actor{Sub: "broker-a", Broker: "alpha"}
	operator = decide.Actor{Sub: "operator", Broker: "venue"}
)

func (v *venue) must(actor decide.Actor, p decide.Payload) scalar.ID {
	v.t.Helper()
	m := v.onboarding
	result, err := m.submit(decide.Command{ID: operation.NewID(), Type: p.CommandType(), Actor: actor, Payload: p})
	if err != nil {
		v.t.Fatalf("%s: %v", p.CommandType(), err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.entries[result.Position.Sequence].Stamp().Derive(0)
}

func person(n byte) owner.Ref {
	return owner.Ref{Type: owner.PersonType, ID: scalar.ID{n, 15: 1}}
}

// register has a person with a key and a file.
func (v *venue) register(n byte) owner.Ref {
	v.t.Helper()
	ref := person(n)
	if err := v.keys.Create(v.t.Context(), ref.String()); err != nil {
		v.t.Fatal(err)
	}
	v.must(client, &onboarding.RegisterOwner{Ref: ref, ExternalID: append(make([]byte, 31), n), Fields: onboarding.Sealed("fields")})
	source := ref.String() + "/file"
	v.must(client, &onboarding.AddDocument{ID: scalar.ID{n, 15: 2}, Ref: ref, Category: document.Undetermined,
		Orientation: document.Undetermined, Source: source, SHA256: make([]byte, 32), Size: 1, Format: format.PDF, Name: onboarding.Sealed("name")})
	v.mu.Lock()
	defer v.mu.Unlock()
	v.files[source] = true
	return ref
}

// finish has a person finish an entitlement that opens a trading account.
func (v *venue) finish(ref owner.Ref) {
	v.t.Helper()
	e := v.must(operator, &onboarding.CreateEntitlement{Name: "trading", OwnerType: owner.PersonType, Approval: entitlement.Automatic, OpensTradingAccount: true})
	v.must(client, &onboarding.CreateTrigger{Ref: ref, EntitlementID: e})
}
