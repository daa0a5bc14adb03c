package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	domain "github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/web"
)

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
	if entry := shape(payload, given.given()); !entry.Sound() {
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
		r.odd = r.odd || !fits || d.Scale > web.MoneyDecimals
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
		r.judge(web.Reference(payload.ReferenceID))
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
	t, code, _ := web.ParseTime(string(r.quoted()))
	r.odd = r.odd || code != ""
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
