package trading

import (
	"strconv"

	"github.com/perpetua-exchange/perpetua/domain/fastjson"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	domain "github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/web"
)

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

// orderFingerprint returns web.FingerprintOf(normal(payload)) without using the generic encoder.
func orderFingerprint(payload *domain.PlaceOrder) string {
	n := normal(payload)
	var room [768]byte
	w := fastjson.Writer{Bytes: room[:0]}
	w.Raw(`{"customer_code":`)
	w.String(n.CustomerCode)
	w.Raw(`,"symbol":`)
	w.String(n.Symbol)
	w.Raw(`,"action":`)
	w.String(n.Action)
	w.Raw(`,"type":`)
	w.String(n.Type)
	w.Raw(`,"amount":`)
	fastjson.Text(&w, n.Amount)
	w.Raw(`,"cash_amount":`)
	fastjson.Text(&w, n.CashAmount)
	w.Raw(`,"limit_price":`)
	fastjson.Text(&w, n.LimitPrice)
	w.Raw(`,"trigger_price":`)
	fastjson.Text(&w, n.TriggerPrice)
	w.Raw(`,"stop_loss_price":`)
	fastjson.Text(&w, n.StopLossPrice)
	w.Raw(`,"take_profit_price":`)
	fastjson.Text(&w, n.TakeProfitPrice)
	w.Raw(`,"trigger_price_type":`)
	w.String(n.TriggerPriceType)
	w.Raw(`,"time_in_force":`)
	w.String(n.TimeInForce)
	w.Raw(`,"expire_time":`)
	fastjson.Text(&w, n.ExpireTime)
	w.Raw(`,"post_only":`)
	w.Bool(n.PostOnly)
	w.Raw(`,"reduce_only":`)
	w.Bool(n.ReduceOnly)
	w.Raw(`,"leverage":`)
	w.Bytes = strconv.AppendInt(w.Bytes, int64(n.Leverage), 10)
	w.Raw(`,"reference_id":`)
	w.String(n.ReferenceID)
	w.Raw(`}`)
	if w.Err != nil {
		return web.FingerprintOf(n)
	}
	return web.FingerprintText(w.Bytes)
}
