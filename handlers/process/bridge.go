package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// bridge opens trading accounts for the owners of finished entitlements.
//
// The account's broker is the owner's tenant. The account's code is the owner's ID without hyphens: every party can
// derive it, and it contains no personal data. Commands are submitted one by one in the order in which the
// entitlements finished, because the trading journal ignores a command if it has applied one with a higher source
// sequence.
type bridge struct {
	Config
	opened   prometheus.Gauge
	failures prometheus.Counter
	wake     chan struct{} // has one element if there may be new work

	mu      sync.Mutex
	waiting []onboarding.TradingAccount // by sequence; some may already be open
}

func newBridge(c Config, opened prometheus.Gauge, failures prometheus.Counter) *bridge {
	m := &bridge{Config: c, opened: opened, failures: failures, wake: make(chan struct{}, 1)}
	c.Onboarding.ListenFrom(func(s decide.State, _ record.Position) {
		m.add(s.(*onboarding.State).TradingAccounts()...)
	}, m.observe)
	return m
}

// observe is called with every record. The caller holds the fold's lock.
func (m *bridge) observe(e record.Entry, s decide.State) {
	for _, event := range e.Record.Events {
		if moved, ok := event.(*onboarding.TriggerMoved); ok {
			if a, opens := s.(*onboarding.State).TradingAccount(moved.ID); opens {
				m.add(a)
			}
		}
	}
}

// add appends accounts. Their sequences must not be below those in the queue.
func (m *bridge) add(accounts ...onboarding.TradingAccount) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.waiting = append(m.waiting, accounts...)
	m.opened.Set(float64(len(m.waiting)))
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// next returns the first account that is not open and drops those before it. The initial queue may contain every
// account that was ever opened, so each view of the trading fold checks up to 1,000.
func (m *bridge) next() (first onboarding.TradingAccount, waits bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.waiting) > 0 {
		batch := m.waiting[:min(len(m.waiting), 1000)]
		done := len(batch)
		m.Trading.View(func(s decide.State, _ record.Position) {
			if i := slices.IndexFunc(batch, func(a onboarding.TradingAccount) bool { return !isOpen(s, a) }); i >= 0 {
				done = i
			}
		})
		m.waiting = m.waiting[done:]
		m.opened.Set(float64(len(m.waiting)))
		if done < len(batch) {
			return m.waiting[0], true
		}
	}
	m.waiting = nil
	return first, false
}

func isOpen(s decide.State, a onboarding.TradingAccount) bool {
	c, there := s.(*trading.State).Customer(onboarding.CustomerCode(a.ID))
	return there && c.Broker == a.Tenant
}

// drop removes an account from the queue.
func (m *bridge) drop(a onboarding.TradingAccount) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if at, there := slices.BinarySearchFunc(m.waiting, a.Sequence, func(w onboarding.TradingAccount, s int64) int { return cmp.Compare(w.Sequence, s) }); there {
		for at < len(m.waiting) && m.waiting[at] != a { // a record may finish several triggers
			at++
		}
		if at < len(m.waiting) {
			m.waiting = slices.Delete(m.waiting, at, at+1)
		}
	}
	m.opened.Set(float64(len(m.waiting)))
}

func (m *bridge) run(ctx context.Context) {
	wait := firstPause
	for ctx.Err() == nil {
		a, waits := m.next()
		if !waits {
			select {
			case <-ctx.Done():
			case <-m.wake:
			}
			continue
		}
		err := m.openAccount(ctx, a)
		var taken *takenError
		switch {
		case err == nil:
			m.drop(a)
			wait = firstPause
		case ctx.Err() != nil:
		case errors.As(err, &taken):
			// Retrying cannot succeed and would block the accounts behind it.
			m.failures.Inc()
			m.Logger.LogAttrs(ctx, slog.LevelError, "an entitlement opens no trading account", about(a.Ref), slog.Any("error", err))
			m.drop(a)
		default:
			m.failures.Inc()
			m.Logger.LogAttrs(ctx, slog.LevelWarn, "a trading account is not open yet; it is tried again", about(a.Ref), slog.Any("error", err), slog.Duration("after", wait))
			pause(ctx, wait) // the order must be preserved, so later accounts wait too
			wait = min(2*wait, lastPause)
		}
	}
}

// takenError reports that an account can never be opened.
type takenError struct{ code string }

func (e *takenError) Error() string {
	return fmt.Sprintf("the customer code %s belongs to another broker, or was refused", e.code)
}

// openAccount registers the account in the trading journal. It returns nil if the account is open or if its owner is
// not active any more.
func (m *bridge) openAccount(ctx context.Context, a onboarding.TradingAccount) error {
	var active bool
	m.Onboarding.View(func(s decide.State, _ record.Position) {
		o, known := s.(*onboarding.State).Owner(a.Ref)
		active = known && o.State == owner.Active
	})
	if !active {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	payload := &trading.RegisterCustomer{CustomerCode: onboarding.CustomerCode(a.ID), Broker: a.Tenant}
	result, err := m.Journals.Submit(ctx, tradingJournal, decide.Command{ID: operation.NewID(), Type: payload.CommandType(), Actor: actor, Payload: payload,
		Metadata: decide.Metadata{Source: &decide.Source{Journal: onboardingJournal, Sequence: a.Sequence}}})
	var refused *submit.RefusedError
	at := result.Position
	switch {
	case errors.As(err, &refused):
		at = refused.AsOf
	case err != nil:
		return err
	case !result.Repeated:
		return nil
	}
	// The command was refused or repeated: a later command of this source was applied, or the code is in use. Once
	// the fold has reached that position, it contains the account if it is open.
	if err := m.Trading.Wait(ctx, at.Sequence); err != nil {
		return err
	}
	var there bool
	m.Trading.View(func(s decide.State, _ record.Position) { there = isOpen(s, a) })
	if !there {
		return &takenError{payload.CustomerCode}
	}
	return nil
}
