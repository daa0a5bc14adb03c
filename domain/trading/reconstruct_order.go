package trading

import (
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fastjson"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/order"
)

// orderOf returns the order that a command about one order is about, after the record. Its event is the first event of an
// order: those of the makers follow.
func orderOf(events []decide.Event) *order.Order {
	for _, e := range events {
		if o, ok := e.(OrderEvent); ok {
			return o.After()
		}
	}
	return &order.Order{}
}

// placeOrderInput is the input of PlaceOrder.
type placeOrderInput struct {
	// Amount is the amount of an order that was reduced to the position it closes.
	Amount *fixed.Decimal `json:"amount,omitempty"`
}

// NewInput implements decide.Partial.
func (*PlaceOrder) NewInput() any { return new(placeOrderInput) }

// Lacks implements decide.Partial. A leverage that was in force already does not change the decision.
func (*PlaceOrder) Lacks(r *decide.Evidence) bool { return orderOf(r.Events).ReduceOnly }

func (p *PlaceOrder) input(events []decide.Event) any {
	if !p.ReduceOnly || p.CashAmount != 0 || p.Amount.Cmp(orderOf(events).Amount) == 0 {
		return nil
	}
	return &placeOrderInput{Amount: &p.Amount}
}

// AppendJSON implements decide.InputAppender.
func (in *placeOrderInput) AppendJSON(b []byte) ([]byte, error) {
	w := fastjson.Writer{Bytes: append(b, '{')}
	writeAmount(&w, in.Amount)
	w.Raw("}")
	return w.Bytes, w.Err
}

func writeAmount(w *fastjson.Writer, amount *fixed.Decimal) {
	if amount != nil {
		w.Raw(`"amount":`)
		fastjson.Text(w, *amount)
	}
}

// leverageIn returns the leverage that the events of an order entry carry, or 0.
func leverageIn(events []decide.Event) int {
	for _, e := range events {
		switch e := e.(type) {
		case *LeverageSet:
			return e.Leverage
		case *OrderRejected:
			return e.Leverage
		case OrderEvent:
			return 0
		}
	}
	return 0
}

// Reconstruct implements decide.Payload. An order that came with the leverage in force is decided like one without.
func (p *PlaceOrder) Reconstruct(r *decide.Evidence) error {
	var in placeOrderInput
	if err := r.ReadInput(&in); err != nil {
		return err
	}
	o := orderOf(r.Events)
	*p = PlaceOrder{CustomerCode: o.CustomerCode, Symbol: o.Symbol, Action: o.Action, Type: o.Type, CashAmount: o.CashAmount,
		LimitPrice: o.LimitPrice, TriggerPrice: o.TriggerPrice, StopLossPrice: o.StopLossPrice, TakeProfitPrice: o.TakeProfitPrice,
		TimeInForce: o.TimeInForce, ExpireTime: o.ExpireTime, PostOnly: o.PostOnly, ReduceOnly: o.ReduceOnly,
		ReferenceID: givenName(o.ReferenceID, o.Code), Leverage: leverageIn(r.Events)}
	switch {
	case in.Amount != nil:
		p.Amount = *in.Amount
	case p.CashAmount == 0:
		p.Amount = o.Amount
	}
	return nil
}

// amendOrderInput is the input of AmendOrder.
type amendOrderInput struct {
	// Omitted lists the members that the order has and that the command did not give.
	Omitted []string `json:"omitted,omitempty"`
	// Amount is the amount that the command gave if the order's was then reduced to the position it closes.
	Amount *fixed.Decimal `json:"amount,omitempty"`
}

// NewInput implements decide.Partial.
func (*AmendOrder) NewInput() any { return new(amendOrderInput) }

// Lacks implements decide.Partial. A term that the command did not give may have become invalid since it was given.
func (*AmendOrder) Lacks(*decide.Evidence) bool { return true }

func (p *AmendOrder) input(events []decide.Event) any {
	var in amendOrderInput
	all := amendmentTo(orderOf(events))
	for _, c := range changes {
		if c.IsZero(p) && !c.IsZero(&all) {
			in.Omitted = append(in.Omitted, c.Name())
		}
	}
	if p.Amount != nil && p.Amount.Cmp(*all.Amount) != 0 {
		in.Amount = p.Amount
	}
	if in.Omitted == nil && in.Amount == nil {
		return nil
	}
	return &in
}

// AppendJSON implements decide.InputAppender.
func (in *amendOrderInput) AppendJSON(b []byte) ([]byte, error) {
	w := fastjson.Writer{Bytes: append(b, '{')}
	if len(in.Omitted) > 0 {
		w.Raw(`"omitted":[`)
		for n, name := range in.Omitted {
			if n > 0 {
				w.Raw(",")
			}
			w.String(name)
		}
		w.Raw("]")
		if in.Amount != nil {
			w.Raw(",")
		}
	}
	writeAmount(&w, in.Amount)
	w.Raw("}")
	return w.Bytes, w.Err
}

// Reconstruct implements decide.Payload.
func (p *AmendOrder) Reconstruct(r *decide.Evidence) error {
	var in amendOrderInput
	if err := r.ReadInput(&in); err != nil {
		return err
	}
	*p = amendmentTo(orderOf(r.Events))
	for _, c := range changes {
		if slices.Contains(in.Omitted, c.Name()) {
			c.Clear(p)
		}
	}
	if in.Amount != nil {
		p.Amount = in.Amount
	}
	return nil
}

// amendmentTo returns the command that gives an order all the terms that it has. A trigger that has fired cannot be amended.
func amendmentTo(o *order.Order) AmendOrder {
	p := AmendOrder{CustomerCode: o.CustomerCode, OrderCode: o.Code, Amount: &o.Amount, LimitPrice: present(&o.LimitPrice),
		ExpireTime: present(&o.ExpireTime)}
	if o.Triggered == 0 {
		p.TriggerPrice, p.StopLossPrice, p.TakeProfitPrice = present(&o.TriggerPrice), present(&o.StopLossPrice), present(&o.TakeProfitPrice)
	}
	return p
}

// present returns nil if v is zero.
func present[T comparable](v *T) *T {
	var zero T
	if *v == zero {
		return nil
	}
	return v
}

// Reconstruct implements decide.Payload. A cancellation by name and one by code are the same decision.
func (p *CancelOrder) Reconstruct(r *decide.Evidence) error {
	o := orderOf(r.Events)
	p.CustomerCode, p.OrderCode = o.CustomerCode, o.Code
	return nil
}

// Reconstruct implements decide.Payload.
func (p *CancelAll) Reconstruct(r *decide.Evidence) error {
	if e, ok := decide.EventOf[*WorkStarted](r); ok {
		p.CustomerCode, p.Symbol = e.CustomerCode, e.Symbol
	}
	if e, ok := decide.EventOf[*WorkFinished](r); ok {
		p.CustomerCode, p.Symbol = e.CustomerCode, e.Symbol
	}
	return nil
}

// Reconstruct implements decide.Payload.
func (p *SetCancelAllAfter) Reconstruct(r *decide.Evidence) error {
	if e, ok := decide.EventOf[*CancelAllAfterSet](r); ok {
		p.CustomerCode, p.TimeoutSeconds = e.CustomerCode, e.TimeoutSeconds
	}
	return nil
}
