package process

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/seal"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// erasure destroys the keys of erased owners.
type erasure struct {
	Config
	opened   prometheus.Gauge
	failures prometheus.Counter
	wake     chan struct{} // has one element if there may be new work

	mu   sync.Mutex
	open map[owner.Ref]*attempt
	// unheld contains the owners with a hold in the log that may be missing from the key store. While it is not empty, no key
	// is destroyed.
	unheld map[owner.Ref]bool
	looked time.Time // time of the last check of all holds
}

// attempt is the retry state of an owner's erasure on this node.
type attempt struct {
	failed int
	next   time.Time // zero: now
}

func newErasure(c Config, opened prometheus.Gauge, failures prometheus.Counter) *erasure {
	m := &erasure{Config: c, opened: opened, failures: failures, wake: make(chan struct{}, 1), open: make(map[owner.Ref]*attempt),
		unheld: make(map[owner.Ref]bool)}
	c.Onboarding.ListenFrom(func(s decide.State, _ record.Position) {
		for _, ref := range s.(*onboarding.State).KeysToDestroy() {
			m.add(ref)
		}
	}, m.observe)
	return m
}

// observe is called with every record. The caller holds the fold's lock.
func (m *erasure) observe(e record.Entry, _ decide.State) {
	for _, event := range e.Record.Events {
		switch event := event.(type) {
		case *onboarding.OwnerErased:
			m.add(event.Ref)
		case *onboarding.OwnerHeld: // an older node may have recorded it, without a hold in the key store
			m.toHold(event.Ref)
		case *onboarding.KeyDestroyed: // by this node or another
			m.done(event.Ref)
		}
	}
}

func (m *erasure) add(ref owner.Ref) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.open[ref] == nil {
		m.open[ref] = new(attempt)
		m.opened.Set(float64(len(m.open)))
	}
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

func (m *erasure) done(ref owner.Ref) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.open, ref)
	m.opened.Set(float64(len(m.open)))
}

// atOnce is the maximum number of keys that are destroyed together. Their confirmations share one wait for
// seal.KeyLifetime.
const atOnce = 256

// due returns the owners that are due, at most atOnce, and the time until the next one is.
func (m *erasure) due() (refs []owner.Ref, next time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	next = lastPause
	for ref, a := range m.open {
		if left := time.Until(a.next); left > 0 {
			next = min(next, left)
		} else if refs = append(refs, ref); len(refs) == atOnce {
			break
		}
	}
	return refs, next
}

func (m *erasure) run(ctx context.Context) {
	for ctx.Err() == nil {
		if !m.holdAll(ctx) {
			pause(ctx, firstPause)
			continue
		}
		refs, next := m.due()
		if len(refs) > 0 {
			m.erase(ctx, refs)
			continue
		}
		timer := time.NewTimer(next)
		select {
		case <-ctx.Done():
		case <-m.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// erase destroys the keys of erased owners and confirms each destruction to the journal.
func (m *erasure) erase(ctx context.Context, refs []owner.Ref) {
	var destroyed []owner.Ref
	for _, ref := range refs {
		if err := m.destroy(ctx, ref); err != nil {
			m.fail(ctx, ref, err)
			continue
		}
		destroyed = append(destroyed, ref)
	}
	// A node that read a key just before it was destroyed may use it for up to KeyLifetime. Only after that is the
	// owner's data unreadable everywhere, and only then may the destruction be confirmed.
	if len(destroyed) == 0 || !pause(ctx, seal.KeyLifetime) {
		return
	}
	for _, ref := range destroyed {
		if err := m.confirm(ctx, ref); err != nil {
			m.fail(ctx, ref, err)
			continue
		}
		m.done(ref)
	}
}

// destroy destroys an owner's key and then removes the files that were encrypted with it. Steps that were already
// done, by a manager that was killed or by another node, are not errors.
func (m *erasure) destroy(ctx context.Context, ref owner.Ref) error {
	if err := m.Keys.Destroy(ctx, ref.String()); err != nil {
		return fmt.Errorf("destroy the key: %w", err)
	}
	// The list is complete, because an erased owner cannot receive new files.
	var files []string
	m.Onboarding.View(func(s decide.State, _ record.Position) { files = s.(*onboarding.State).Files(ref) })
	if err := m.Files.Delete(ctx, files...); err != nil {
		return fmt.Errorf("remove the files: %w", err)
	}
	return nil
}

// confirm records the destruction of an owner's key in the journal.
func (m *erasure) confirm(ctx context.Context, ref owner.Ref) error {
	id, err := m.Keys.KeyID(ctx, ref.String())
	if err != nil {
		return fmt.Errorf("name the key: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	payload := &onboarding.ConfirmKeyDestroyed{Ref: ref, KeyID: id}
	_, err = m.Journals.Submit(ctx, onboardingJournal, decide.Command{ID: operation.NewID(), Type: payload.CommandType(), Actor: actor, Payload: payload})
	var refused *submit.RefusedError
	// Another node was first, or the reply to an earlier attempt was lost.
	if errors.As(err, &refused) && refused.Refusal.Code == onboarding.KeyDestroyedCode {
		return nil
	}
	return err
}

// fail schedules a retry of an owner's erasure. If the key is missing, an operator has to look at the key store.
func (m *erasure) fail(ctx context.Context, ref owner.Ref, err error) {
	if ctx.Err() != nil {
		return
	}
	if errors.Is(err, seal.ErrHeld) || errors.Is(err, seal.ErrFenced) {
		m.withheld(ctx, ref, err)
		return
	}
	m.failures.Inc()
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.open[ref]
	if a == nil { // confirmed by another node in the meantime
		return
	}
	wait := min(firstPause<<min(a.failed, 10), lastPause)
	a.failed++
	a.next = time.Now().Add(wait)
	m.Logger.LogAttrs(ctx, slog.LevelError, "an erased owner's key is not destroyed yet; it is tried again", about(ref), slog.Any("error", err), slog.Duration("after", wait))
}

// withheld schedules a retry because an owner's key is held, by another copy of this venue or by this venue before it was
// restored from a backup. It warns once and does not count as a failure.
func (m *erasure) withheld(ctx context.Context, ref owner.Ref, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.open[ref]
	if a == nil {
		return
	}
	level := slog.LevelDebug
	if a.failed == 0 && errors.Is(err, seal.ErrHeld) {
		level = slog.LevelWarn
	}
	a.next = time.Now().Add(min(firstPause<<min(a.failed, 10), lastPause))
	a.failed++
	m.Logger.LogAttrs(ctx, level, "an erased owner's key is not destroyed while it is held; release the hold if it is void", about(ref), slog.Any("error", err))
}

// toHold queues an owner for writing the hold to the key store.
func (m *erasure) toHold(ref owner.Ref) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.unheld[ref] = true
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// holdAll writes the queued holds to the key store and reports whether it wrote every one. On its first call, and once a
// minute, it queues every hold in the log: older builds wrote none of them to the key store.
func (m *erasure) holdAll(ctx context.Context) bool {
	if m.looked.IsZero() || time.Since(m.looked) >= lastPause {
		m.Onboarding.View(func(s decide.State, _ record.Position) {
			for _, ref := range s.(*onboarding.State).HeldOwners() {
				m.toHold(ref)
			}
		})
		m.looked = time.Now()
	}
	m.mu.Lock()
	unheld := slices.Collect(maps.Keys(m.unheld))
	m.mu.Unlock()
	all := true
	for _, ref := range unheld {
		if err := m.hold(ctx, ref); err != nil {
			all = false
			if ctx.Err() == nil && !errors.Is(err, seal.ErrFenced) {
				m.failures.Inc()
				m.Logger.LogAttrs(ctx, slog.LevelError, "a hold is not in the key store yet, and no key is destroyed before it is; it is tried again", about(ref), slog.Any("error", err))
			}
			continue
		}
		m.mu.Lock()
		delete(m.unheld, ref)
		m.mu.Unlock()
	}
	return all
}

// hold writes the hold of an owner to the key store if it is still in the log.
func (m *erasure) hold(ctx context.Context, ref owner.Ref) error {
	if !m.held(ref) {
		return nil
	}
	fresh, err := m.Keys.Hold(ctx, ref.String())
	if errors.Is(err, seal.ErrDestroyed) {
		m.Logger.LogAttrs(ctx, slog.LevelError, "an owner is held whose key is destroyed", about(ref))
		return nil
	}
	if err != nil || !fresh {
		return err
	}
	// The fold may have lagged behind a release. A hold without a record would keep the key forever.
	if err := m.Onboarding.WaitTip(ctx); err != nil {
		return err
	}
	if m.held(ref) {
		return nil
	}
	_, err = m.Keys.Release(ctx, ref.String())
	return err
}

// held reports whether an owner is held according to the fold.
func (m *erasure) held(ref owner.Ref) (held bool) {
	m.Onboarding.View(func(s decide.State, _ record.Position) { held = s.(*onboarding.State).Held(ref) })
	return held
}
