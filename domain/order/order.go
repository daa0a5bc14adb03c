// Package order defines an order: its fields as the trading interface shows them, their values, and which of them may
// be combined. It does not depend on books, margins or money accounts.
//
// An Order is the full state of one order after one record of the journal, so a reader of the journal needs no other
// record to show it. Prices print with the decimals of the instrument's tick, amounts with the decimals of the step.
package order

import (
	"strconv"

	"github.com/perpetua-exchange/perpetua/domain/fastjson"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Order is the full state of an order. Its JSON form is that of the journal, which omits absent nullable fields; the
// interfaces show them as null.
type Order struct {
	Code         scalar.ID `json:"code"`
	CustomerCode string    `json:"customer_code"`
	// Broker is the tenant that the customer belongs to. The interfaces do not show it.
	Broker string `json:"broker"`
	Symbol string `json:"symbol"`
	Action Action `json:"action"`
	Type   Type   `json:"type"`
	Status Status `json:"status"`
	// Amount is the order's size in contracts. For a cash order it equals FilledAmount.
	Amount       fixed.Decimal `json:"amount"`
	FilledAmount fixed.Decimal `json:"filled_amount"`
	// CashAmount is set on cash orders only.
	CashAmount fixed.Money `json:"cash_amount,omitzero"`
	// FilledQuote is the notional of all fills.
	FilledQuote      fixed.Money      `json:"filled_quote"`
	LimitPrice       fixed.Decimal    `json:"limit_price,omitzero"`
	TriggerPrice     fixed.Decimal    `json:"trigger_price,omitzero"`
	StopLossPrice    fixed.Decimal    `json:"stop_loss_price,omitzero"`
	TakeProfitPrice  fixed.Decimal    `json:"take_profit_price,omitzero"`
	TriggerPriceType TriggerPriceType `json:"trigger_price_type,omitzero"`
	// Triggered is when a stop fired. It is absent from the events of logs that follow rules 1.
	Triggered scalar.Time `json:"triggered,omitzero"`
	// AverageFillPrice is rounded half to even at 8 decimals, and has no trailing zeros beyond the decimals of the
	// tick.
	AverageFillPrice fixed.Decimal `json:"average_fill_price,omitzero"`
	TimeInForce      TimeInForce   `json:"time_in_force"`
	ExpireTime       scalar.Time   `json:"expire_time,omitzero"`
	PostOnly         bool          `json:"post_only"`
	ReduceOnly       bool          `json:"reduce_only"`
	// ReferenceID is the client's name for the order, or the order's code.
	ReferenceID string      `json:"reference_id"`
	Reason      Reason      `json:"reason,omitzero"`
	Created     scalar.Time `json:"created"`
	Updated     scalar.Time `json:"updated"`
}

// Named reports whether the client gave the order a name.
func (o *Order) Named() bool {
	var code [36]byte
	text, _ := o.Code.AppendText(code[:0])
	return o.ReferenceID != string(text)
}

// Full returns an order with a value in each member that may be omitted, so that its REST form has every member.
func Full() *Order { return &Order{CashAmount: 1, TriggerPriceType: TradePrice} }

// A jsonForm is one of the JSON forms of an order. They have the same members in the same order, with these differences.
type jsonForm struct {
	broker     bool   // has the broker
	nulls      bool   // members that are absent in the journal's form are null
	kind       string // name of the type
	mechanical bool   // the type is how the order executes
	updated    string // name of the time of the last change
}

var (
	journalForm = jsonForm{broker: true, kind: `,"type":`, updated: `,"updated":`}
	restForm    = jsonForm{nulls: true, kind: `,"type":`, updated: `,"updated":`}
	channelForm = jsonForm{nulls: true, kind: `,"order_type":`, mechanical: true, updated: `,"timestamp":`}
)

// AppendJSON appends the order's JSON form in the journal, exactly as the generic encoder writes it.
func (o *Order) AppendJSON(b []byte) ([]byte, error) {
	w := fastjson.Writer{Bytes: append(b, '{')}
	o.write(&w, &journalForm)
	w.Raw(`}`)
	return w.Bytes, w.Err
}

// AppendREST appends the members of the order's REST form. The sequence is that of the record that last changed it.
func (o *Order) AppendREST(b []byte, sequence int64) ([]byte, error) {
	return o.appendShown(b, &restForm, sequence)
}

// AppendChannel appends the members of the order's form on the orders channel.
func (o *Order) AppendChannel(b []byte, sequence int64) ([]byte, error) {
	return o.appendShown(b, &channelForm, sequence)
}

func (o *Order) appendShown(b []byte, f *jsonForm, sequence int64) ([]byte, error) {
	w := fastjson.Writer{Bytes: b}
	o.write(&w, f)
	w.Raw(`,"sequence":`)
	return strconv.AppendInt(w.Bytes, sequence, 10), w.Err
}

// write writes the members of the order.
func (o *Order) write(w *fastjson.Writer, f *jsonForm) {
	w.Raw(`"code":`)
	fastjson.Text(w, o.Code)
	w.Raw(`,"customer_code":`)
	w.String(o.CustomerCode)
	if f.broker {
		w.Raw(`,"broker":`)
		w.String(o.Broker)
	}
	w.Raw(`,"symbol":`)
	w.String(o.Symbol)
	w.Raw(`,"action":`)
	w.String(string(o.Action))
	w.Raw(f.kind)
	if f.mechanical {
		w.String(string(o.Type.Mechanical()))
	} else {
		w.String(string(o.Type))
	}
	w.Raw(`,"status":`)
	w.String(string(o.Status))
	w.Raw(`,"amount":`)
	fastjson.Text(w, o.Amount)
	w.Raw(`,"filled_amount":`)
	fastjson.Text(w, o.FilledAmount)
	if o.CashAmount != 0 {
		w.Raw(`,"cash_amount":`)
		fastjson.Text(w, o.CashAmount)
	}
	w.Raw(`,"filled_quote":`)
	fastjson.Text(w, o.FilledQuote)
	f.decimal(w, `,"limit_price":`, o.LimitPrice)
	f.decimal(w, `,"trigger_price":`, o.TriggerPrice)
	f.decimal(w, `,"stop_loss_price":`, o.StopLossPrice)
	f.decimal(w, `,"take_profit_price":`, o.TakeProfitPrice)
	if o.TriggerPriceType != "" {
		w.Raw(`,"trigger_price_type":`)
		w.String(string(o.TriggerPriceType))
	}
	f.time(w, `,"triggered":`, o.Triggered)
	f.decimal(w, `,"average_fill_price":`, o.AverageFillPrice)
	w.Raw(`,"time_in_force":`)
	w.String(string(o.TimeInForce))
	f.time(w, `,"expire_time":`, o.ExpireTime)
	w.Raw(`,"post_only":`)
	w.Bool(o.PostOnly)
	w.Raw(`,"reduce_only":`)
	w.Bool(o.ReduceOnly)
	w.Raw(`,"reference_id":`)
	w.String(o.ReferenceID)
	if o.Reason != "" {
		w.Raw(`,"reason":`)
		w.String(string(o.Reason))
	} else if f.nulls {
		w.Raw(`,"reason":null`)
	}
	w.Raw(`,"created":`)
	fastjson.Text(w, o.Created)
	w.Raw(f.updated)
	fastjson.Text(w, o.Updated)
}

// decimal writes a member that is absent or null if it is zero.
func (f *jsonForm) decimal(w *fastjson.Writer, name string, d fixed.Decimal) {
	if f.nulls || d.Coef != 0 {
		writeDecimal(w, name, d)
	}
}

// time is decimal for a time.
func (f *jsonForm) time(w *fastjson.Writer, name string, t scalar.Time) {
	if f.nulls || t != 0 {
		writeTime(w, name, t)
	}
}

func writeDecimal(w *fastjson.Writer, name string, d fixed.Decimal) {
	w.Raw(name)
	if d.Coef == 0 {
		w.Raw("null")
	} else {
		fastjson.Text(w, d)
	}
}

func writeTime(w *fastjson.Writer, name string, t scalar.Time) {
	w.Raw(name)
	if t == 0 {
		w.Raw("null")
	} else {
		fastjson.Text(w, t)
	}
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
	o.Action = ReadAction(r)
	r.Raw(`,"type":`)
	o.Type = fastjson.Word(r, types...)
	r.Raw(`,"status":`)
	o.Status = fastjson.Word(r, statuses...)
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
	o.TimeInForce = fastjson.Word(r, timesInForce...)
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
		o.TriggerPriceType = fastjson.Word(r, triggerPriceTypes...)
	}
	if r.Try(`,"triggered":`) {
		o.Triggered.ReadJSON(r)
	}
}
