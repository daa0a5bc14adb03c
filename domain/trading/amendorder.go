package trading

import (
	"slices"
	"strings"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/form"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/validation"
)

// AmendOrder changes a live order, identified by its code or by the client's name for it. A nil field changes nothing.
//
// Events: one event for the order (order.amended, or the result of its trading), trade.executed, the events of the
// makers' orders, work.started. Refusals: NotFound UNKNOWN_CUSTOMER, UNKNOWN_ORDER; Conflict ORDER_NOT_LIVE,
// ORDER_NOT_AMENDABLE; Invalid NOTHING_TO_AMEND, AMOUNT_NOT_ABOVE_FILLED and the codes of CheckOrder; Unacceptable with
// an order.Reason in upper case (POST_ONLY_WOULD_CROSS, INSUFFICIENT_MARGIN, PRICE_OUT_OF_BAND, INSTRUMENT_HALTED,
// REDUCE_ONLY_INVALID, TRIGGER_WOULD_FIRE_IMMEDIATELY): the order keeps its terms.
type AmendOrder struct {
	CustomerCode    string
	OrderCode       scalar.ID
	ReferenceID     string         // instead of the code
	Amount          *fixed.Decimal // the new total
	LimitPrice      *fixed.Decimal
	TriggerPrice    *fixed.Decimal
	StopLossPrice   *fixed.Decimal
	TakeProfitPrice *fixed.Decimal
	ExpireTime      *scalar.Time
}

// CommandType returns the type of the command.
func (*AmendOrder) CommandType() string { return CommandAmendOrder }

// Account returns the code of the customer.
func (p *AmendOrder) Account() string { return p.CustomerCode }

// AmendOrderForm returns the request of an amendment to an order that the route identifies.
func AmendOrderForm() *form.Object[AmendOrder] { return amendOrderForm }

// AmendOneForm returns the request of an amendment that identifies its order itself, as in a batch.
func AmendOneForm() *form.Object[AmendOrder] { return amendOneForm }

// FormHash returns the hash of AmendOneForm, which has the members of AmendOrderForm.
func (*AmendOrder) FormHash() uint64 { return amendOneForm.Hash() }

// CancelOneForm returns the request of a cancellation that identifies its order itself, as in a batch.
func CancelOneForm() *form.Object[CancelOrder] { return cancelOneForm }

var (
	amendOrderForm = form.New(CommandAmendOrder, append(changes, someChange)...)
	amendOneForm   = form.New(CommandAmendOrder+" of one", slices.Concat(
		orderName(func(p *AmendOrder) (*scalar.ID, *string) { return &p.OrderCode, &p.ReferenceID }), changes, []form.Part[AmendOrder]{someChange})...)
	cancelOneForm = form.New(CommandCancelOrder+" of one", orderName(func(p *CancelOrder) (*scalar.ID, *string) { return &p.OrderCode, &p.ReferenceID })...)
)

// changes are the members of an amendment.
var changes = []form.Part[AmendOrder]{
	form.Pointer("amount", func(p *AmendOrder) **fixed.Decimal { return &p.Amount }, form.PositiveDecimal()),
	form.Pointer("limit_price", func(p *AmendOrder) **fixed.Decimal { return &p.LimitPrice }, form.PositiveDecimal()),
	form.Pointer("trigger_price", func(p *AmendOrder) **fixed.Decimal { return &p.TriggerPrice }, form.PositiveDecimal()),
	form.Pointer("stop_loss_price", func(p *AmendOrder) **fixed.Decimal { return &p.StopLossPrice }, form.PositiveDecimal()),
	form.Pointer("take_profit_price", func(p *AmendOrder) **fixed.Decimal { return &p.TakeProfitPrice }, form.PositiveDecimal()),
	form.Pointer("expire_time", func(p *AmendOrder) **scalar.Time { return &p.ExpireTime }, form.Time()),
}

// someChange checks that an amendment changes something.
var someChange = form.Check(func(_ *AmendOrder, given form.Given, errs *validation.Errors) {
	if names := form.Names(changes); !slices.ContainsFunc(names, given.Has) {
		errs.AddCode("", validation.Required, "at least one of %s is required", strings.Join(names, ", "))
	}
})

// orderName returns the members that identify an order: by its code, or by the client's name for it.
func orderName[T any](at func(*T) (code *scalar.ID, reference *string)) []form.Part[T] {
	return []form.Part[T]{
		form.Optional("order_code", func(p *T) *scalar.ID { code, _ := at(p); return code }, form.ID()),
		form.Optional("reference_id", func(p *T) *string { _, reference := at(p); return reference }, form.Text(form.Reference)),
		form.Check(func(_ *T, given form.Given, errs *validation.Errors) {
			if given.Has("order_code") == given.Has("reference_id") {
				errs.AddCode("", validation.Required, "one of order_code and reference_id is required, and only one")
			}
		}),
	}
}
