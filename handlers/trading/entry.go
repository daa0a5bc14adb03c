package trading

import (
	"strings"

	"github.com/perpetua-exchange/perpetua/domain/order"
	domain "github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/domain/validation"
	"github.com/perpetua-exchange/perpetua/handlers/web"
)

// symbolRule is the syntax of symbols. It does not check that the instrument exists.
var symbolRule = web.Characters(32, "_")

// readOrder reads an order entry and reports all errors: of each field and of invalid combinations. The engine checks
// rules that depend on the instrument (ticks, steps, sizes).
func readOrder(f *web.Form, customer string) *domain.PlaceOrder {
	payload := &domain.PlaceOrder{
		CustomerCode: customer,
		Symbol:       f.String("symbol", symbolRule),
		Action:       order.Action(f.Enum("action", string(order.Buy), string(order.Sell))),
		Type: order.Type(f.Enum("type", string(order.Market), string(order.Limit), string(order.StopLoss), string(order.StopLossLimit),
			string(order.TakeProfit), string(order.TakeProfitLimit), string(order.TakeProfitStopLoss))),
		Amount:           f.OptionalDecimal("amount", web.Positive).Value,
		LimitPrice:       f.OptionalDecimal("limit_price", web.Positive).Value,
		TriggerPrice:     f.OptionalDecimal("trigger_price", web.Positive).Value,
		StopLossPrice:    f.OptionalDecimal("stop_loss_price", web.Positive).Value,
		TakeProfitPrice:  f.OptionalDecimal("take_profit_price", web.Positive).Value,
		TriggerPriceType: order.TriggerPriceType(f.OptionalEnum("trigger_price_type", string(order.TradePrice), string(order.MarkPrice)).Value),
		TimeInForce: order.TimeInForce(f.OptionalEnum("time_in_force", string(order.GTC), string(order.IOC), string(order.FOK),
			string(order.GTD)).Value),
		ExpireTime:  f.OptionalTime("expire_time").Value,
		PostOnly:    f.OptionalBool("post_only").Value,
		ReduceOnly:  f.OptionalBool("reduce_only").Value,
		Leverage:    int(f.OptionalLeverage("leverage", domain.MaxLeverage).Value),
		ReferenceID: f.OptionalString("reference_id", web.Reference).Value,
		CashAmount:  f.OptionalMoney("cash_amount").Value,
	}
	if !payload.Type.Valid() {
		return payload // without a type, combinations cannot be checked
	}
	entry := shape(payload, order.FieldsOf(f.Has))
	var errs validation.Errors
	entry.Check(&errs)
	for _, e := range errs.List {
		f.Add(e)
	}
	return payload
}

// shape returns the part of an order entry that determines valid combinations of fields.
func shape(payload *domain.PlaceOrder, given order.Fields) order.Entry {
	return order.Entry{Type: payload.Type, TriggerPriceType: payload.TriggerPriceType, TimeInForce: payload.TimeInForce,
		PostOnly: payload.PostOnly, Given: given}
}

func timeInForce(payload *domain.PlaceOrder, cash bool) order.TimeInForce {
	if payload.TimeInForce != "" {
		return payload.TimeInForce
	}
	return payload.Type.DefaultTimeInForce(cash)
}

// readAmendment reads the changes to an order.
func readAmendment(f *web.Form) *domain.AmendOrder {
	payload := &domain.AmendOrder{
		Amount:          f.OptionalDecimal("amount", web.Positive).Pointer(),
		LimitPrice:      f.OptionalDecimal("limit_price", web.Positive).Pointer(),
		TriggerPrice:    f.OptionalDecimal("trigger_price", web.Positive).Pointer(),
		StopLossPrice:   f.OptionalDecimal("stop_loss_price", web.Positive).Pointer(),
		TakeProfitPrice: f.OptionalDecimal("take_profit_price", web.Positive).Pointer(),
		ExpireTime:      f.OptionalTime("expire_time").Pointer(),
	}
	names := []string{"amount", "limit_price", "trigger_price", "stop_loss_price", "take_profit_price", "expire_time"}
	for _, name := range names {
		if f.Has(name) {
			return payload
		}
	}
	f.Fault("", validation.Required, "at least one of "+strings.Join(names, ", ")+" is required")
	return payload
}
