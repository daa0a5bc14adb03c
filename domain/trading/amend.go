package trading

import (
	"cmp"
	"strings"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/validation"
)

// amendOrder decides new terms of a live order. The release of the old reserve and the new reserve are one decision: if
// it fails, the order keeps its terms.
func (r request) amendOrder(payload *AmendOrder) (decide.Decision, error) {
	o, err := r.namedOrder(payload.CustomerCode, payload.OrderCode, payload.ReferenceID)
	if err != nil {
		return decide.Decision{}, err
	}
	switch {
	case !o.Resting() && !o.Value.stop.waiting():
		return decide.Decision{}, decide.Refuse(decide.Conflict, "ORDER_NOT_AMENDABLE", "the order neither rests in the book nor waits for its price")
	case o.Resting() && payload.trigger() != nil && o.Value.stop != nil:
		return decide.Decision{}, decide.Refuse(decide.Conflict, "ORDER_NOT_AMENDABLE", "the order has fired: it waits for no price any more")
	}
	i := o.Value.position.instrument
	if err := refuseFirst(checkAmend(i.contract, o, payload, r.at.Time)); err != nil {
		return decide.Decision{}, err
	}
	d := r.newRecordBuilder(r.at, i)
	t := d.amending(o, payload)
	moves := t.price != o.Price || t.remaining > o.Remaining || t.stop != nil && t.stop.prices() != o.Value.stop.prices()
	slot := d.reserveSlot()
	if t.remaining > o.Remaining {
		if err := t.mayGrow(); err != nil {
			return decide.Decision{}, err
		}
	}
	if err := d.fits(t); err != nil {
		return decide.Decision{}, err
	}
	reason := d.amendable(t, moves)
	if reason != "" {
		return decide.Decision{}, refusedAs(reason)
	}
	if t.stop != nil {
		return d.stay(t, slot), nil
	}
	decision := d.execute(t, slot, r.command.Recorded())
	if decision.Outcome == decide.Rejected {
		return decide.Decision{}, refusedAs(t.reason)
	}
	return decision, nil
}

// trigger returns one of the trigger prices to change, or nil.
func (p *AmendOrder) trigger() *fixed.Decimal {
	return cmp.Or(p.TriggerPrice, p.StopLossPrice, p.TakeProfitPrice)
}

// amending returns the taker for an order with its new terms.
func (d *recordBuilder) amending(o *resting, payload *AmendOrder) *taker {
	c := d.instrument.contract
	t := &taker{order: o, party: d.viewOf(o.Value.position.account), terms: termsOf(o), price: o.Price, amends: true}
	t.updated = d.at.Time
	if payload.Amount != nil {
		amount, _ := c.Steps(*payload.Amount)
		t.remaining += amount - t.amount
		t.amount = amount
	}
	if payload.LimitPrice != nil {
		t.price, _ = c.Ticks(*payload.LimitPrice)
	}
	if payload.ExpireTime != nil {
		t.expires = *payload.ExpireTime
	}
	if s := o.Value.stop; s.waiting() {
		t.stop = newStop(o, s.amended(c, payload))
	}
	return t
}

// amended returns the prices of the stop's legs after the amendment.
func (s *stop) amended(c *market.Contract, payload *AmendOrder) [len(legs)]int64 {
	prices := s.prices()
	for n, changed := range [len(legs)]*fixed.Decimal{payload.StopLossPrice, payload.TakeProfitPrice} {
		if changed = cmp.Or(payload.TriggerPrice, changed); changed != nil {
			prices[n], _ = c.Ticks(*changed)
		}
	}
	return prices
}

// amendable checks the new terms against the state of the instrument. An amendment that only reduces the amount or
// changes the expiry time is always allowed.
func (d *recordBuilder) amendable(t *taker, moves bool) order.Reason {
	if moves {
		return d.admissible(t)
	}
	t.bound = t.price
	return ""
}

// refusedAs converts the reason for which an amended order would have been rejected to a refusal.
func refusedAs(reason order.Reason) error {
	return decide.Refuse(decide.Unacceptable, strings.ToUpper(string(reason)), "the order stays as it was: "+string(reason))
}

// releaseOld removes the reserve of a live order from its account's margin, before the order trades or rests with new
// terms.
func (d *recordBuilder) releaseOld(t *taker) {
	bids, asks := reserve(t.order)
	t.party.bids, t.party.asks = t.party.bids.Sub(bids), t.party.asks.Sub(asks)
}

func checkAmend(c *market.Contract, o *resting, payload *AmendOrder, now scalar.Time) []validation.FieldError {
	var f validation.Errors
	if payload.Amount == nil && payload.LimitPrice == nil && payload.TriggerPrice == nil && payload.StopLossPrice == nil && payload.TakeProfitPrice == nil && payload.ExpireTime == nil {
		f.AddCode("", "NOTHING_TO_AMEND", "at least one field to amend must be given")
	}
	if payload.Amount != nil {
		checkAmount(&f, c, *payload.Amount)
		if steps, whole := c.Steps(*payload.Amount); whole && steps <= filled(o) {
			f.AddCode("amount", "AMOUNT_NOT_ABOVE_FILLED", "amount must be above what is filled")
		}
	}
	for _, p := range [...]struct {
		name  string
		field order.Fields
		price *fixed.Decimal
	}{
		{"limit_price", order.FieldLimitPrice, payload.LimitPrice}, {"trigger_price", order.FieldTriggerPrice, payload.TriggerPrice},
		{"stop_loss_price", order.FieldStopLossPrice, payload.StopLossPrice}, {"take_profit_price", order.FieldTakeProfitPrice, payload.TakeProfitPrice},
	} {
		switch {
		case p.price == nil:
		case !o.Value.kind.Has(p.field):
			f.AddCode(p.name, validation.NotAllowed, "the field does not go with %s orders", o.Value.kind)
		default:
			checkPrice(&f, c, p.name, *p.price)
		}
	}
	if payload.ExpireTime != nil {
		if o.Value.tif != order.GTD {
			f.AddCode("expire_time", validation.NotAllowed, "the field goes with GTD only")
		} else {
			checkExpiry(&f, *payload.ExpireTime, now)
		}
	}
	return f.List
}

// liveOrder returns a customer's live order.
func (r request) liveOrder(customer string, code scalar.ID) (*resting, error) {
	a, err := r.customerOf(customer)
	if err != nil {
		return nil, err
	}
	o := r.orders.Get(code)
	if o == nil && r.recent.has(code, a) {
		return nil, decide.Refuse(decide.Conflict, "ORDER_NOT_LIVE", "the order is final")
	}
	if o == nil || o.Value.position.account != a {
		return nil, decide.Refuse(decide.NotFound, "UNKNOWN_ORDER", "the customer has no live order with this code")
	}
	if isOverdue(o, r.at.Time) {
		return nil, decide.Refuse(decide.Conflict, "ORDER_NOT_LIVE", "the order's time has passed")
	}
	return o, nil
}
