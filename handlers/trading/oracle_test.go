package trading

import (
	"strings"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/form"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	domain "github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/domain/validation"
	"github.com/perpetua-exchange/perpetua/handlers/web/input"
)

// The readers of order entries, amendments, and names of orders as they were before package form, and the writer of
// fingerprints. The fuzz tests compare the forms with them.

// symbolRule is the syntax of symbols. It does not check that the instrument exists.
var symbolRule = form.Characters{Limit: 32, Extra: "_"}.Rule

// readOrder reads an order entry and reports all errors: of each field and of invalid combinations. The engine checks
// rules that depend on the instrument (ticks, steps, sizes).
func readOrder(f *input.Form, customer string) *domain.PlaceOrder {
	payload := &domain.PlaceOrder{
		CustomerCode: customer,
		Symbol:       f.String("symbol", symbolRule),
		Action:       order.Action(f.Enum("action", string(order.Buy), string(order.Sell))),
		Type: order.Type(f.Enum("type", string(order.Market), string(order.Limit), string(order.StopLoss), string(order.StopLossLimit),
			string(order.TakeProfit), string(order.TakeProfitLimit), string(order.TakeProfitStopLoss))),
		Amount:           f.OptionalDecimal("amount", form.Positive).Value,
		LimitPrice:       f.OptionalDecimal("limit_price", form.Positive).Value,
		TriggerPrice:     f.OptionalDecimal("trigger_price", form.Positive).Value,
		StopLossPrice:    f.OptionalDecimal("stop_loss_price", form.Positive).Value,
		TakeProfitPrice:  f.OptionalDecimal("take_profit_price", form.Positive).Value,
		TriggerPriceType: order.TriggerPriceType(f.OptionalEnum("trigger_price_type", string(order.TradePrice), string(order.MarkPrice)).Value),
		TimeInForce: order.TimeInForce(f.OptionalEnum("time_in_force", string(order.GTC), string(order.IOC), string(order.FOK),
			string(order.GTD)).Value),
		ExpireTime:  f.OptionalTime("expire_time").Value,
		PostOnly:    f.OptionalBool("post_only").Value,
		ReduceOnly:  f.OptionalBool("reduce_only").Value,
		Leverage:    f.OptionalLeverage("leverage", domain.MaxLeverage).Value,
		ReferenceID: f.OptionalString("reference_id", form.Reference.Rule).Value,
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
func readAmendment(f *input.Form) *domain.AmendOrder {
	payload := &domain.AmendOrder{
		Amount:          f.OptionalDecimal("amount", form.Positive).Pointer(),
		LimitPrice:      f.OptionalDecimal("limit_price", form.Positive).Pointer(),
		TriggerPrice:    f.OptionalDecimal("trigger_price", form.Positive).Pointer(),
		StopLossPrice:   f.OptionalDecimal("stop_loss_price", form.Positive).Pointer(),
		TakeProfitPrice: f.OptionalDecimal("take_profit_price", form.Positive).Pointer(),
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

// thoroughly reads an order entry and reports all errors.
func thoroughly(body *input.Form, customer string) (*domain.PlaceOrder, error) {
	payload := readOrder(body, customer)
	return payload, body.Done()
}

// normalOrder is an order entry with explicit defaults and trimmed numbers, so that "1" and "1.0" give the same
// order. Fingerprints in the log are computed from its JSON form, so its members must never change. A new member must
// be omitted when empty.
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
	ExpireTime       scalar.Time   `json:"expire_time"`
	PostOnly         bool          `json:"post_only"`
	ReduceOnly       bool          `json:"reduce_only"`
	Leverage         int           `json:"leverage"`
	ReferenceID      string        `json:"reference_id"`
}

func normal(payload *domain.PlaceOrder) normalOrder {
	return normalOrder{payload.CustomerCode, payload.Symbol, string(payload.Action), string(payload.Type), payload.Amount.Trim(), payload.CashAmount,
		payload.LimitPrice.Trim(), payload.TriggerPrice.Trim(), payload.StopLossPrice.Trim(), payload.TakeProfitPrice.Trim(),
		string(payload.Type.Trigger()), string(timeInForce(payload, payload.CashAmount != 0)), payload.ExpireTime, payload.PostOnly, payload.ReduceOnly,
		payload.Leverage, payload.ReferenceID}
}

// readName reads the identification of an order from a batch item: either an order code or a reference_id.
func readName(raw []byte) (code scalar.ID, reference string, err error) {
	if code, reference, ok := plainName(raw); ok {
		return code, reference, nil
	}
	f := input.Body(raw, nil)
	code, reference = nameIn(f)
	return code, reference, f.Done()
}

// nameIn reads the identification of an order from a batch item that may have other members.
func nameIn(f *input.Form) (code scalar.ID, reference string) {
	code = f.OptionalID("order_code").Value
	reference = f.OptionalString("reference_id", form.Reference.Rule).Value
	if f.Has("order_code") == f.Has("reference_id") {
		f.Fault("", validation.Required, "one of order_code and reference_id is required, and only one")
	}
	return code, reference
}

// plainName is a fast readName for the usual form of an item, like plainOrder for orders.
func plainName(raw []byte) (code scalar.ID, reference string, ok bool) {
	r := plainReader{rest: raw}
	r.take('{')
	name := string(r.quoted())
	r.take(':')
	text := string(r.quoted())
	r.take('}')
	r.space()
	if r.odd || len(r.rest) > 0 {
		return code, "", false
	}
	switch name {
	case "order_code":
		code, err := scalar.ParseID(text)
		return code, "", err == nil
	case "reference_id":
		wrong, _ := form.Reference.Rule(text)
		return code, text, wrong == ""
	}
	return code, "", false
}

// plainOrder is a fast parser for the usual form of an order entry: without errors, escapes or unknown members. It
// returns nil for everything else, which readOrder then parses. It accepts nothing that readOrder refuses and returns
// the same result; a fuzz test compares the two.
func plainOrder(raw []byte, customer string) *domain.PlaceOrder {
	r := plainReader{rest: raw}
	payload := &domain.PlaceOrder{CustomerCode: customer}
	var seen fields
	r.take('{')
	for first := true; !r.odd && !r.word("}"); first = false {
		if !first {
			r.take(',')
		}
		f := fieldNamed(r.quoted())
		r.take(':')
		if f == 0 || seen&f != 0 {
			return nil
		}
		seen |= f
		if !r.word("null") {
			r.member(f, payload)
		} else {
			seen |= f << nulls
		}
	}
	r.space()
	given := seen &^ (seen >> nulls)
	if r.odd || len(r.rest) > 0 || given&(symbolField|actionField|typeField) != symbolField|actionField|typeField {
		return nil
	}
	entry := shape(payload, given.given())
	var errs validation.Errors
	if entry.Check(&errs); len(errs.List) > 0 {
		return nil
	}
	return payload
}

// fields is a set of members of an order entry. Bits shifted by nulls mark the members that are null.
type fields uint64

const (
	symbolField fields = 1 << iota
	actionField
	typeField
	amountField
	cashField
	limitField
	triggerField
	stopField
	takeField
	triggerTypeField
	inForceField
	expireField
	postOnlyField
	reduceOnlyField
	leverageField
	referenceField
)

const nulls = 32

// given returns the fields that are valid only in some combinations.
func (f fields) given() order.Fields {
	var given order.Fields
	for _, g := range [...]struct {
		member fields
		field  order.Fields
	}{
		{amountField, order.FieldAmount}, {cashField, order.FieldCashAmount}, {limitField, order.FieldLimitPrice},
		{triggerField, order.FieldTriggerPrice}, {stopField, order.FieldStopLossPrice}, {takeField, order.FieldTakeProfitPrice},
		{inForceField, order.FieldTimeInForce}, {expireField, order.FieldExpireTime},
	} {
		if f&g.member != 0 {
			given |= g.field
		}
	}
	return given
}

func fieldNamed(name []byte) fields {
	switch string(name) {
	case "symbol":
		return symbolField
	case "action":
		return actionField
	case "type":
		return typeField
	case "amount":
		return amountField
	case "cash_amount":
		return cashField
	case "limit_price":
		return limitField
	case "trigger_price":
		return triggerField
	case "stop_loss_price":
		return stopField
	case "take_profit_price":
		return takeField
	case "trigger_price_type":
		return triggerTypeField
	case "time_in_force":
		return inForceField
	case "expire_time":
		return expireField
	case "post_only":
		return postOnlyField
	case "reduce_only":
		return reduceOnlyField
	case "leverage":
		return leverageField
	case "reference_id":
		return referenceField
	}
	return 0
}

// plainReader parses the simple subset of JSON. Any other input sets odd, which makes all results invalid.
type plainReader struct {
	rest []byte
	odd  bool
}

func (r *plainReader) member(f fields, payload *domain.PlaceOrder) {
	switch f {
	case symbolField:
		payload.Symbol = string(r.quoted())
		r.judge(symbolRule(payload.Symbol))
	case actionField:
		payload.Action = oneOf(r, order.Buy, order.Sell)
	case typeField:
		payload.Type = oneOf(r, order.Limit, order.Market, order.StopLoss, order.StopLossLimit, order.TakeProfit,
			order.TakeProfitLimit, order.TakeProfitStopLoss)
	case amountField:
		payload.Amount = r.positive()
	case cashField:
		d := r.positive()
		cash, fits := fixed.MoneyOf(d)
		payload.CashAmount = cash
		r.odd = r.odd || !fits || d.Scale > form.MoneyDecimals
	case limitField:
		payload.LimitPrice = r.positive()
	case triggerField:
		payload.TriggerPrice = r.positive()
	case stopField:
		payload.StopLossPrice = r.positive()
	case takeField:
		payload.TakeProfitPrice = r.positive()
	case triggerTypeField:
		payload.TriggerPriceType = oneOf(r, order.TradePrice, order.MarkPrice)
	case inForceField:
		payload.TimeInForce = oneOf(r, order.GTC, order.IOC, order.FOK, order.GTD)
	case expireField:
		payload.ExpireTime = r.time()
	case postOnlyField:
		payload.PostOnly = r.bool()
	case reduceOnlyField:
		payload.ReduceOnly = r.bool()
	case leverageField:
		payload.Leverage = r.leverage()
	case referenceField:
		payload.ReferenceID = string(r.quoted())
		r.judge(form.Reference.Rule(payload.ReferenceID))
	}
}

func (r *plainReader) judge(code, _ string) { r.odd = r.odd || code != "" }

// oneOf reads a string that must be one of words.
func oneOf[T ~string](r *plainReader, words ...T) T {
	text := r.quoted()
	for _, w := range words {
		if string(text) == string(w) {
			return w
		}
	}
	r.odd = true
	return ""
}

// positive reads a positive decimal.
func (r *plainReader) positive() fixed.Decimal {
	d, err := fixed.ParseDecimal(string(r.quoted()))
	r.odd = r.odd || err != nil || d.Coef <= 0
	return d
}

func (r *plainReader) time() scalar.Time {
	t, err := form.ParseTime(string(r.quoted()))
	r.odd = r.odd || err != nil
	return t
}

func (r *plainReader) bool() bool {
	if r.word("true") {
		return true
	}
	r.odd = r.odd || !r.word("false")
	return false
}

// leverage reads an integer from 1 to domain.MaxLeverage, as a number or a string.
func (r *plainReader) leverage() int {
	quoted := r.word(`"`)
	n, digits := 0, 0
	for ; digits < len(r.rest) && digits < 3 && r.rest[digits] >= '0' && r.rest[digits] <= '9'; digits++ {
		n = 10*n + int(r.rest[digits]-'0')
	}
	if digits == 0 || r.rest[0] == '0' || n > domain.MaxLeverage {
		r.odd = true
		return 0
	}
	if r.rest = r.rest[digits:]; quoted {
		r.odd = r.odd || len(r.rest) == 0 || r.rest[0] != '"'
		r.take('"')
	}
	return n // a point or an exponent fails as an invalid separator
}

func (r *plainReader) space() {
	for len(r.rest) > 0 && (r.rest[0] == ' ' || r.rest[0] == '\n' || r.rest[0] == '\r' || r.rest[0] == '\t') {
		r.rest = r.rest[1:]
	}
}

func (r *plainReader) take(c byte) {
	r.space()
	if len(r.rest) == 0 || r.rest[0] != c {
		r.odd = true
		return
	}
	r.rest = r.rest[1:]
}

// word skips w if it comes next and reports whether it did.
func (r *plainReader) word(w string) bool {
	r.space()
	if len(r.rest) < len(w) || string(r.rest[:len(w)]) != w {
		return false
	}
	r.rest = r.rest[len(w):]
	return true
}

// quoted reads a string of printable ASCII without escapes. The result is a slice of the input.
func (r *plainReader) quoted() []byte {
	r.take('"')
	for i, c := range r.rest {
		switch {
		case c == '"':
			text := r.rest[:i]
			r.rest = r.rest[i+1:]
			return text
		case c < ' ' || c >= 0x7f || c == '\\':
			r.odd = true
			return nil
		}
	}
	r.odd = true
	return nil
}
