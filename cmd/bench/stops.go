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
)

// cascade is how many stops wait at one price.
const cascade = 10_000

// Where they wait, and where what they find rests, in ticks.
const (
	stopTicks = middle*10 - 1000
	bidTicks  = stopTicks - 1000
)

// measureStops measures how fast stops at one price fire and trade, beside limit orders that trade with the same.
func measureStops(ctx context.Context, b *bench) error {
	return b.withOwner(ctx, func(ask asker) error {
		return b.pair(Row{Measure: fmt.Sprintf("stops fired, %d at one price, each filled, --sync=false", cascade), Unit: "stops/s",
			Against: fmt.Sprintf("limit orders matched, %d at a time", submitters), Aim: atLeast(0.3)},
			ask(journalRequest{Stops: cascade}), ask(journalRequest{Matched: cascade}))
	})
}

// fireStops lets stops wait at one price, reaches it, and returns how many fired a second until the owner takes commands
// again.
func fireStops(ctx context.Context, owner *journal.Owner, stops int64) (perSecond float64, err error) {
	trade := func(ticks int64) error {
		for n, action := range [...]order.Action{order.Buy, order.Sell} {
			if _, err := owner.Submit(ctx, command(trader(), trading.CommandPlaceOrder, limitAt(2+n, action, ticks))); err != nil {
				return err
			}
		}
		return nil
	}
	if err := trade(middle * 10); err != nil { // or the stops would fire at once
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

// untilFree waits until the owner takes commands again. What comes next is decided when all is done that blocks it, and
// answered once the records of that are in the log. It may be told to come again meanwhile.
func untilFree(ctx context.Context, owner *journal.Owner) (err error) {
	refused, busy := new(journal.RefusedError), new(journal.NotAcceptedError)
	for err = error(busy); errors.As(err, &busy); {
		_, err = owner.Submit(ctx, command(trader(), trading.CommandCancelOrder, &trading.CancelOrder{CustomerCode: customerCode(0)}))
	}
	if errors.As(err, &refused) {
		return nil
	}
	return err
}

// matchOrders returns how many limit orders a second trade with as many that rest.
func matchOrders(ctx context.Context, owner *journal.Owner, orders int64) (perSecond float64, err error) {
	if err := many(ctx, owner, orders, func() *trading.PlaceOrder { return limitAt(1, order.Buy, bidTicks) }); err != nil {
		return 0, err
	}
	start := time.Now()
	err = many(ctx, owner, orders, func() *trading.PlaceOrder { return limitAt(0, order.Sell, bidTicks) })
	return float64(orders) / time.Since(start).Seconds(), err
}

// many enters orders, many at a time.
func many(ctx context.Context, owner *journal.Owner, orders int64, next func() *trading.PlaceOrder) error {
	return manyCommands(ctx, owner, orders, func(int64) decide.Command { return command(trader(), trading.CommandPlaceOrder, next()) })
}

// manyCommands has commands decided, many at a time. next makes the n-th of them, from 0.
func manyCommands(ctx context.Context, owner *journal.Owner, commands int64, next func(n int64) decide.Command) error {
	var begun atomic.Int64
	return during(submitters, func(int) error {
		for n := begun.Add(1); n <= commands; n = begun.Add(1) {
			if _, err := owner.Submit(ctx, next(n-1)); err != nil {
				return err
			}
		}
		return nil
	})
}

// during has so many goroutines work side by side, and returns the first error of one.
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

// limitAt is an order of one step.
func limitAt(customer int, a order.Action, ticks int64) *trading.PlaceOrder {
	return &trading.PlaceOrder{CustomerCode: customerCode(customer), Symbol: symbol, Action: a, Type: order.Limit,
		Amount: fixed.Decimal{Coef: 1, Scale: 3}, LimitPrice: fixed.Decimal{Coef: ticks, Scale: 1}}
}
