package order

import (
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/validation"
)

func told(e Entry) (out []string) {
	var errs validation.Errors
	e.Check(&errs)
	for _, f := range errs.List {
		out = append(out, f.Path.String()+" "+f.Code)
	}
	return out
}

func TestFieldsOf(t *testing.T) {
	all := map[string]Fields{"amount": FieldAmount, "cash_amount": FieldCashAmount, "limit_price": FieldLimitPrice, "trigger_price": FieldTriggerPrice,
		"stop_loss_price": FieldStopLossPrice, "take_profit_price": FieldTakeProfitPrice, "time_in_force": FieldTimeInForce, "expire_time": FieldExpireTime}
	for name, field := range all {
		if got := FieldsOf(func(n string) bool { return n == name }); got != field {
			t.Errorf("%s is %b, not %b", name, got, field)
		}
	}
}

// TestEveryTypeHasItsShape checks that the table knows every type of order entry, and agrees with what types say of
// themselves elsewhere.
func TestEveryTypeHasItsShape(t *testing.T) {
	for _, of := range []Type{Market, Limit, StopLoss, StopLossLimit, TakeProfit, TakeProfitLimit, TakeProfitStopLoss, StopMarket, StopLimit, "", "dance"} {
		s := shapeOf(of)
		if (s != nil) != of.Valid() {
			t.Errorf("%s: valid %t, in the table %t", of, of.Valid(), s != nil)
			continue
		}
		if s == nil {
			continue
		}
		if of.Has(FieldLimitPrice) != of.Limited() || s.trigger != of.Trigger() || (s.trigger != "") != of.Conditional() || s.rests != of.Limited() {
			t.Errorf("%s: %+v", of, *s)
		}
		if s.prices&^(FieldLimitPrice|FieldTriggerPrice|FieldStopLossPrice|FieldTakeProfitPrice) != 0 {
			t.Errorf("%s needs what is no price", of)
		}
		if told := told(Entry{Type: of, Given: s.prices | FieldAmount}); len(told) > 0 {
			t.Errorf("%s with all that it needs: %v", of, told)
		}
		told := strings.Join(told(Entry{Type: of, Given: ^s.prices & (FieldLimitPrice | FieldTriggerPrice | FieldStopLossPrice | FieldTakeProfitPrice)}), ", ")
		if strings.Count(told, "_price NOT_ALLOWED")+strings.Count(told, "_price REQUIRED") != len(prices) || !strings.Contains(told, "amount REQUIRED") {
			t.Errorf("%s with all that it must not have: %s", of, told)
		}
	}
}
