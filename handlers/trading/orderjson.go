package trading

import (
	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/codec"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/order"
)

// answerOrder answers with an order. The bytes are those that the generic encoder makes, a good deal sooner: most
// answers there are hold an order.
func answerOrder(c echo.Context, status int, shown *order.Order) error {
	o := NewOrder(shown)
	b, err := o.appendJSON(make([]byte, 0, 768))
	if err != nil {
		return c.JSON(status, o) // which fails in its own words
	}
	return c.JSONBlob(status, b)
}

func (o *Order) appendJSON(b []byte) ([]byte, error) {
	w := codec.Writer{Bytes: b}
	w.Raw(`{"code":`)
	codec.Text(&w, o.Code)
	w.Raw(`,"customer_code":`)
	w.String(o.CustomerCode)
	w.Raw(`,"symbol":`)
	w.String(o.Symbol)
	w.Raw(`,"action":`)
	w.String(o.Action)
	w.Raw(`,"type":`)
	w.String(o.Type)
	w.Raw(`,"status":`)
	w.String(o.Status)
	w.Raw(`,"amount":`)
	codec.Text(&w, o.Amount)
	w.Raw(`,"filled_amount":`)
	codec.Text(&w, o.FilledAmount)
	if o.CashAmount != 0 {
		w.Raw(`,"cash_amount":`)
		codec.Text(&w, o.CashAmount)
	}
	w.Raw(`,"filled_quote":`)
	codec.Text(&w, o.FilledQuote)
	appendPrice(&w, `,"limit_price":`, o.LimitPrice)
	appendPrice(&w, `,"trigger_price":`, o.TriggerPrice)
	appendPrice(&w, `,"stop_loss_price":`, o.StopLossPrice)
	appendPrice(&w, `,"take_profit_price":`, o.TakeProfitPrice)
	if o.TriggerPriceType != "" {
		w.Raw(`,"trigger_price_type":`)
		w.String(o.TriggerPriceType)
	}
	appendPrice(&w, `,"average_fill_price":`, o.AverageFillPrice)
	w.Raw(`,"time_in_force":`)
	w.String(o.TimeInForce)
	w.Raw(`,"expire_time":`)
	appendTime(&w, o.ExpireTime)
	w.Raw(`,"post_only":`)
	w.Bool(o.PostOnly)
	w.Raw(`,"reduce_only":`)
	w.Bool(o.ReduceOnly)
	w.Raw(`,"reference_id":`)
	w.String(o.ReferenceID)
	w.Raw(`,"reason":`)
	if o.Reason == nil {
		w.Raw("null")
	} else {
		w.String(*o.Reason)
	}
	w.Raw(`,"created":`)
	codec.Text(&w, o.Created)
	w.Raw(`,"updated":`)
	codec.Text(&w, o.Updated)
	w.Raw(`}`)
	return w.Bytes, w.Err
}

func appendPrice(w *codec.Writer, name string, price *fixed.Decimal) {
	w.Raw(name)
	if price == nil {
		w.Raw("null")
		return
	}
	codec.Text(w, *price)
}

func appendTime(w *codec.Writer, t *decide.Time) {
	if t == nil {
		w.Raw("null")
		return
	}
	codec.Text(w, *t)
}
