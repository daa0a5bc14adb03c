package trading

import (
	"strings"

	"github.com/perpetua-exchange/perpetua/domain/order"
	domain "github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/web"
)

// notAllowed is the code of a field that does not go with the others.
const notAllowed = "NOT_ALLOWED"

// maxLeverage is the greatest leverage that an order may set.
const maxLeverage = 13

// symbolRule is the shape of a symbol in a request. Whether there is such an instrument is another question.
var symbolRule = web.Characters(32, "_")

// readOrder reads an order entry with all its faults: of each field, and of fields that do not go together. What
// depends on the instrument (ticks, steps, sizes) is the engine's to judge.
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
		Leverage:    int(f.OptionalLeverage("leverage", maxLeverage).Value),
		ReferenceID: f.OptionalString("reference_id", web.Reference).Value,
		CashAmount:  f.OptionalMoney("cash_amount").Value,
	}
	if !payload.Type.Valid() {
		return payload // nothing can be said of what goes with it
	}
	check(f, payload, given{
		amount: f.Has("amount"), cash: f.Has("cash_amount"), limit: f.Has("limit_price"), trigger: f.Has("trigger_price"),
		stop: f.Has("stop_loss_price"), take: f.Has("take_profit_price"), inForce: f.Has("time_in_force"), expires: f.Has("expire_time"),
	})
	return payload
}

// given says which of the members that do not always go together an order entry has, good ones or not.
type given struct{ amount, cash, limit, trigger, stop, take, inForce, expires bool }

// complaints is what takes faults. A *web.Form is one.
type complaints interface {
	Fault(name, code, message string)
}

// check judges what goes with the order's type.
func check(f complaints, payload *domain.PlaceOrder, has given) {
	checkSize(f, payload.Type, has)
	checkPrices(f, payload, has)
	checkTime(f, payload, has)
}

func checkSize(f complaints, t order.Type, has given) {
	amount, cash := has.amount, has.cash
	switch {
	case t.Conditional() && cash:
		f.Fault("cash_amount", notAllowed, "only market and limit orders can be sized by cash_amount")
		if !amount {
			f.Fault("amount", web.Required, "the field is required")
		}
	case t.Conditional() && !amount:
		f.Fault("amount", web.Required, "the field is required")
	case amount && cash:
		f.Fault("cash_amount", notAllowed, "only one of amount and cash_amount may be given")
	case !amount && !cash:
		f.Fault("amount", web.Required, "one of amount and cash_amount is required")
	}
}

// checkPrices wants the prices that the type needs, and no others.
func checkPrices(f complaints, payload *domain.PlaceOrder, has given) {
	t := payload.Type
	single, combo := t.Conditional() && t != order.TakeProfitStopLoss, t == order.TakeProfitStopLoss
	for _, p := range [...]struct {
		name          string
		needed, given bool
	}{
		{"limit_price", t.Limited(), has.limit}, {"trigger_price", single, has.trigger},
		{"stop_loss_price", combo, has.stop}, {"take_profit_price", combo, has.take},
	} {
		switch {
		case p.needed && !p.given:
			f.Fault(p.name, web.Required, "the field is required for "+string(t)+" orders")
		case !p.needed && p.given:
			f.Fault(p.name, notAllowed, "the field does not go with "+string(t)+" orders")
		}
	}
	switch {
	case payload.TriggerPriceType == "":
	case t.Trigger() == "":
		f.Fault("trigger_price_type", notAllowed, "the field does not go with "+string(t)+" orders")
	case payload.TriggerPriceType != t.Trigger():
		f.Fault("trigger_price_type", web.InvalidValue, string(t)+" orders are triggered by "+string(t.Trigger()))
	}
}

// checkTime judges how long the order is to stay, and what may only rest.
func checkTime(f complaints, payload *domain.PlaceOrder, has given) {
	if has.inForce && payload.TimeInForce == "" {
		return // it has its fault already
	}
	cash := has.cash && !payload.Type.Conditional()
	tif := timeInForce(payload, cash)
	switch {
	case cash && tif != order.IOC:
		f.Fault("time_in_force", notAllowed, "orders sized by cash_amount must be IOC")
	case payload.Type == order.Market && tif.Rests():
		f.Fault("time_in_force", notAllowed, "market orders must be IOC or FOK")
	}
	switch {
	case tif == order.GTD && !has.expires:
		f.Fault("expire_time", web.Required, "the field is required with GTD")
	case tif != order.GTD && has.expires:
		f.Fault("expire_time", notAllowed, "the field goes with GTD only")
	}
	switch {
	case !payload.PostOnly:
	case !payload.Type.Limited() || cash:
		f.Fault("post_only", notAllowed, "only limit orders that may rest can be post_only")
	case !tif.Rests():
		f.Fault("post_only", notAllowed, "post_only orders must be GTC or GTD")
	}
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
	f.Fault("", web.Required, "at least one of "+strings.Join(names, ", ")+" is required")
	return payload
}
