package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// The numbers of accounts with a position: while prices change, at an instant, and in a wave of liquidations.
const (
	manyHolders = 100_000
	fewHolders  = 1000
	waveOf      = 10_000
)

// The wave: an account's funds, which are slightly more than its position needs, and the price at which it is
// liquidated.
const (
	waveFunds  = 6 * fixed.Unit
	waveTicks  = middle * 10 * 92 / 100
	waveBids   = waveTicks + 1000
	safeFunds  = 1000 * fixed.Unit
	priceFlow  = 64 // prices in flight
	oneAccount = 1  // indexes of the customers for two purposes
	twoAccount = 2
)

func holderCode(group string, n int64) string { return fmt.Sprintf("%s-%d", group, n) }

// hold creates a group of customers, each of which buys one step at the middle price. No more than that rests in the
// book.
func hold(ctx context.Context, owner *journal.Owner, group string, holders int64, funds fixed.Money) error {
	commands := []func(n int64) decide.Command{
		func(n int64) decide.Command {
			return command(trader(), trading.CommandRegisterCustomer, &trading.RegisterCustomer{CustomerCode: holderCode(group, n)})
		},
		func(n int64) decide.Command {
			return command(operator(), trading.CommandMakeDeposit, &trading.MakeDeposit{CustomerCode: holderCode(group, n), Currency: "USDC", Amount: funds})
		},
		func(n int64) decide.Command {
			o := limitAt(oneAccount, order.Buy, middle*10)
			o.CustomerCode, o.Leverage = holderCode(group, n), 13
			return command(trader(), trading.CommandPlaceOrder, o)
		},
	}
	supply := limitAt(oneAccount, order.Sell, middle*10)
	supply.Amount.Coef = holders
	if err := submitAgain(ctx, owner, command(trader(), trading.CommandPlaceOrder, supply)); err != nil {
		return err
	}
	for _, next := range commands {
		if err := manyCommands(ctx, owner, holders, next); err != nil {
			return err
		}
	}
	return nil
}

// priceAt returns a command that sets the index price to a number of ticks.
func priceAt(ticks int64) decide.Command {
	return command(operator(), trading.CommandSetIndexPrice, &trading.SetIndexPrice{Symbol: symbol, Price: fixed.Decimal{Coef: ticks, Scale: 1}})
}

// movePrice sets index prices that bring no account near liquidation, for a time, and returns the microseconds per
// price.
func movePrice(ctx context.Context, owner *journal.Owner, length time.Duration) (each float64, err error) {
	var done atomic.Int64
	start := time.Now()
	err = during(priceFlow, func(int) error {
		for time.Since(start) < length {
			if _, err := owner.Submit(ctx, priceAt(middle*10+done.Add(1)%10)); err != nil {
				return err
			}
		}
		return nil
	})
	return microseconds(time.Since(start)) / float64(done.Load()), err
}

// crash moves the price below the liquidation price of a number of accounts, and returns how many are liquidated per
// second until the owner accepts commands again. Each sells its position to resting bids.
func crash(ctx context.Context, owner *journal.Owner, round, accounts int64) (perSecond float64, err error) {
	if err := hold(ctx, owner, fmt.Sprint("WAVE-", round), accounts, waveFunds); err != nil {
		return 0, err
	}
	bids := limitAt(twoAccount, order.Buy, waveBids)
	bids.Amount.Coef = accounts
	if _, err := owner.Submit(ctx, command(trader(), trading.CommandPlaceOrder, bids)); err != nil {
		return 0, err
	}
	start := time.Now()
	if _, err := owner.Submit(ctx, priceAt(waveTicks)); err != nil {
		return 0, err
	}
	if err := untilFree(ctx, owner); err != nil {
		return 0, fmt.Errorf("after the wave: %w", err)
	}
	took := time.Since(start)
	// The bids are used up: every account has sold.
	var refused *submit.RefusedError
	if _, err = owner.Submit(ctx, priceAt(middle*10)); err != nil && !errors.As(err, &refused) {
		return 0, err
	}
	return float64(accounts) / took.Seconds(), nil
}

// measureHolders measures the cost of an index price when very many accounts hold the instrument, and how fast accounts
// are liquidated.
func measureHolders(ctx context.Context, b *bench) error {
	err := b.withOwner(ctx, func(many asker) error {
		return b.withOwner(ctx, func(few asker) error {
			if _, err := many(journalRequest{Hold: manyHolders})(); err != nil {
				return err
			}
			if _, err := few(journalRequest{Hold: fewHolders})(); err != nil {
				return err
			}
			return b.pair(Row{Measure: fmt.Sprintf("an index price, %d accounts hold the instrument, none near", manyHolders), Unit: "µs",
				Against: fmt.Sprintf("where %d do", fewHolders), Aim: atMost(2)},
				many(journalRequest{Prices: b.round}), few(journalRequest{Prices: b.round}))
		})
	})
	if err != nil {
		return err
	}
	return b.withOwner(ctx, func(ask asker) error {
		return b.pair(Row{Measure: fmt.Sprintf("liquidations in a wave of %d accounts, --sync=false", waveOf), Unit: "accounts/s",
			Against: fmt.Sprintf("limit orders matched, %d at a time", submitters)},
			ask(journalRequest{Wave: waveOf}), ask(journalRequest{Matched: waveOf}))
	})
}
