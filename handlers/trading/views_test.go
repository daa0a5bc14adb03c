package trading

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	domain "github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/web/input"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
	"github.com/perpetua-exchange/perpetua/schemas"
	"github.com/perpetua-exchange/perpetua/schemas/conform"
)

func number(t *testing.T, s string) fixed.Decimal {
	t.Helper()
	d, err := fixed.ParseDecimal(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestOrderTypes renders an order of every type in its REST form.
func TestOrderTypes(t *testing.T) {
	description, err := conform.NewOpenAPI(schemas.OpenAPI)
	if err != nil {
		t.Fatal(err)
	}
	const created = scalar.Time(1_774_944_000_000_000)
	for _, tt := range []struct {
		kind order.Type
		set  func(o *order.Order)
		text string
	}{
		{order.Market, func(o *order.Order) { o.TimeInForce = order.IOC },
			`"limit_price":null,"trigger_price":null,"stop_loss_price":null,"take_profit_price":null,"triggered":null,"average_fill_price":null,"time_in_force":"IOC","expire_time":null`},
		{order.Market, func(o *order.Order) { o.CashAmount, o.TimeInForce = 1000_00000000, order.IOC },
			`"cash_amount":"1000","filled_quote":"0","limit_price":null`},
		{order.Limit, func(o *order.Order) {
			o.LimitPrice, o.TimeInForce, o.ExpireTime = number(t, "65000.0"), order.GTD, created+scalar.Hour
		}, `"limit_price":"65000.0","trigger_price":null,"stop_loss_price":null,"take_profit_price":null,"triggered":null,"average_fill_price":null,"time_in_force":"GTD","expire_time":"2026-03-31T09:00:00.000000Z"`},
		{order.StopLoss, func(o *order.Order) { o.TriggerPrice, o.TriggerPriceType = number(t, "64000.0"), order.TradePrice },
			`"limit_price":null,"trigger_price":"64000.0","stop_loss_price":null,"take_profit_price":null,"trigger_price_type":"trade_price"`},
		{order.StopLossLimit, func(o *order.Order) {
			o.TriggerPrice, o.LimitPrice, o.TriggerPriceType = number(t, "64000.0"), number(t, "63990.0"), order.TradePrice
		}, `"limit_price":"63990.0","trigger_price":"64000.0","stop_loss_price":null,"take_profit_price":null,"trigger_price_type":"trade_price"`},
		{order.TakeProfit, func(o *order.Order) { o.TriggerPrice, o.TriggerPriceType = number(t, "66000.0"), order.TradePrice },
			`"limit_price":null,"trigger_price":"66000.0","stop_loss_price":null,"take_profit_price":null,"trigger_price_type":"trade_price"`},
		{order.TakeProfitLimit, func(o *order.Order) {
			o.TriggerPrice, o.LimitPrice, o.TriggerPriceType = number(t, "66000.0"), number(t, "66010.0"), order.TradePrice
		}, `"limit_price":"66010.0","trigger_price":"66000.0","stop_loss_price":null,"take_profit_price":null,"trigger_price_type":"trade_price"`},
		{order.TakeProfitStopLoss, func(o *order.Order) {
			o.StopLossPrice, o.TakeProfitPrice, o.TriggerPriceType = number(t, "64000.0"), number(t, "66000.0"), order.MarkPrice
		}, `"limit_price":null,"trigger_price":null,"stop_loss_price":"64000.0","take_profit_price":"66000.0","trigger_price_type":"mark_price"`},
	} {
		o := order.Order{Code: scalar.ID{4: 1}, CustomerCode: "A-1", Broker: "alpha", Symbol: "BTCUSDC_PERP", Action: order.Sell, Type: tt.kind,
			Status: order.Open, Amount: number(t, "0.500"), FilledAmount: number(t, "0.000"), TimeInForce: order.GTC, ReferenceID: "r",
			Created: created, Updated: created}
		tt.set(&o)
		text, err := json.Marshal(wire.NewOrder(&o, 7))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), tt.text) || !strings.Contains(string(text), `"type":"`+string(tt.kind)+`"`) {
			t.Errorf("%s: %s, want %s", tt.kind, text, tt.text)
		}
		if strings.Contains(string(text), "alpha") {
			t.Errorf("%s shows the broker: %s", tt.kind, text)
		}
		if err := description.Validate("/components/schemas/Order", text); err != nil {
			t.Errorf("%s: %v", tt.kind, err)
		}
	}
}

// TestFingerprintsStay what they are, since the log remembers them.
func TestFingerprintsStay(t *testing.T) {
	payload := domain.PlaceOrder{CustomerCode: "A-1", Symbol: "BTCUSDC_PERP", Action: order.Buy, Type: order.Limit, Amount: number(t, "1"),
		LimitPrice: number(t, "65000"), ReferenceID: "r-1", Leverage: 5}
	const want = "f4029cdadfe7509ae0df0f0b00298c0b"
	if got := orderFingerprint(&payload); got != want {
		t.Errorf("fingerprint %s, want %s", got, want)
	}
	spelled := payload
	spelled.Amount, spelled.LimitPrice, spelled.TimeInForce = number(t, "1.000"), number(t, "65000.0"), order.GTC
	if got := orderFingerprint(&spelled); got != want {
		t.Errorf("in other words: %s, want %s", got, want)
	}
	for name, change := range map[string]func(*domain.PlaceOrder){
		"customer": func(a *domain.PlaceOrder) { a.CustomerCode = "A-2" }, "symbol": func(a *domain.PlaceOrder) { a.Symbol = "X" },
		"action": func(a *domain.PlaceOrder) { a.Action = order.Sell }, "type": func(a *domain.PlaceOrder) { a.Type = order.StopLossLimit },
		"amount": func(a *domain.PlaceOrder) { a.Amount.Coef++ }, "cash": func(a *domain.PlaceOrder) { a.CashAmount++ },
		"price": func(a *domain.PlaceOrder) { a.LimitPrice.Coef++ }, "trigger": func(a *domain.PlaceOrder) { a.TriggerPrice.Coef++ },
		"stop": func(a *domain.PlaceOrder) { a.StopLossPrice.Coef++ }, "take": func(a *domain.PlaceOrder) { a.TakeProfitPrice.Coef++ },
		"time in force": func(a *domain.PlaceOrder) { a.TimeInForce = order.FOK }, "expiry": func(a *domain.PlaceOrder) { a.ExpireTime++ },
		"post_only": func(a *domain.PlaceOrder) { a.PostOnly = true }, "reduce_only": func(a *domain.PlaceOrder) { a.ReduceOnly = true },
		"leverage": func(a *domain.PlaceOrder) { a.Leverage++ }, "reference": func(a *domain.PlaceOrder) { a.ReferenceID = "r-2" },
	} {
		other := payload
		if change(&other); orderFingerprint(&other) == want || orderFingerprint(&other) != input.FingerprintOf(normal(&other)) {
			t.Errorf("another %s has the same fingerprint, or one that the generic encoder does not lead to", name)
		}
	}
}

func TestChange(t *testing.T) {
	for _, tt := range []struct{ from, to, want string }{
		{"100", "101", "1.00"}, {"100", "99", "-1.00"}, {"3", "4", "33.33"}, {"65000.0", "65000.0", "0.00"}, {"0.1", "12345.6", "12345500.00"},
		{"10000", "10000.5", "0.00"}, {"10000", "10001.5", "0.02"}, {"3", "2", "-33.33"},
	} {
		if got := change(number(t, tt.from), number(t, tt.to)); got.String() != tt.want {
			t.Errorf("from %s to %s: %s, want %s", tt.from, tt.to, got, tt.want)
		}
	}
	if got := change(fixed.Decimal{}, number(t, "1")); got != nil {
		t.Errorf("from nothing: %s", got)
	}
}

func FuzzGlob(f *testing.F) {
	f.Add("B*C", "BXC")
	f.Add("**", "")
	f.Add("*A*B", "XAYB")
	f.Fuzz(func(t *testing.T, pattern, value string) {
		if len(pattern) > 20 || len(value) > 20 || strings.Contains(value, "*") {
			return
		}
		if got, want := glob(pattern, value), slow(pattern, value); got != want {
			t.Errorf("glob(%q, %q) = %v, want %v", pattern, value, got, want)
		}
	})
}

// slow is the definition of what a pattern matches.
func slow(pattern, value string) bool {
	switch {
	case pattern == "":
		return value == ""
	case pattern[0] == '*':
		return slow(pattern[1:], value) || value != "" && slow(pattern, value[1:])
	}
	return value != "" && pattern[0] == value[0] && slow(pattern[1:], value[1:])
}
