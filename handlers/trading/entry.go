package trading

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
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

// MoneyRules are those of amounts of money: above zero, with at most 8 decimals.
func MoneyRules() []web.Rule { return []web.Rule{web.Positive, web.MaxDecimals(8)} }

// readOrder reads an order entry with all its faults: of each field, and of fields that do not go together. What
// depends on the instrument (ticks, steps, sizes) is the engine's to judge.
func readOrder(f *web.Form, customer string) *domain.PlaceOrder {
	ask := &domain.PlaceOrder{
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
	}
	ask.CashAmount = Money(f, "cash_amount", f.OptionalDecimal("cash_amount", MoneyRules()...))
	if !ask.Type.Valid() {
		return ask // nothing can be said of what goes with it
	}
	checkSize(f, ask.Type)
	checkPrices(f, ask)
	checkTime(f, ask)
	return ask
}

// Money returns the amount of money that a decimal stands for.
func Money(f *web.Form, name string, d web.Optional[fixed.Decimal]) fixed.Money {
	m, ok := fixed.MoneyOf(d.Value)
	if !ok {
		f.Fault(name, web.TooManyDigits, "the value has too many digits")
	}
	return m
}

func checkSize(f *web.Form, t order.Type) {
	amount, cash := f.Has("amount"), f.Has("cash_amount")
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
func checkPrices(f *web.Form, ask *domain.PlaceOrder) {
	t := ask.Type
	single, combo := t.Conditional() && t != order.TakeProfitStopLoss, t == order.TakeProfitStopLoss
	for _, p := range []struct {
		name   string
		needed bool
	}{
		{"limit_price", t.Limited()}, {"trigger_price", single}, {"stop_loss_price", combo}, {"take_profit_price", combo},
	} {
		switch has := f.Has(p.name); {
		case p.needed && !has:
			f.Fault(p.name, web.Required, "the field is required for "+string(t)+" orders")
		case !p.needed && has:
			f.Fault(p.name, notAllowed, "the field does not go with "+string(t)+" orders")
		}
	}
	switch {
	case ask.TriggerPriceType == "":
	case t.Trigger() == "":
		f.Fault("trigger_price_type", notAllowed, "the field does not go with "+string(t)+" orders")
	case ask.TriggerPriceType != t.Trigger():
		f.Fault("trigger_price_type", web.InvalidValue, string(t)+" orders are triggered by "+string(t.Trigger()))
	}
}

// checkTime judges how long the order is to stay, and what may only rest.
func checkTime(f *web.Form, ask *domain.PlaceOrder) {
	if f.Has("time_in_force") && ask.TimeInForce == "" {
		return // it has its fault already
	}
	cash := f.Has("cash_amount") && !ask.Type.Conditional()
	tif := timeInForce(ask, cash)
	switch {
	case cash && tif != order.IOC:
		f.Fault("time_in_force", notAllowed, "orders sized by cash_amount must be IOC")
	case ask.Type == order.Market && tif.Rests():
		f.Fault("time_in_force", notAllowed, "market orders must be IOC or FOK")
	}
	expires := f.Has("expire_time")
	switch {
	case tif == order.GTD && !expires:
		f.Fault("expire_time", web.Required, "the field is required with GTD")
	case tif != order.GTD && expires:
		f.Fault("expire_time", notAllowed, "the field goes with GTD only")
	}
	switch {
	case !ask.PostOnly:
	case !ask.Type.Limited() || cash:
		f.Fault("post_only", notAllowed, "only limit orders that may rest can be post_only")
	case !tif.Rests():
		f.Fault("post_only", notAllowed, "post_only orders must be GTC or GTD")
	}
}

func timeInForce(ask *domain.PlaceOrder, cash bool) order.TimeInForce {
	if ask.TimeInForce != "" {
		return ask.TimeInForce
	}
	return ask.Type.DefaultTimeInForce(cash)
}

// normalOrder is an order entry with its defaults spelled out and its numbers trimmed: a client which writes "1" one
// time and "1.0" the next means one order. Fingerprints in the log are made of its JSON form, so its members never
// change; a new one is left out where it is empty.
type normalOrder struct {
	CustomerCode     string        `json:"customer_code"`
	Symbol           string        `json:"symbol"`
	Action           string        `json:"action"`
	Type             string        `json:"type"`
	Amount           fixed.Decimal `json:"amount"`
	CashAmount       fixed.Money   `json:"cash_amount"`
	LimitPrice       fixed.Decimal `json:"limit_price"`
	TriggerPrice     fixed.Decimal `json:"trigger_price"`
	StopLossPrice    fixed.Decimal `json:"stop_loss_price"`
	TakeProfitPrice  fixed.Decimal `json:"take_profit_price"`
	TriggerPriceType string        `json:"trigger_price_type"`
	TimeInForce      string        `json:"time_in_force"`
	ExpireTime       decide.Time   `json:"expire_time"`
	PostOnly         bool          `json:"post_only"`
	ReduceOnly       bool          `json:"reduce_only"`
	Leverage         int           `json:"leverage"`
	ReferenceID      string        `json:"reference_id"`
}

func normal(ask *domain.PlaceOrder) normalOrder {
	return normalOrder{ask.CustomerCode, ask.Symbol, string(ask.Action), string(ask.Type), ask.Amount.Trim(), ask.CashAmount,
		ask.LimitPrice.Trim(), ask.TriggerPrice.Trim(), ask.StopLossPrice.Trim(), ask.TakeProfitPrice.Trim(),
		string(ask.Type.Trigger()), string(timeInForce(ask, ask.CashAmount != 0)), ask.ExpireTime, ask.PostOnly, ask.ReduceOnly,
		ask.Leverage, ask.ReferenceID}
}

// Fingerprint is the hash of all that a request says, in a form of which two requests for the same thing have the same.
func Fingerprint(normal any) string {
	text, err := json.Marshal(normal)
	if err != nil {
		panic("trading: a command has no JSON form: " + err.Error()) // plain fields only
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// readAmendment reads the changes to an order.
func readAmendment(f *web.Form) *domain.AmendOrder {
	ask := &domain.AmendOrder{
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
			return ask
		}
	}
	f.Fault("", web.Required, "at least one of "+strings.Join(names, ", ")+" is required")
	return ask
}
