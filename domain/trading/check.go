package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/form"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/validation"
)

// MaxLeverage is the highest leverage that an order or a margin profile may set, as a multiple of the equity: it stands for an
// initial margin of 1/MaxLeverage. It is also an account's default. The trading interface sets it ("integer 1 to 13"); an
// instrument's own MaxLeverage may only lower it.
const MaxLeverage = 13

// Limits of the figures in a request.
const (
	maxNotional   = fixed.Money(4e18)              // 40 billion, for an instrument's open interest and for an account's orders
	latest        = scalar.Time(4133980800_000000) // 2101-01-01
	maxNameLength = 64
)

// refuseFirst returns the first error as Decide's answer, or nil.
func refuseFirst(errs []validation.FieldError) error {
	if len(errs) == 0 {
		return nil
	}
	e := &errs[0]
	return &decide.Refusal{Kind: decide.Invalid, Code: e.Code, Field: e.Path.String(), Message: e.Message}
}

// CheckOrder returns all errors of an order that do not depend on the state of the market, or none. Decide refuses the
// order with the first error; a handler that has the contract can report every one.
func CheckOrder(c *market.Contract, payload *PlaceOrder, now scalar.Time) []validation.FieldError {
	var f validation.Errors
	if !payload.Action.Valid() {
		f.AddCode("action", "INVALID_ACTION", "action must be buy or sell")
	}
	if !payload.Type.Valid() {
		f.AddCode("type", "INVALID_ORDER_TYPE", "type must be market, limit, stop_loss, stop_loss_limit, take_profit, take_profit_limit or take_profit_stop_loss")
		return f.List
	}
	entry := payload.shape()
	if payload.TimeInForce != "" && !payload.TimeInForce.Valid() {
		f.AddCode("time_in_force", validation.InvalidValue, "time_in_force must be GTC, IOC, FOK or GTD")
		entry.TimeInForce, entry.Given = "", entry.Given|order.FieldTimeInForce
	}
	entry.Check(&f)
	payload.checkFigures(&f, c, now)
	if payload.ReferenceID != "" && !validReference(payload.ReferenceID) {
		f.AddCode("reference_id", "INVALID_REFERENCE_ID", "reference_id must be 1 to 64 of A-Z a-z 0-9 . _ : -")
	}
	checkLeverage(&f, c, payload.Leverage)
	return f.List
}

// checkFigures checks the figures of the fields that the order has.
func (p *PlaceOrder) checkFigures(f *validation.Errors, c *market.Contract, now scalar.Time) {
	switch {
	case p.CashAmount < 0:
		f.AddCode("cash_amount", "INVALID_CASH_AMOUNT", "cash_amount must be positive")
	case p.CashAmount > maxNotional:
		f.AddCode("cash_amount", "INVALID_CASH_AMOUNT", "cash_amount must not be above %s", maxNotional)
	case p.CashAmount == 0 && !p.Amount.IsZero():
		checkAmount(f, c, p.Amount)
	}
	checkPriceOf(f, c, p.Type, order.FieldLimitPrice, "limit_price", p.LimitPrice)
	checkPriceOf(f, c, p.Type, order.FieldTriggerPrice, "trigger_price", p.TriggerPrice)
	checkPriceOf(f, c, p.Type, order.FieldStopLossPrice, "stop_loss_price", p.StopLossPrice)
	checkPriceOf(f, c, p.Type, order.FieldTakeProfitPrice, "take_profit_price", p.TakeProfitPrice)
	if p.ExpireTime != 0 && p.timeInForce() == order.GTD {
		checkExpiry(f, p.ExpireTime, now)
	}
}

func checkAmount(f *validation.Errors, c *market.Contract, amount fixed.Decimal) {
	steps, whole := c.Steps(amount)
	switch {
	case amount.Sign() <= 0:
		f.AddCode("amount", "INVALID_AMOUNT", "amount must be positive")
	case amount.Cmp(c.MinAmount) < 0:
		f.AddCode("amount", "AMOUNT_BELOW_MINIMUM", "amount must be at least %s", c.MinAmount)
	case amount.Cmp(c.MaxAmount) > 0:
		f.AddCode("amount", "AMOUNT_ABOVE_MAXIMUM", "amount must not be above %s", c.MaxAmount)
	case !whole || steps == 0:
		f.AddCode("amount", "INVALID_AMOUNT_STEP", "amount must be a whole multiple of %s", c.AmountStep)
	}
}

func checkPrice(f *validation.Errors, c *market.Contract, field string, price fixed.Decimal) {
	_, whole := c.Ticks(price)
	switch {
	case price.Sign() <= 0:
		f.AddCode(field, "INVALID_PRICE", "%s must be positive", field)
	case price.Cmp(fixed.Decimal{Coef: market.MaxPrice}) >= 0:
		f.AddCode(field, "INVALID_PRICE", "%s must be below %d", field, int64(market.MaxPrice))
	case !whole:
		f.AddCode(field, "INVALID_PRICE_TICK", "%s must be a whole multiple of %s", field, c.PriceTick)
	}
}

// checkPriceOf checks a price that is present and belongs to the type. order.Entry.Check reports missing and
// superfluous prices.
func checkPriceOf(f *validation.Errors, c *market.Contract, of order.Type, field order.Fields, name string, price fixed.Decimal) {
	if !price.IsZero() && of.Has(field) {
		checkPrice(f, c, name, price)
	}
}

func checkExpiry(f *validation.Errors, expires, now scalar.Time) {
	if expires <= now || expires >= latest {
		f.AddCode("expire_time", "INVALID_EXPIRE_TIME", "expire_time must lie in the future, before the year 2101")
	}
}

// validReference reports whether s is 1 to 64 of [A-Za-z0-9._:-].
func validReference(s string) bool { return form.Reference.Allow(s) }

// validCode reports whether s is 1 to 32 of [A-Za-z0-9._-].
func validCode(s string) bool { return form.Characters{Limit: 32, Extra: "._-"}.Allow(s) }
