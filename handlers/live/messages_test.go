package live

import (
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/trading"
)

// A liquidation is one for the account that is liquidated, the taker, and for the public; its counterparty just
// trades. A deleveraging is one for both.
func TestTradeTypes(t *testing.T) {
	for _, test := range []struct{ kind, taker, maker trading.TradeKind }{
		{trading.Trade, trading.Trade, trading.Trade},
		{trading.Liquidation, trading.Liquidation, trading.Trade},
		{trading.AutoDeleveraging, trading.AutoDeleveraging, trading.AutoDeleveraging},
	} {
		e := &trading.TradeExecuted{Kind: test.kind, Action: order.Sell}
		taker, maker := tradeUpdate(e, false, 0), tradeUpdate(e, true, 0)
		if taker.Type != test.taker || maker.Type != test.maker {
			t.Errorf("%s: %s for the taker and %s for the maker", test.kind, taker.Type, maker.Type)
		}
		if taker.Action != order.Sell || maker.Action != order.Buy || taker.Role != "taker" || maker.Role != "maker" {
			t.Errorf("the taker is %s %s, the maker %s %s", taker.Role, taker.Action, maker.Role, maker.Action)
		}
	}
}
