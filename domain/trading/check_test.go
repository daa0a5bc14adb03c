package trading

import (
	"slices"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/order"
)

// TestCheckOrder changes a good order of each type and looks for all of the faults, each as its field and code.
func TestCheckOrder(t *testing.T) {
	c := market.NewContract(btc().Normal())
	d := number
	good := map[order.Type]PlaceOrder{
		order.Market:          {Amount: d("1")},
		order.Limit:           {Amount: d("1"), LimitPrice: d("65000")},
		order.StopLoss:        {Amount: d("1"), TriggerPrice: d("65000")},
		order.TakeProfit:      {Amount: d("1"), TriggerPrice: d("65000")},
		order.StopLossLimit:   {Amount: d("1"), TriggerPrice: d("65000"), LimitPrice: d("65000")},
		order.TakeProfitLimit: {Amount: d("1"), TriggerPrice: d("65000"), LimitPrice: d("65000")},
		order.TakeProfitStopLoss: {Amount: d("1"), StopLossPrice: d("60000"), TakeProfitPrice: d("70000"),
			TriggerPriceType: order.MarkPrice},
	}
	for kind, payload := range good {
		payload.Type, payload.Action = kind, order.Buy
		if wrong := CheckOrder(c, &payload, start); len(wrong) > 0 {
			t.Errorf("a good %s order: %v", kind, wrong)
		}
		good[kind] = payload
	}
	for name, test := range map[string]struct {
		kind   order.Type
		change func(p *PlaceOrder)
		want   string
	}{
		"everything at once": {order.Limit, func(p *PlaceOrder) {
			*p = PlaceOrder{Type: order.Limit, Action: "hold", Amount: d("0.0001"), LimitPrice: d("1.05"), TriggerPrice: d("5"), TimeInForce: "DAY", ReferenceID: "a b", Leverage: 99}
		}, "action INVALID_ACTION, amount AMOUNT_BELOW_MINIMUM, leverage INVALID_LEVERAGE, limit_price INVALID_PRICE_TICK, reference_id INVALID_REFERENCE_ID, time_in_force INVALID_VALUE, trigger_price NOT_ALLOWED"},
		"a mechanical type":            {order.Market, func(p *PlaceOrder) { p.Type = order.StopMarket }, "type INVALID_ORDER_TYPE"},
		"market with a limit":          {order.Market, func(p *PlaceOrder) { p.LimitPrice = d("1") }, "limit_price NOT_ALLOWED"},
		"market good till canceled":    {order.Market, func(p *PlaceOrder) { p.TimeInForce = order.GTC }, "time_in_force NOT_ALLOWED"},
		"limit without a price":        {order.Limit, func(p *PlaceOrder) { p.LimitPrice = fixed.Decimal{} }, "limit_price REQUIRED"},
		"stop without a trigger":       {order.StopLoss, func(p *PlaceOrder) { p.TriggerPrice = fixed.Decimal{} }, "trigger_price REQUIRED"},
		"stop limit without a limit":   {order.StopLossLimit, func(p *PlaceOrder) { p.LimitPrice = fixed.Decimal{} }, "limit_price REQUIRED"},
		"stop with a combo's price":    {order.TakeProfit, func(p *PlaceOrder) { p.StopLossPrice = d("1") }, "stop_loss_price NOT_ALLOWED"},
		"combo with one leg":           {order.TakeProfitStopLoss, func(p *PlaceOrder) { p.StopLossPrice = fixed.Decimal{} }, "stop_loss_price REQUIRED"},
		"combo with a trigger":         {order.TakeProfitStopLoss, func(p *PlaceOrder) { p.TriggerPrice = d("1") }, "trigger_price NOT_ALLOWED"},
		"combo on trades":              {order.TakeProfitStopLoss, func(p *PlaceOrder) { p.TriggerPriceType = order.TradePrice }, "trigger_price_type INVALID_VALUE"},
		"stop on marks":                {order.StopLoss, func(p *PlaceOrder) { p.TriggerPriceType = order.MarkPrice }, "trigger_price_type INVALID_VALUE"},
		"limit on anything":            {order.Limit, func(p *PlaceOrder) { p.TriggerPriceType = order.TradePrice }, "trigger_price_type NOT_ALLOWED"},
		"stop without an amount":       {order.StopLoss, func(p *PlaceOrder) { p.Amount = fixed.Decimal{} }, "amount REQUIRED"},
		"stop for cash":                {order.StopLoss, func(p *PlaceOrder) { p.Amount, p.CashAmount = fixed.Decimal{}, 1 }, "amount REQUIRED, cash_amount NOT_ALLOWED"},
		"amount and cash":              {order.Limit, func(p *PlaceOrder) { p.CashAmount = 1 }, "cash_amount NOT_ALLOWED"},
		"neither amount nor cash":      {order.Limit, func(p *PlaceOrder) { p.Amount = fixed.Decimal{} }, "amount REQUIRED"},
		"too much cash":                {order.Market, func(p *PlaceOrder) { p.Amount, p.CashAmount = fixed.Decimal{}, maxNotional+1 }, "cash_amount INVALID_CASH_AMOUNT"},
		"cash that rests":              {order.Limit, func(p *PlaceOrder) { p.Amount, p.CashAmount, p.TimeInForce = fixed.Decimal{}, 1, order.GTC }, "time_in_force NOT_ALLOWED"},
		"cash post-only":               {order.Limit, func(p *PlaceOrder) { p.Amount, p.CashAmount, p.PostOnly = fixed.Decimal{}, 1, true }, "post_only NOT_ALLOWED"},
		"stop market post-only":        {order.StopLoss, func(p *PlaceOrder) { p.PostOnly = true }, "post_only NOT_ALLOWED"},
		"good till date without one":   {order.Limit, func(p *PlaceOrder) { p.TimeInForce = order.GTD }, "expire_time REQUIRED"},
		"a date without good till":     {order.Limit, func(p *PlaceOrder) { p.ExpireTime = start + 1 }, "expire_time NOT_ALLOWED"},
		"a date that is now":           {order.Limit, func(p *PlaceOrder) { p.TimeInForce, p.ExpireTime = order.GTD, start }, "expire_time INVALID_EXPIRE_TIME"},
		"a date in another century":    {order.Limit, func(p *PlaceOrder) { p.TimeInForce, p.ExpireTime = order.GTD, latest }, "expire_time INVALID_EXPIRE_TIME"},
		"a name that is too long":      {order.Limit, func(p *PlaceOrder) { p.ReferenceID = strings.Repeat("x", 65) }, "reference_id INVALID_REFERENCE_ID"},
		"a negative leverage":          {order.Limit, func(p *PlaceOrder) { p.Leverage = -1 }, "leverage INVALID_LEVERAGE"},
		"a price of too many digits":   {order.Limit, func(p *PlaceOrder) { p.LimitPrice = d("10000000000.1") }, "limit_price INVALID_PRICE"},
		"an amount of too many digits": {order.Limit, func(p *PlaceOrder) { p.Amount = d("999999999999999999") }, "amount AMOUNT_ABOVE_MAXIMUM"},
	} {
		t.Run(name, func(t *testing.T) {
			payload := good[test.kind]
			test.change(&payload)
			var got []string
			for _, r := range CheckOrder(c, &payload, start) {
				if r.Message == "" {
					t.Errorf("%+v", r)
				}
				got = append(got, r.Path.String()+" "+r.Code)
			}
			slices.Sort(got)
			if strings.Join(got, ", ") != test.want {
				t.Errorf("got  %s\nwant %s", strings.Join(got, ", "), test.want)
			}
		})
	}
}

func TestOrderWords(t *testing.T) {
	if order.Buy.Opposite() != order.Sell || order.Sell.Opposite() != order.Buy {
		t.Error("opposites")
	}
	for kind, want := range map[order.Type][2]string{
		order.Market: {"market", ""}, order.Limit: {"limit", ""}, order.StopLoss: {"stop_market", "trade_price"},
		order.TakeProfit: {"stop_market", "trade_price"}, order.StopLossLimit: {"stop_limit", "trade_price"},
		order.TakeProfitLimit: {"stop_limit", "trade_price"}, order.TakeProfitStopLoss: {"take_profit_stop_loss", "mark_price"},
	} {
		if string(kind.Mechanical()) != want[0] || string(kind.Trigger()) != want[1] {
			t.Errorf("%s is mechanically %s and triggered by %s", kind, kind.Mechanical(), kind.Trigger())
		}
	}
}
