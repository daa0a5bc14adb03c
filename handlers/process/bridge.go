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
	"github.com/perpetua-exchange/perpetua/handlers/web"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// bridge opens trading accounts for the owners of finished entitlements.
//
// An account has the owner's tenant for its broker, and for its code the owner's id without hyphens, so that nobody has to be
// told of it: no name, nothing personal. Commands go out in the order in which entitlements finished, one after the other,
// since the trading journal takes none that comes after a later one of the same source.
type bridge struct {
	Config
	opened   prometheus.Gauge
	failures prometheus.Counter
	wake     chan struct{} // holds one when there may be something new to do

	mu      sync.Mutex
	waiting []onboarding.TradingAccount // by sequence; those that are open already among them
}

func newBridge(c Config, opened prometheus.Gauge, failures prometheus.Counter) *bridge {
	m := &bridge{Config: c, opened: opened, failures: failures, wake: make(chan struct{}, 1)}
	c.Onboarding.ListenFrom(func(s decide.State, _ record.Position) {
		m.add(s.(*onboarding.State).TradingAccounts()...)
	}, m.observe)
	return m
}

// observe is called with every record, under the fold's lock.
func (m *bridge) observe(e record.Entry, s decide.State) {
	for _, event := range e.Record.Events {
		if moved, ok := event.(*onboarding.TriggerMoved); ok {
			if a, opens := s.(*onboarding.State).TradingAccount(moved.ID); opens {
				m.add(a)
			}
		}
	}
}

// add takes accounts that came after all that wait.
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

// next returns the first account that is not open, and drops those before it. What a fold started from may tell of as many
// accounts as there ever were, so the trading fold is asked about many at a time.
func (m *bridge) next() (first onboarding.TradingAccount, waits bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.waiting) > 0 {
		some := m.waiting[:min(len(m.waiting), 1000)]
		done := len(some)
		m.Trading.View(func(s decide.State, _ record.Position) {
			if i := slices.IndexFunc(some, func(a onboarding.TradingAccount) bool { return !isOpen(s, a) }); i >= 0 {
				done = i
			}
		})
		m.waiting = m.waiting[done:]
		m.opened.Set(float64(len(m.waiting)))
		if done < len(some) {
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

// drop takes an account off that waits no more.
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
			// It will not go away, and must not hold up the others.
			m.failures.Inc()
			m.Logger.LogAttrs(ctx, slog.LevelError, "an entitlement opens no trading account", about(a.Ref), slog.Any("error", err))
			m.drop(a)
		default:
			m.failures.Inc()
			m.Logger.LogAttrs(ctx, slog.LevelWarn, "a trading account is not open yet; it is tried again", about(a.Ref), slog.Any("error", err), slog.Duration("after", wait))
			pause(ctx, wait) // and no other before it
			wait = min(2*wait, lastPause)
		}
	}
}

// takenError says that an account can't be opened.
type takenError struct{ code string }

func (e *takenError) Error() string {
	return fmt.Sprintf("the customer code %s belongs to another broker, or was refused", e.code)
}

// openAccount has the trading journal open an account, and returns nil once it is open or its owner is none any more who gets one.
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
	result, err := m.Journals.Submit(ctx, tradingJournal, decide.Command{ID: web.NewID(), Type: payload.CommandType(), Actor: actor, Payload: payload,
		Kept: decide.Kept{Source: &decide.Source{Journal: onboardingJournal, Sequence: a.Sequence}}})
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
	// The journal has taken a later one already, or has the code. Whether that is this account, its fold tells.
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
