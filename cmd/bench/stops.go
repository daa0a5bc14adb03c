package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// cascade is the number of stops at one price.
const cascade = 10_000

// The prices of the stops and of the bids that they trade with, in ticks.
const (
	stopTicks = middle*10 - 1000
	bidTicks  = stopTicks - 1000
)

// measureStops measures how fast stops at one price fire and trade, compared with limit orders that trade with the same
// bids.
func measureStops(ctx context.Context, b *bench) error {
	return b.withOwner(ctx, func(ask asker) error {
		return b.pair(Row{Measure: fmt.Sprintf("stops fired, %d at one price, each filled, --sync=false", cascade), Unit: "stops/s",
			Against: fmt.Sprintf("limit orders matched, %d at a time", submitters), Aim: atLeast(0.3)},
			ask(journalRequest{Stops: cascade}), ask(journalRequest{Matched: cascade}))
	})
}

// fireStops places stops at one price, moves the price there, and returns the number that fired per second until the
// owner accepted commands again.
func fireStops(ctx context.Context, owner *journal.Owner, stops int64) (perSecond float64, err error) {
	trade := func(ticks int64) error {
		for n, action := range [...]order.Action{order.Buy, order.Sell} {
			if _, err := owner.Submit(ctx, command(trader(), trading.CommandPlaceOrder, limitAt(2+n, action, ticks))); err != nil {
				return err
			}
		}
		return nil
	}
	if err := trade(middle * 10); err != nil { // otherwise the stops would fire immediately
		return 0, err
	}
	if err := many(ctx, owner, stops, func() *trading.PlaceOrder { return limitAt(1, order.Buy, bidTicks) }); err != nil {
		return 0, err
	}
	if err := many(ctx, owner, stops, func() *trading.PlaceOrder {
		o := limitAt(0, order.Sell, 0)
		o.Type, o.LimitPrice, o.TriggerPrice = order.StopLoss, fixed.Decimal{}, fixed.Decimal{Coef: stopTicks, Scale: 1}
		return o
	}); err != nil {
		return 0, err
	}
	start := time.Now()
	if err := trade(stopTicks); err != nil {
		return 0, err
	}
	if err := untilFree(ctx, owner); err != nil {
		return 0, fmt.Errorf("after the stops: %w", err)
	}
	return float64(stops) / time.Since(start).Seconds(), nil
}

// untilFree waits until the owner accepts commands again. The next command is decided after all work that blocks
// commands, and answered once those records are in the log. Until then the owner may refuse it with NotAcceptedError.
func untilFree(ctx context.Context, owner *journal.Owner) (err error) {
	refused, busy := new(submit.RefusedError), new(submit.NotAcceptedError)
	for err = error(busy); errors.As(err, &busy); {
		_, err = owner.Submit(ctx, command(trader(), trading.CommandCancelOrder, &trading.CancelOrder{CustomerCode: customerCode(0)}))
	}
	if errors.As(err, &refused) {
		return nil
	}
	return err
}

// matchOrders returns the number of limit orders per second that trade with as many resting ones.
func matchOrders(ctx context.Context, owner *journal.Owner, orders int64) (perSecond float64, err error) {
	if err := many(ctx, owner, orders, func() *trading.PlaceOrder { return limitAt(1, order.Buy, bidTicks) }); err != nil {
		return 0, err
	}
	start := time.Now()
	err = many(ctx, owner, orders, func() *trading.PlaceOrder { return limitAt(0, order.Sell, bidTicks) })
	return float64(orders) / time.Since(start).Seconds(), err
}

// many submits orders concurrently.
func many(ctx context.Context, owner *journal.Owner, orders int64, next func() *trading.PlaceOrder) error {
	return manyCommands(ctx, owner, orders, func(int64) decide.Command { return command(trader(), trading.CommandPlaceOrder, next()) })
}

// manyCommands submits commands concurrently. next returns the n-th command, counting from 0.
func manyCommands(ctx context.Context, owner *journal.Owner, commands int64, next func(n int64) decide.Command) error {
	var begun atomic.Int64
	return during(submitters, func(int) error {
		for n := begun.Add(1); n <= commands; n = begun.Add(1) {
			if err := submitAgain(ctx, owner, next(n-1)); err != nil {
				return err
			}
		}
		return nil
	})
}

// submitAgain submits a command until the owner accepts it. On a busy machine the owner may say that it does not.
func submitAgain(ctx context.Context, owner *journal.Owner, c decide.Command) error {
	for {
		_, err := owner.Submit(ctx, c)
		var refused *submit.NotAcceptedError
		if !errors.As(err, &refused) {
			return err
		}
		select {
		case <-time.After(max(refused.RetryAfter, time.Millisecond)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// during runs work in a number of goroutines and returns the first error.
func during(goroutines int, work func(n int) error) error {
	var running sync.WaitGroup
	errs := make(chan error, goroutines)
	for n := range goroutines {
		running.Go(func() {
			if err := work(n); err != nil {
				errs <- err
			}
		})
	}
	running.Wait()
	select {
	case err := <-errs:
		return err
	default:
		return nil
	}
}

// limitAt returns a limit order of one step.
func limitAt(customer int, a order.Action, ticks int64) *trading.PlaceOrder {
	return &trading.PlaceOrder{CustomerCode: customerCode(customer), Symbol: symbol, Action: a, Type: order.Limit,
		Amount: fixed.Decimal{Coef: 1, Scale: 3}, LimitPrice: fixed.Decimal{Coef: ticks, Scale: 1}}
}
