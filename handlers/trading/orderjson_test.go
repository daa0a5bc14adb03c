package trading

import (
	"testing"

	"github.com/go-json-experiment/json"
	"pgregory.net/rapid"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/order"
)

// TestOrderJSON holds what is written by hand against the generic encoder.
func TestOrderJSON(t *testing.T) {
	decimal := rapid.Custom(func(t *rapid.T) fixed.Decimal {
		return fixed.Decimal{Coef: rapid.Int64Range(-1e17, 1e17).Draw(t, "coef"), Scale: uint8(rapid.IntRange(0, 8).Draw(t, "scale"))}
	})
	absent := rapid.OneOf(rapid.Just(fixed.Decimal{}), decimal)
	moment := rapid.Custom(func(t *rapid.T) decide.Time {
		return decide.Time(rapid.Int64Range(0, 4e15).Draw(t, "time"))
	})
	rapid.Check(t, func(t *rapid.T) {
		text := func(name string) string { return rapid.OneOf(rapid.Just(""), rapid.String()).Draw(t, name) }
		o := NewOrder(&order.Order{CustomerCode: text("customer"), Symbol: text("symbol"), Action: order.Action(text("action")),
			Type: order.Type(text("type")), Status: order.Status(text("status")), Amount: decimal.Draw(t, "amount"),
			FilledAmount: decimal.Draw(t, "filled"), CashAmount: fixed.Money(rapid.Int64().Draw(t, "cash")),
			FilledQuote: fixed.Money(rapid.Int64().Draw(t, "quote")), LimitPrice: absent.Draw(t, "limit"),
			TriggerPrice: absent.Draw(t, "trigger"), StopLossPrice: absent.Draw(t, "stop"), TakeProfitPrice: absent.Draw(t, "take"),
			TriggerPriceType: order.TriggerPriceType(text("by")), AverageFillPrice: absent.Draw(t, "average"),
			TimeInForce: order.TimeInForce(text("tif")), ExpireTime: rapid.OneOf(rapid.Just(decide.Time(0)), moment).Draw(t, "expires"),
			PostOnly: rapid.Bool().Draw(t, "post"), ReduceOnly: rapid.Bool().Draw(t, "reduce"), ReferenceID: text("reference"),
			Reason: order.Reason(text("reason")), Created: moment.Draw(t, "created"), Updated: moment.Draw(t, "updated")})
		want, err := json.Marshal(o, json.Deterministic(true))
		if err != nil {
			t.Fatal(err)
		}
		got, err := o.appendJSON(nil)
		if err != nil || string(got) != string(want) {
			t.Fatalf("%s, %v, want %s", got, err, want)
		}
	})
}
