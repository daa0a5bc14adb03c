package verify_test

import (
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/verify"
)

// TestSums adds records with postings and positions.
func TestSums(t *testing.T) {
	customer := func(code string, amount, balance int64) ledger.Posting {
		return ledger.Posting{CustomerCode: code, Currency: "USDC", Amount: fixed.Money(amount), Balance: fixed.Money(balance)}
	}
	venue := func(account ledger.Account, amount, balance int64) ledger.Posting {
		return ledger.Posting{Account: account, Symbol: "BTC", Currency: "USDC", Amount: fixed.Money(amount), Balance: fixed.Money(balance)}
	}
	held := func(code string, amount, cost int64) trading.PositionHeld {
		return trading.PositionHeld{CustomerCode: code, Symbol: "BTC", Amount: fixed.Decimal{Coef: amount}, Cost: fixed.Money(cost)}
	}
	trade := func(positions []trading.PositionHeld, postings ...ledger.Posting) decide.Event {
		return &trading.TradeExecuted{Positions: positions, Entries: postings}
	}
	for name, c := range map[string]struct {
		partial bool
		records []decide.Event
		want    string
	}{
		"balanced":            {false, []decide.Event{trade(nil, customer("ann", 5, 5), venue("external", -5, -5)), trade(nil, customer("ann", -2, 3), venue("external", 2, -3))}, ""},
		"not zero":            {false, []decide.Event{trade(nil, customer("ann", 5, 5), venue("external", -4, -4))}, "sum to 1"},
		"another balance":     {false, []decide.Event{trade(nil, customer("ann", 5, 6), venue("external", -5, -5))}, "before it was 0"},
		"of nothing":          {false, []decide.Event{trade(nil, customer("ann", 0, 0))}, "of nothing"},
		"of nobody":           {false, []decide.Event{trade(nil, customer("", 1, 1))}, "not of one account"},
		"too much":            {false, []decide.Event{trade(nil, customer("ann", 1<<63-1, 1<<63-1), customer("ann", 1, -1<<63))}, "before it was"},
		"from a later record": {true, []decide.Event{trade(nil, customer("ann", 5, 9), venue("external", -5, -9))}, ""},
		"and then wrong":      {true, []decide.Event{trade(nil, customer("ann", 5, 9), customer("ann", 1, 9))}, "before it was"},
		"a trade":             {false, []decide.Event{trade([]trading.PositionHeld{held("ann", 2, 10), held("bob", -2, -10)}), trade([]trading.PositionHeld{held("ann", 0, 0), held("bob", 0, 0)})}, ""},
		"with a profit": {false, []decide.Event{trade([]trading.PositionHeld{held("ann", 2, 10), held("bob", -2, -10)}),
			trade([]trading.PositionHeld{held("ann", 1, 5), held("eve", 1, 6)}, customer("ann", 1, 1), venue("clearing", -1, -1))}, ""},
		"sizes": {false, []decide.Event{trade([]trading.PositionHeld{held("ann", 2, 10), held("bob", -1, -10)})}, "positions on BTC sum to"},
		"costs": {false, []decide.Event{trade([]trading.PositionHeld{held("ann", 2, 10), held("bob", -2, -9)})}, "costs of the positions on BTC"},
	} {
		t.Run(name, func(t *testing.T) {
			s, got := &verify.Sums{Partial: c.partial}, ""
			for _, e := range c.records {
				if err := s.Add([]decide.Event{e}); err != nil {
					got = err.Error()
					break
				}
			}
			if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
				t.Errorf("%q, not %q", got, c.want)
			}
		})
	}
}
