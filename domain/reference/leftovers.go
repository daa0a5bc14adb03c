package reference

// leftovers checks the reasons of orders that did not trade, or not in full, against the book after the record: an order
// may end for lack of liquidity only if there is none. A record that rejects or cancels an order for one of these
// reasons does not change the book otherwise.
func (a *Auditor) leftovers() {
	for _, v := range a.r.views {
		o := a.newOrder(v)
		if v.CashAmount.set || v.Status != "canceled" && v.Status != "rejected" {
			continue
		}
		switch v.Reason {
		case "ioc_remainder", "price_protection":
			must(a.within(o, true) == 0, "the rest of the order %s is canceled, %s, and %d are there", v.Code, v.Reason, a.within(o, true))
		case "liquidation":
			if v.Code == a.r.closing && !a.full() {
				must(a.within(o, true) == 0, "the rest of a liquidation's order is canceled, and %d are there", a.within(o, true))
			}
		case "fok_not_fillable":
			must(v.FilledAmount.v == 0 && (v.ReduceOnly || a.within(o, false) < o.instrument.steps(v.Amount)), "the order %s is not filled, and %d are there",
				v.Code, a.within(o, false))
		case "no_liquidity":
			must(o.instrument.mark == 0 || v.FilledAmount.v == 0 && a.within(o, false) == 0, "the order %s finds nobody, and %d are there", v.Code, a.within(o, false))
		case "trigger_would_fire_immediately":
			must(o.wouldFire(), "the order %s is refused since it would fire at once, and it would wait", v.Code)
		}
	}
}

// within returns how many steps an order would trade within its limit or price band. sameAccount includes orders of the same account. A
// reduce-only order trades no more than its account still holds after the orders before it.
func (a *Auditor) within(o *order, sameAccount bool) (steps int64) {
	at := a.now
	if a.r.resumed != nil {
		at = a.r.resumed.started
	}
	sizes := make(map[*account]int64) // of the positions after the orders so far
	for _, maker := range o.instrument.book[1-o.side()] {
		reaches := !o.beyond(maker.price, o.instrument.PriceBand)
		if limited(o.Type) {
			reaches = o.crosses(o.instrument.ticks(o.LimitPrice), maker.price)
		}
		if !reaches {
			return steps
		}
		if !maker.past(at) && (sameAccount || maker.account != o.account) {
			steps += maker.trades(sizes)
		}
	}
	return steps
}

// trades returns the steps that a resting order trades. It updates its account's position in sizes.
func (o *order) trades(sizes map[*account]int64) int64 {
	size, met := sizes[o.account]
	if !met {
		size = o.account.on(o.instrument).size
	}
	steps := o.remaining
	if o.ReduceOnly {
		steps = min(steps, max(0, -sign(o.buy)*size))
	}
	sizes[o.account] = size + sign(o.buy)*steps
	return steps
}

// wouldFire reports whether a stop would fire at the current price.
func (o *order) wouldFire() bool {
	market, prices := o.instrument.last, [2]dec{o.StopLossPrice, o.TakeProfitPrice}
	switch o.Type {
	case "take_profit_stop_loss":
		market = o.instrument.mark
	case "stop_loss", "stop_loss_limit":
		prices[0] = o.TriggerPrice
	default:
		prices[1] = o.TriggerPrice
	}
	for n, price := range prices {
		l := leg{price: o.instrument.ticks(price), below: o.buy == (n == 1)}
		if l.at(market) {
			return true
		}
	}
	return false
}
