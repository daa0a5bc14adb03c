package trading

import (
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// TestSidesOfATrade checks that a liquidation is one for the account that is liquidated, the taker, and for the public,
// while its counterparty just trades, that a deleveraging is one for both, and which trades move the last price.
func TestSidesOfATrade(t *testing.T) {
	for _, test := range []struct {
		kind, taker, maker TradeType
		order              scalar.ID
		moves              bool
	}{
		{Trade, Trade, Trade, scalar.ID{1}, true},
		{Liquidation, Liquidation, Trade, scalar.ID{1}, true},
		{Liquidation, Liquidation, Trade, scalar.ID{}, false}, // that the insurance fund took over
		{AutoDeleveraging, AutoDeleveraging, AutoDeleveraging, scalar.ID{}, false},
	} {
		e := &TradeExecuted{Type: test.kind, Action: order.Sell, Taker: TradeLeg{OrderCode: test.order, CustomerCode: "t", Broker: "alpha", Fee: 5},
			Maker: TradeLeg{CustomerCode: "m", Broker: "beta", Fee: -1}}
		taker, maker := e.Sides(decide.Stamp{Sequence: 7, Time: 9}, 3)
		public := e.Public(decide.Stamp{Sequence: 7, Time: 9}, 3)
		if taker.Type != test.taker || maker.Type != test.maker || public.Type != test.kind || e.MovesLastPrice() != test.moves {
			t.Errorf("%s: %s for the taker, %s for the maker, %s for the public, moves the last price: %t", test.kind, taker.Type, maker.Type, public.Type, e.MovesLastPrice())
		}
		if taker.Action != order.Sell || maker.Action != order.Buy || taker.Role != Taker || maker.Role != Maker || public.Action != order.Sell {
			t.Errorf("the taker is %s %s, the maker %s %s", taker.Role, taker.Action, maker.Role, maker.Action)
		}
		if taker.CustomerCode != "t" || taker.Fee != 5 || maker.CustomerCode != "m" || maker.Fee != -1 || maker.Sequence != 7 || public.Time != 9 {
			t.Errorf("%+v and %+v", taker, maker)
		}
		if e.BrokerOf("t") != "alpha" || e.BrokerOf("m") != "beta" {
			t.Error("another's broker")
		}
	}
}
