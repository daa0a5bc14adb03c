package order

import "github.com/perpetua-exchange/perpetua/domain/validation"

// Fields is a set of fields of an order entry that may not be combined freely.
type Fields uint16

// The fields.
const (
	FieldAmount Fields = 1 << iota
	FieldCashAmount
	FieldLimitPrice
	FieldTriggerPrice
	FieldStopLossPrice
	FieldTakeProfitPrice
	FieldTimeInForce
	FieldExpireTime
)

// shape has the rules for the orders of a type. Entry and amendment both use it, so each rule is stated once.
type shape struct {
	of      Type
	prices  Fields           // the prices that the type requires; it permits no others
	trigger TriggerPriceType // the kind of price that triggers it; "" for none
	cash    bool             // may be sized by cash_amount, and is then IOC
	rests   bool             // may stay in the book, and may be post_only
	atOnce  bool             // must be IOC or FOK
	market  bool             // becomes a market order when it fires: nothing can rest, so it cannot be GTC
}

var shapes = [...]shape{
	{of: Limit, prices: FieldLimitPrice, cash: true, rests: true},
	{of: Market, cash: true, atOnce: true},
	{of: StopLoss, prices: FieldTriggerPrice, trigger: TradePrice, market: true},
	{of: StopLossLimit, prices: FieldTriggerPrice | FieldLimitPrice, trigger: TradePrice, rests: true},
	{of: TakeProfit, prices: FieldTriggerPrice, trigger: TradePrice, market: true},
	{of: TakeProfitLimit, prices: FieldTriggerPrice | FieldLimitPrice, trigger: TradePrice, rests: true},
	{of: TakeProfitStopLoss, prices: FieldStopLossPrice | FieldTakeProfitPrice, trigger: MarkPrice, market: true},
}

// shapeOf returns the shape of a type, or nil if clients may not submit the type.
func shapeOf(t Type) *shape {
	for i := range shapes {
		if shapes[i].of == t {
			return &shapes[i]
		}
	}
	return nil
}

// prices has the price fields and their names, in the order in which errors are reported.
var prices = [...]struct {
	field Fields
	name  string
}{
	{FieldLimitPrice, "limit_price"}, {FieldTriggerPrice, "trigger_price"},
	{FieldStopLossPrice, "stop_loss_price"}, {FieldTakeProfitPrice, "take_profit_price"},
}

// FieldsOf returns the fields of a request, given a function that reports whether the request has a name.
func FieldsOf(has func(name string) bool) Fields {
	var given Fields
	for i, name := range [...]string{"amount", "cash_amount", "limit_price", "trigger_price", "stop_loss_price", "take_profit_price",
		"time_in_force", "expire_time"} {
		if has(name) {
			given |= 1 << i
		}
	}
	return given
}

const allPrices = FieldLimitPrice | FieldTriggerPrice | FieldStopLossPrice | FieldTakeProfitPrice

// Has reports whether orders of the type have the price field.
func (t Type) Has(price Fields) bool {
	s := shapeOf(t)
	return s != nil && s.prices&price != 0
}

// Entry is the combination of fields in an order entry: the part that can be checked without the instrument and the
// figures.
type Entry struct {
	Type             Type
	TriggerPriceType TriggerPriceType // "" for that of the order type
	TimeInForce      TimeInForce      // "" for the default; with FieldTimeInForce given, for an invalid value
	PostOnly         bool
	Given            Fields // the fields that the entry has, valid or not
}

// Check adds an error for each field that is missing or may not be combined. The type must be Valid.
func (e *Entry) Check(errs *validation.Errors) {
	s := shapeOf(e.Type)
	e.checkSize(errs, s)
	e.checkPrices(errs, s)
	e.checkTime(errs, s)
}

func (e *Entry) has(f Fields) bool { return e.Given&f != 0 }

// checkSize checks that the entry has exactly one of amount and cash_amount.
func (e *Entry) checkSize(to *validation.Errors, s *shape) {
	amount, cash := e.has(FieldAmount), e.has(FieldCashAmount)
	switch {
	case !s.cash && cash:
		to.AddCode("cash_amount", validation.NotAllowed, "only market and limit orders can be sized by cash_amount")
		if !amount {
			to.AddCode("amount", validation.Required, "the field is required")
		}
	case !s.cash && !amount:
		to.AddCode("amount", validation.Required, "the field is required")
	case amount && cash:
		to.AddCode("cash_amount", validation.NotAllowed, "only one of amount and cash_amount may be given")
	case !amount && !cash:
		to.AddCode("amount", validation.Required, "one of amount and cash_amount is required")
	}
}

// checkPrices checks that the entry has the prices that the type requires, and no others.
func (e *Entry) checkPrices(to *validation.Errors, s *shape) {
	for _, p := range prices {
		if e.Given&allPrices == s.prices {
			break // the usual case
		}
		switch needed, given := s.prices&p.field != 0, e.has(p.field); {
		case needed && !given:
			to.AddCode(p.name, validation.Required, "the field is required for %s orders", e.Type)
		case !needed && given:
			to.AddCode(p.name, validation.NotAllowed, "the field does not go with %s orders", e.Type)
		}
	}
	switch {
	case e.TriggerPriceType == "" || e.TriggerPriceType == s.trigger:
	case s.trigger == "":
		to.AddCode("trigger_price_type", validation.NotAllowed, "the field does not go with %s orders", e.Type)
	default:
		to.AddCode("trigger_price_type", validation.InvalidValue, "%s orders are triggered by %s", e.Type, s.trigger)
	}
}

// checkTime checks the time in force, the expiry time and post_only.
func (e *Entry) checkTime(to *validation.Errors, s *shape) {
	tif, cash := e.TimeInForce, s.cash && e.has(FieldCashAmount)
	switch {
	case tif == "" && e.has(FieldTimeInForce):
		return
	case tif == "":
		tif = e.Type.DefaultTimeInForce(cash)
	case cash && tif != IOC:
		to.AddCode("time_in_force", validation.NotAllowed, "orders sized by cash_amount must be IOC")
	case s.atOnce && tif.Rests():
		to.AddCode("time_in_force", validation.NotAllowed, "%s orders must be IOC or FOK", e.Type)
	}
	if s.market && tif == GTC { // GTD limits the wait for its price
		to.AddCode("time_in_force", validation.NotAllowed, "%s orders must be IOC, FOK or GTD: they never rest in the book", e.Type)
	}
	switch expires := e.has(FieldExpireTime); {
	case tif == GTD && !expires:
		to.AddCode("expire_time", validation.Required, "the field is required with GTD")
	case tif != GTD && expires:
		to.AddCode("expire_time", validation.NotAllowed, "the field goes with GTD only")
	}
	switch {
	case !e.PostOnly:
	case !s.rests || cash:
		to.AddCode("post_only", validation.NotAllowed, "only limit orders that may rest can be post_only")
	case !tif.Rests():
		to.AddCode("post_only", validation.NotAllowed, "post_only orders must be GTC or GTD")
	}
}
