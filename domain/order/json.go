package order

import (
	"github.com/perpetua-exchange/perpetua/domain/fastjson"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
)

// AppendJSON appends the order's JSON form, exactly as the generic encoder writes it.
func (o *Order) AppendJSON(b []byte) ([]byte, error) {
	w := fastjson.Writer{Bytes: b}
	w.Raw(`{"code":`)
	fastjson.Text(&w, o.Code)
	w.Raw(`,"customer_code":`)
	w.String(o.CustomerCode)
	w.Raw(`,"broker":`)
	w.String(o.Broker)
	w.Raw(`,"symbol":`)
	w.String(o.Symbol)
	w.Raw(`,"action":`)
	w.String(string(o.Action))
	w.Raw(`,"type":`)
	w.String(string(o.Type))
	w.Raw(`,"status":`)
	w.String(string(o.Status))
	w.Raw(`,"amount":`)
	fastjson.Text(&w, o.Amount)
	w.Raw(`,"filled_amount":`)
	fastjson.Text(&w, o.FilledAmount)
	if o.CashAmount != 0 {
		w.Raw(`,"cash_amount":`)
		fastjson.Text(&w, o.CashAmount)
	}
	w.Raw(`,"filled_quote":`)
	fastjson.Text(&w, o.FilledQuote)
	if !o.LimitPrice.IsZero() {
		w.Raw(`,"limit_price":`)
		fastjson.Text(&w, o.LimitPrice)
	}
	o.appendTrigger(&w)
	if !o.AverageFillPrice.IsZero() {
		w.Raw(`,"average_fill_price":`)
		fastjson.Text(&w, o.AverageFillPrice)
	}
	w.Raw(`,"time_in_force":`)
	w.String(string(o.TimeInForce))
	if !o.ExpireTime.IsZero() {
		w.Raw(`,"expire_time":`)
		fastjson.Text(&w, o.ExpireTime)
	}
	w.Raw(`,"post_only":`)
	w.Bool(o.PostOnly)
	w.Raw(`,"reduce_only":`)
	w.Bool(o.ReduceOnly)
	w.Raw(`,"reference_id":`)
	w.String(o.ReferenceID)
	if o.Reason != "" {
		w.Raw(`,"reason":`)
		w.String(string(o.Reason))
	}
	w.Raw(`,"created":`)
	fastjson.Text(&w, o.Created)
	w.Raw(`,"updated":`)
	fastjson.Text(&w, o.Updated)
	w.Raw(`}`)
	return w.Bytes, w.Err
}

// Canonical implements decide.Canonical for the events of orders, which have an order as their data.
func (o *Order) Canonical() bool {
	for _, d := range [...]fixed.Decimal{o.LimitPrice, o.TriggerPrice, o.StopLossPrice, o.TakeProfitPrice, o.AverageFillPrice} {
		if !d.Canonical() {
			return false
		}
	}
	return o.Amount.Readable() && o.FilledAmount.Readable() && o.ExpireTime.Canonical() && o.Triggered.Canonical() && o.Created.Canonical() && o.Updated.Canonical()
}

func (o *Order) appendTrigger(w *fastjson.Writer) {
	if !o.TriggerPrice.IsZero() {
		w.Raw(`,"trigger_price":`)
		fastjson.Text(w, o.TriggerPrice)
	}
	if !o.StopLossPrice.IsZero() {
		w.Raw(`,"stop_loss_price":`)
		fastjson.Text(w, o.StopLossPrice)
	}
	if !o.TakeProfitPrice.IsZero() {
		w.Raw(`,"take_profit_price":`)
		fastjson.Text(w, o.TakeProfitPrice)
	}
	if o.TriggerPriceType != "" {
		w.Raw(`,"trigger_price_type":`)
		w.String(string(o.TriggerPriceType))
	}
	if !o.Triggered.IsZero() {
		w.Raw(`,"triggered":`)
		fastjson.Text(w, o.Triggered)
	}
}

// ParseJSON reads the output of AppendJSON into a zero order. If it returns false, the order is invalid, and the caller
// must use the generic decoder.
func (o *Order) ParseJSON(b []byte) bool {
	r := fastjson.NewReader(b)
	o.ReadJSON(&r)
	return r.Done()
}

// ReadJSON is ParseJSON within a larger value. It implements decide.Reading.
func (o *Order) ReadJSON(r *fastjson.Reader) {
	o.ReadMembers(r)
	r.Raw(`}`)
}

// ReadMembers is ReadJSON without the end of the object, for types with more members than an order.
func (o *Order) ReadMembers(r *fastjson.Reader) {
	r.Raw(`{"code":`)
	o.Code.ReadJSON(r)
	r.Raw(`,"customer_code":`)
	o.CustomerCode = r.String()
	r.Raw(`,"broker":`)
	o.Broker = r.String()
	r.Raw(`,"symbol":`)
	o.Symbol = r.String()
	r.Raw(`,"action":`)
	o.Action = ActionOf(r.Quoted())
	r.Raw(`,"type":`)
	o.Type = typeOf(r.Quoted())
	r.Raw(`,"status":`)
	o.Status = statusOf(r.Quoted())
	r.Raw(`,"amount":`)
	o.Amount.ReadJSON(r)
	r.Raw(`,"filled_amount":`)
	o.FilledAmount.ReadJSON(r)
	if r.Try(`,"cash_amount":`) {
		o.CashAmount.ReadJSON(r)
	}
	r.Raw(`,"filled_quote":`)
	o.FilledQuote.ReadJSON(r)
	if r.Try(`,"limit_price":`) {
		o.LimitPrice.ReadJSON(r)
	}
	o.parseTrigger(r)
	if r.Try(`,"average_fill_price":`) {
		o.AverageFillPrice.ReadJSON(r)
	}
	r.Raw(`,"time_in_force":`)
	o.TimeInForce = timeInForceOf(r.Quoted())
	if r.Try(`,"expire_time":`) {
		o.ExpireTime.ReadJSON(r)
	}
	r.Raw(`,"post_only":`)
	o.PostOnly = r.Bool()
	r.Raw(`,"reduce_only":`)
	o.ReduceOnly = r.Bool()
	r.Raw(`,"reference_id":`)
	o.ReferenceID = r.String()
	if r.Try(`,"reason":`) {
		o.Reason = Reason(r.String())
	}
	r.Raw(`,"created":`)
	o.Created.ReadJSON(r)
	r.Raw(`,"updated":`)
	o.Updated.ReadJSON(r)
}

func (o *Order) parseTrigger(r *fastjson.Reader) {
	if r.Try(`,"trigger_price":`) {
		o.TriggerPrice.ReadJSON(r)
	}
	if r.Try(`,"stop_loss_price":`) {
		o.StopLossPrice.ReadJSON(r)
	}
	if r.Try(`,"take_profit_price":`) {
		o.TakeProfitPrice.ReadJSON(r)
	}
	if r.Try(`,"trigger_price_type":`) {
		o.TriggerPriceType = triggerPriceTypeOf(r.Quoted())
	}
	if r.Try(`,"triggered":`) {
		o.Triggered.ReadJSON(r)
	}
}

// ActionOf converts a word to an action. It allocates no string for a known action.
func ActionOf(b []byte) Action {
	switch string(b) {
	case string(Buy):
		return Buy
	case string(Sell):
		return Sell
	}
	return Action(b)
}

func typeOf(b []byte) Type {
	for i := range shapes {
		if string(shapes[i].of) == string(b) {
			return shapes[i].of
		}
	}
	return Type(b)
}

func triggerPriceTypeOf(b []byte) TriggerPriceType {
	switch string(b) {
	case string(TradePrice):
		return TradePrice
	case string(MarkPrice):
		return MarkPrice
	}
	return TriggerPriceType(b)
}

func statusOf(b []byte) Status {
	switch string(b) {
	case string(Open):
		return Open
	case string(PartiallyFilled):
		return PartiallyFilled
	case string(Filled):
		return Filled
	case string(Canceled):
		return Canceled
	case string(Expired):
		return Expired
	case string(Rejected):
		return Rejected
	}
	return Status(b)
}

func timeInForceOf(b []byte) TimeInForce {
	switch string(b) {
	case string(GTC):
		return GTC
	case string(IOC):
		return IOC
	case string(FOK):
		return FOK
	case string(GTD):
		return GTD
	}
	return TimeInForce(b)
}
