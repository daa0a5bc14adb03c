package trading

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// TestARetriedStepPostsNothingFromElsewhere: a step that is tried again with one entry posts what the accounts that it
// touches owe on its own instrument, and nothing else: of hundreds of unpaid charges on other instruments one that
// fails must not set aside the liquidation of somebody else.
func TestARetriedStepPostsNothingFromElsewhere(t *testing.T) {
	v := newWideVenue(t)
	v.give(&RegisterCustomer{CustomerCode: "carol", Broker: "alpha"})
	v.give(&MakeDeposit{CustomerCode: "carol", Currency: currency, Amount: 5 * fixed.Unit})
	v.offer(0, "carol", order.Buy, "0.1", "100.4")
	v.drain(decide.Alternate) // which fixes funding and settlement
	v.give(&SetIndexPrice{Symbol: wideSymbol(0), Price: number("98")})
	v.give(&SetIndexPrice{Symbol: wideSymbol(0), Price: number("40")})
	if v.state.accounts["carol"].failing == nil {
		t.Fatal("nobody is to be liquidated")
	}
	for _, single := range []bool{false, true} {
		own, foreign, trades := 0, 0, 0
		for _, e := range v.state.Step(v.at, single).Events {
			symbol := ""
			switch e := e.(type) {
			case *FundingPosted:
				symbol = e.Symbol
			case *SettlementPosted:
				symbol = e.Symbol
			case *TradeExecuted:
				trades++
				continue
			default:
				continue
			}
			if symbol == wideSymbol(0) {
				own++
			} else {
				foreign++
			}
		}
		if trades != 1 || own == 0 || (foreign == 0) != single {
			t.Errorf("single %t: %d trades, after %d debts on the instrument and %d on others", single, trades, own, foreign)
		}
	}
}

// TestAWithdrawalIsPaidOutOfWhatIsPosted: what settlement made an account richer by is paid out once it is posted, so
// that no row of a withdrawal shows a balance below zero.
func TestAWithdrawalIsPaidOutOfWhatIsPosted(t *testing.T) {
	v := newWideVenue(t)
	for n := range wide {
		v.give(&SetIndexPrice{Symbol: wideSymbol(n), Price: number("130")})
	}
	v.drain(decide.Alternate)
	m, _ := v.state.Summary("alice")
	if m.Withdrawable <= m.Balance+100*fixed.Unit {
		t.Fatalf("alice has %s, and can withdraw %s only", m.Balance, m.Withdrawable)
	}
	var requested *WithdrawalRequested
	for _, e := range v.give(&RequestWithdrawal{CustomerCode: "alice", Currency: currency, Amount: m.Withdrawable}).Events {
		if e, ok := e.(*WithdrawalRequested); ok {
			requested = e
		}
	}
	complete := decide.Command{Type: CommandCompleteWithdrawal, Actor: operator, Payload: &CompleteWithdrawal{Code: requested.Code}}
	if _, err := v.state.Decide(v.at, complete); err == nil {
		t.Error("it is paid out of what is not posted")
	}
	v.drain(decide.Nothing)
	v.at.Time += scalar.Second
	if _, err := v.state.Decide(v.at, complete); err != nil {
		t.Errorf("all is posted, and it is not paid out: %v", err)
	}
}

// TestNoPriceMakesAPostingFail: whatever prices the venue takes, up to those that it refuses, funding and settlement
// are posted to the end, and no balance, of an account or of the venue, is beyond what they may bring it to. What is
// left out of a settlement raises an alarm, and what is settled is all that can be.
func TestNoPriceMakesAPostingFail(t *testing.T) {
	left, all := 0, 0
	const largest = 320_000_000
	amounts := rapid.OneOf(rapid.Int64Range(1, largest), rapid.Just[int64](largest)) // most numbers drawn from a range are small
	rapid.Check(t, func(t *rapid.T) {
		j := newTestJournal(t)
		give := func(p decide.Payload) error {
			c := decide.Command{Type: p.CommandType(), Actor: operator, Payload: p}
			if _, ok := p.(*PlaceOrder); ok {
				c.Actor = trader("alpha")
			}
			_, err := j.do(c)
			return err
		}
		must := func(p decide.Payload) {
			if err := give(p); err != nil {
				t.Fatalf("%T: %v", p, err)
			}
		}
		customers := []string{"alice", "bob", "carol"}
		for _, code := range customers {
			must(&RegisterCustomer{CustomerCode: code, Broker: "alpha"})
			must(&MakeDeposit{CustomerCode: code, Currency: currency, Amount: 5_000_000_000 * fixed.Unit})
		}
		one, halted := number("1"), market.TradeHalt
		for n := range 4 {
			i := btc()
			i.Symbol = fmt.Sprintf("C%dUSDC_PERP", n)
			i.PriceTick, i.AmountStep, i.MinAmount, i.MaxAmount = one, one, one, number("1000000000")
			must(&ListInstrument{Instrument: i})
			must(&SetIndexPrice{Symbol: i.Symbol, Price: one})
			for range rapid.IntRange(1, 2).Draw(t, "trades") {
				side := rapid.SampledFrom([]order.Action{order.Buy, order.Sell}).Draw(t, "side")
				who := rapid.Permutation(customers).Draw(t, "who")
				amount := fixed.Decimal{Coef: amounts.Draw(t, "amount")}
				for k, a := range []order.Action{side, side.Opposite()} {
					must(&PlaceOrder{CustomerCode: who[k], Symbol: i.Symbol, Action: a, Type: order.Limit, Amount: amount, LimitPrice: one})
				}
			}
			must(&ChangeInstrument{Symbol: i.Symbol, Status: &halted}) // so that nobody is liquidated
		}
		for range rapid.IntRange(1, 3).Draw(t, "days") {
			for _, i := range j.state.listing {
				for price := rapid.Int64Range(1, 10_000).Draw(t, "price"); give(&SetIndexPrice{Symbol: i.contract.Symbol, Price: fixed.Decimal{Coef: price}}) != nil; {
					price -= price/16 + 1
				}
			}
			j.now += scalar.Day
			alarms := len(j.alarms)
			j.drain()
			for _, a := range j.state.holders() {
				if b := a.balance.Abs(); b > maxSettled {
					t.Fatalf("%s has %s", a.code, a.balance)
				}
			}
			if b := j.state.VenueBalance(ledger.Clearing); j.state.outstanding != 0 || b.Abs() > maxSettled {
				t.Fatalf("%d instants are left, and %s for clearing", j.state.outstanding, b)
			}
			if len(j.alarms) > alarms {
				left++
			} else {
				all++
			}
		}
	})
	if left == 0 || all == 0 {
		t.Errorf("%d settlements left something out, %d nothing", left, all)
	}
}
