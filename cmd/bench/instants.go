package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// shifted is a clock that can be set forward. It shifts both clocks that an owner reads, so the owner accepts the jump.
type shifted struct {
	clock journal.Clock
	by    atomic.Int64 // nanoseconds
}

// Wall implements journal.Clock.
func (s *shifted) Wall() time.Time { return s.clock.Wall().Add(time.Duration(s.by.Load())) }

// Elapsed implements journal.Clock.
func (s *shifted) Elapsed() time.Duration { return s.clock.Elapsed() + time.Duration(s.by.Load()) }

// toSettlement sets the clock to shortly before the next instant of funding and settlement.
func (s *shifted) toSettlement(before time.Duration) {
	now := s.Wall().UTC()
	at := now.Truncate(24 * time.Hour).Add(8 * time.Hour)
	if !at.After(now.Add(before)) {
		at = at.Add(24 * time.Hour)
	}
	s.by.Add(int64(at.Sub(now) - before))
}

// postedAtOnce is the maximum number of accounts that one step posts.
const postedAtOnce = 64

// patience bounds the time for all postings.
const patience = 5 * time.Minute

// leadIn is the time for which orders run before the instant.
const leadIn = 100 * time.Millisecond

// accepted counts accepted orders and the records between them. Counting starts at an order that was accepted before the instant.
type accepted struct {
	first int64 // the sequence of that order

	mu      sync.Mutex
	last    time.Time
	longest time.Duration
	highest int64
	orders  int64 // after the first
}

func newAccepted(first int64) *accepted {
	return &accepted{first: first, highest: first, last: time.Now()}
}

func (a *accepted) note(sequence int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	a.orders++
	a.longest, a.last = max(a.longest, now.Sub(a.last)), now
	a.highest = max(a.highest, sequence)
}

// steps returns the number of records since the first order without an accepted order: the engine's steps.
func (a *accepted) steps() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.highest - a.first - a.orders
}

// firstOrder enters one order and returns its sequence. It retries while the engine accepts none.
func firstOrder(ctx context.Context, owner *journal.Owner) (int64, error) {
	for end := time.Now().Add(patience); ; {
		r, err := owner.Submit(ctx, command(trader(), trading.CommandPlaceOrder, levelOrder(0, 0)))
		var busy *submit.NotAcceptedError
		if err == nil || !errors.As(err, &busy) || time.Now().After(end) {
			return r.Position.Sequence, err
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
}

// runOrders enters orders from several clients, each one order after the other, until enough returns true. It returns
// the longest time between two accepted orders, and the duration of the run.
func runOrders(ctx context.Context, owner *journal.Owner, seen *accepted, enough func(a *accepted) bool) (longest, took time.Duration, err error) {
	start := time.Now()
	err = during(clients, func(n int) error {
		var busy *submit.NotAcceptedError
		for i := 0; i%16 > 0 || !enough(seen); i++ {
			r, err := owner.Submit(ctx, command(trader(), trading.CommandPlaceOrder, levelOrder(i, n)))
			if err != nil && !errors.As(err, &busy) {
				return err
			}
			if err == nil {
				seen.note(r.Position.Sequence)
			}
		}
		return nil
	})
	return seen.longest, time.Since(start), err
}

// passInstant moves the clock to an instant of funding and settlement, and submits orders until all accounts have
// posted both.
func passInstant(ctx context.Context, owner *journal.Owner, clock *shifted, holders int64) (longest, took time.Duration, err error) {
	// Before the clock is set: the engine may post everything before it accepts the first of the clients' orders.
	first, err := firstOrder(ctx, owner)
	if err != nil {
		return 0, 0, err
	}
	seen := newAccepted(first)
	clock.toSettlement(leadIn)
	end := time.Now().Add(patience)
	longest, took, err = runOrders(ctx, owner, seen, func(a *accepted) bool { return a.steps() >= holders/postedAtOnce || time.Now().After(end) })
	if err == nil && time.Now().After(end) {
		err = fmt.Errorf("the postings of %d accounts have not come within %v", holders, patience)
	}
	return longest, took, err
}

// measureInstants measures the longest wait of clients while very many accounts post funding and settlement.
func measureInstants(ctx context.Context, b *bench) error {
	return b.withOwner(ctx, func(ask asker) error {
		if _, err := ask(journalRequest{Hold: manyHolders})(); err != nil {
			return err
		}
		return b.pair(Row{Measure: fmt.Sprintf("longest gap between two accepted orders, funding and settlement of %d positions", manyHolders), Unit: "ms",
			Against: "without, for as long", Aim: atMostMore(5)},
			ask(journalRequest{Instant: manyHolders}), ask(journalRequest{Quiet: true}))
	})
}
