package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/form"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/pack"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/validation"
)

// PlaceOrder places an order.
//
// Events: leverage.set if Leverage is set and takes effect; one event for this order (order.opened,
// order.partially_filled, order.filled, order.canceled, or order.rejected with outcome rejected); trade.executed and
// the order events of the makers; work.started if steps continue the order (the decision is then Pending). Repeated:
// same ReferenceID, same fingerprint; the repeated record is the last one that changed the order.
//
// Refusals: NotFound UNKNOWN_CUSTOMER; Conflict REFERENCE_ID_REUSED; TooLarge RECORD_TOO_LARGE; Invalid UNKNOWN_SYMBOL and
// every code of CheckOrder.
type PlaceOrder struct {
	CustomerCode     string
	Symbol           string
	Action           order.Action
	Type             order.Type
	Amount           fixed.Decimal          `json:",omitzero"` // contracts; zero if CashAmount is set
	CashAmount       fixed.Money            `json:",omitzero"` // quote currency; market and limit orders only
	LimitPrice       fixed.Decimal          `json:",omitzero"`
	TriggerPrice     fixed.Decimal          `json:",omitzero"`
	StopLossPrice    fixed.Decimal          `json:",omitzero"`
	TakeProfitPrice  fixed.Decimal          `json:",omitzero"`
	TriggerPriceType order.TriggerPriceType `json:",omitzero"` // "" for that of the order type
	TimeInForce      order.TimeInForce      `json:",omitzero"` // "" for the default of the order type
	ExpireTime       scalar.Time            `json:",omitzero"` // GTD only
	PostOnly         bool                   `json:",omitzero"`
	ReduceOnly       bool                   `json:",omitzero"`
	ReferenceID      string                 `json:",omitzero"` // "" for the order's code
	Leverage         int                    `json:",omitzero"` // 1–13, or 0 for no change
}

// CommandType returns the type of the command.
func (*PlaceOrder) CommandType() string { return CommandPlaceOrder }

// Account returns the code of the customer.
func (p *PlaceOrder) Account() string { return p.CustomerCode }

// PlaceOrderForm returns the request of an order entry. The fingerprints in the log are computed from its canonical form, so
// a new member must be Added.
func PlaceOrderForm() *form.Object[PlaceOrder] { return placeOrderForm }

// FormHash returns the hash of PlaceOrderForm.
func (*PlaceOrder) FormHash() uint64 { return placeOrderForm.Hash() }

// Symbols is the syntax of symbols.
var Symbols = form.Characters{Limit: 32, Extra: "_"}

var placeOrderForm = form.New(CommandPlaceOrder,
	form.Route("customer_code", func(p *PlaceOrder) *string { return &p.CustomerCode }),
	form.Required("symbol", func(p *PlaceOrder) *string { return &p.Symbol }, form.Text(Symbols)),
	form.Required("action", func(p *PlaceOrder) *order.Action { return &p.Action }, form.Words(order.Buy, order.Sell)),
	form.Required("type", func(p *PlaceOrder) *order.Type { return &p.Type }, form.Words(order.Market, order.Limit, order.StopLoss, order.StopLossLimit,
		order.TakeProfit, order.TakeProfitLimit, order.TakeProfitStopLoss)),
	form.Optional("amount", func(p *PlaceOrder) *fixed.Decimal { return &p.Amount }, form.PositiveDecimal()),
	form.Optional("limit_price", func(p *PlaceOrder) *fixed.Decimal { return &p.LimitPrice }, form.PositiveDecimal()),
	form.Optional("trigger_price", func(p *PlaceOrder) *fixed.Decimal { return &p.TriggerPrice }, form.PositiveDecimal()),
	form.Optional("stop_loss_price", func(p *PlaceOrder) *fixed.Decimal { return &p.StopLossPrice }, form.PositiveDecimal()),
	form.Optional("take_profit_price", func(p *PlaceOrder) *fixed.Decimal { return &p.TakeProfitPrice }, form.PositiveDecimal()),
	form.Optional("trigger_price_type", func(p *PlaceOrder) *order.TriggerPriceType { return &p.TriggerPriceType }, form.Words(order.TradePrice, order.MarkPrice)).
		Default(func(p *PlaceOrder) string { return string(p.Type.Trigger()) }),
	form.Optional("time_in_force", func(p *PlaceOrder) *order.TimeInForce { return &p.TimeInForce }, form.Words(order.GTC, order.IOC, order.FOK, order.GTD)).
		Default(func(p *PlaceOrder) string { return string(p.timeInForce()) }),
	form.Optional("expire_time", func(p *PlaceOrder) *scalar.Time { return &p.ExpireTime }, form.Time()),
	form.Optional("post_only", func(p *PlaceOrder) *bool { return &p.PostOnly }, form.Bool()),
	form.Optional("reduce_only", func(p *PlaceOrder) *bool { return &p.ReduceOnly }, form.Bool()),
	form.Optional("leverage", func(p *PlaceOrder) *int { return &p.Leverage }, form.Leverage(MaxLeverage)),
	form.Optional("reference_id", func(p *PlaceOrder) *string { return &p.ReferenceID }, form.Text(form.Reference)),
	form.Optional("cash_amount", func(p *PlaceOrder) *fixed.Money { return &p.CashAmount }, form.Money()).CanonicalAfter("amount"),
	form.Check(func(p *PlaceOrder, given form.Given, errs *validation.Errors) {
		if !p.Type.Valid() {
			return // without a type, combinations cannot be checked
		}
		entry := p.shape()
		entry.Given |= order.FieldsOf(given.Has)
		entry.Check(errs)
	}),
)

// shape returns the parts of the order that can be checked without the contract.
func (p *PlaceOrder) shape() order.Entry {
	e := order.Entry{Type: p.Type, TriggerPriceType: p.TriggerPriceType, TimeInForce: p.TimeInForce, PostOnly: p.PostOnly}
	e.Given = given(!p.Amount.IsZero(), order.FieldAmount) | given(p.CashAmount != 0, order.FieldCashAmount) |
		given(!p.LimitPrice.IsZero(), order.FieldLimitPrice) | given(!p.TriggerPrice.IsZero(), order.FieldTriggerPrice) |
		given(!p.StopLossPrice.IsZero(), order.FieldStopLossPrice) | given(!p.TakeProfitPrice.IsZero(), order.FieldTakeProfitPrice) |
		given(p.ExpireTime != 0, order.FieldExpireTime)
	return e
}

// given returns the field if it is present, and otherwise no field.
func given(is bool, field order.Fields) order.Fields {
	if is {
		return field
	}
	return 0
}

func (p *PlaceOrder) timeInForce() order.TimeInForce {
	if p.TimeInForce == "" {
		return p.Type.DefaultTimeInForce(p.CashAmount != 0)
	}
	return p.TimeInForce
}

// instruction is the part of a PlaceOrder that a live order keeps. No record changes it.
type instruction struct {
	cash       fixed.Money // cash amount of a cash order, which is live only while it sweeps; 0 for other orders
	reference  string      // the client's name for the order; "" for its code
	kind       order.Type
	tif        order.TimeInForce
	postOnly   bool
	reduceOnly bool
}

func (p *PlaceOrder) instruction() instruction {
	return instruction{cash: p.CashAmount, reference: p.ReferenceID, kind: p.Type, tif: p.timeInForce(), postOnly: p.PostOnly, reduceOnly: p.ReduceOnly}
}

// instructionOf returns the instruction of an order in the log, without its reference.
func instructionOf(o *order.Order) instruction {
	return instruction{cash: o.CashAmount, kind: intern(o.Type), tif: intern(o.TimeInForce), postOnly: o.PostOnly, reduceOnly: o.ReduceOnly}
}

// show sets the fields of an order view, except for the reference.
func (i *instruction) show(out *order.Order) {
	out.CashAmount = i.cash
	out.Type = i.kind
	out.TimeInForce = i.tif
	out.PostOnly = i.postOnly
	out.ReduceOnly = i.reduceOnly
}

// Flags for the optional parts of the instruction of a saved order. A new one needs no new codecVersion: snapshots
// without it stay valid, and a build that does not know it refuses the snapshot (savedKnown).
const (
	savedCash       = 1 << 0
	savedReference  = 1 << 4
	savedPostOnly   = 1 << 6
	savedReduceOnly = 1 << 7

	savedInstruction = savedCash | savedReference | savedPostOnly | savedReduceOnly
)

// saved returns the flags of a saved order that the instruction determines.
func (i *instruction) saved() uint64 {
	return flag(savedCash, i.cash != 0) | flag(savedReference, i.reference != "") | flag(savedPostOnly, i.postOnly) |
		flag(savedReduceOnly, i.reduceOnly)
}

// code visits what the flags announce of the instruction, except for the cash amount.
func (i *instruction) code(c *pack.Coder, flags uint64) {
	if c.Reading() {
		i.postOnly, i.reduceOnly = flags&savedPostOnly != 0, flags&savedReduceOnly != 0
	}
	if flags&savedReference != 0 {
		pack.String(c, &i.reference)
	}
}
