package reference

// trade checks and applies a trade between two orders, or the transfer of a liquidated position to another account.
func (a *Auditor) trade(e *tradeShape) {
	i := a.instrument(e.Symbol)
	price, steps := i.ticks(e.Price), i.steps(e.Amount)
	must(price > 0 && steps > 0, "a trade of %d steps at %d ticks", steps, price)
	must(e.Notional.v == i.worth(price, steps), "a trade of %s at %s comes to %s, not %s", text(e.Amount.v), text(e.Price.v), text(i.worth(price, steps)), text(e.Notional.v))
	must(i.open(), "a trade on %s, which is %s", i.Symbol, i.inForce())
	taker, maker := a.customer(e.Taker.CustomerCode), a.customer(e.Maker.CustomerCode)
	must(taker != maker, "%s trades with itself", taker.code)
	a.settled(taker, i)
	a.settled(maker, i)
	a.Seen.Trades++
	bare := e.Taker.OrderCode == ""
	must(bare == (e.Maker.OrderCode == ""), "a trade with one order")
	if bare {
		a.passes(e, i, taker, maker, price, steps)
	} else {
		a.matches(e, i, taker, maker, price, steps)
	}
	signed := sign(e.Action == "buy") * steps
	takers, takerRealized := a.hold(e, i, taker, price, signed)
	makers, makerRealized := a.hold(e, i, maker, price, -signed)
	kinds := map[string][2]string{"trade": {"trade", "trade"}, "liquidation": {"liquidation", "trade"}, "auto_deleveraging": {"auto_deleveraging", "auto_deleveraging"}}[e.Type]
	want := []movement{{taker, "", kinds[0], takerRealized}, {nil, "clearing", kinds[0], -takerRealized},
		{maker, "", kinds[1], makerRealized}, {nil, "clearing", kinds[1], -makerRealized}}
	takerFee, makerFee := int64(0), int64(0)
	if !bare {
		want, takerFee, makerFee = a.fees(e, taker, maker, takers, makers, takerRealized, want)
	}
	must(e.Taker.Fee.v == takerFee && e.Maker.Fee.v == makerFee, "the fees of a trade are %s and %s, not %s and %s", text(takerFee), text(makerFee), text(e.Taker.Fee.v), text(e.Maker.Fee.v))
	a.post(e.Postings, want)
	a.touch(taker)
	a.touch(maker)
	if !bare {
		i.last = price
		a.reach(i, "trade_price", price)
	}
}

// fees adds the fee movements of both sides. The taker pays its fee or, if liquidated, the liquidation fee. The maker
// pays its fee or receives a rebate of at most the taker's payment.
func (a *Auditor) fees(e *tradeShape, taker, maker *account, takers, makers *position, realized int64, want []movement) (all []movement, ofTaker, ofMaker int64) {
	_, points := takers.fees()
	ofTaker = feeOf(e.Notional.v, points)
	kind, venue := "trade_fee", "fees"
	if e.Type == "liquidation" {
		equity, _ := a.health(taker)
		ofTaker = max(0, min(up(times(rat(e.Notional.v, 1), rat(5, 1000))), equity+realized))
		kind, venue = "liquidation_fee", "insurance"
	}
	points, _ = makers.fees()
	ofMaker = max(feeOf(e.Notional.v, points), -ofTaker)
	return append(want, movement{taker, "", kind, -ofTaker}, movement{nil, venue, kind, ofTaker},
		movement{maker, "", "trade_fee", -ofMaker}, movement{nil, "fees", "trade_fee", ofMaker}), ofTaker, ofMaker
}

// hold applies a trade to the position of one side and compares the result with the event.
func (a *Auditor) hold(e *tradeShape, i *instrument, c *account, price, signed int64) (h *position, realized int64) {
	h = c.on(i)
	h.size, h.cost, realized = h.after(price, signed)
	for _, p := range e.Positions {
		if p.CustomerCode == c.code {
			must(p.Symbol == i.Symbol && i.steps(p.Amount) == h.size && p.Cost.v == h.cost, "%s holds %d for %s, not %s for %s", c.code, h.size, text(h.cost), text(p.Amount.v), text(p.Cost.v))
			return h, realized
		}
	}
	must(false, "a trade of %s without its position", c.code)
	return h, 0
}

// matches checks a trade between two orders. The maker must be the first order in price-time priority. The price must be
// the maker's and within the taker's limit or price band.
func (a *Auditor) matches(e *tradeShape, i *instrument, taker, maker *account, price, steps int64) {
	v := a.r.views[e.Taker.OrderCode]
	must(v != nil && v.CustomerCode == taker.code && v.Symbol == i.Symbol && v.Action == e.Action, "the taker's order %s", e.Taker.OrderCode)
	o := a.orders[e.Maker.OrderCode]
	must(o != nil && o.resting && o.account == maker && o.instrument == i && o.buy != (e.Action == "buy"), "the maker's order %s does not rest", e.Maker.OrderCode)
	must(o.price == price, "a trade at %d ticks with an order at %d", price, o.price)
	at := a.now
	if a.r.resumed != nil {
		at = a.r.resumed.started
	}
	must(!o.past(at), "the order %s matches after its time", o.Code)
	must((e.Type == "liquidation") == (a.r.work == "liquidation"), "a trade of type %s in a step of %s", e.Type, a.r.work)
	if old := a.orders[v.Code]; conditional(v.Type) && old != nil && old.waiting {
		must(false, "the order %s trades before it fires", v.Code)
	}
	if q := (order{instrument: i, buy: v.Action == "buy"}); limited(v.Type) {
		must(q.crosses(i.ticks(v.LimitPrice), price), "the order %s trades at %d ticks, beyond its limit", v.Code, price)
	} else {
		must(!q.beyond(price, i.PriceBand), "the order %s trades at %d ticks, beyond the band", v.Code, price)
	}
	must(!v.PostOnly || a.orders[v.Code] != nil && a.orders[v.Code].resting && a.r.work == "insurance_order", "the order %s is post-only and takes", v.Code)
	a.inFront(i, o, taker, at)
	for _, side := range [2]struct {
		code  string
		steps int64
	}{{v.Code, steps}, {o.Code, steps}} {
		f := a.r.fills[side.code]
		if f == nil {
			f = new(fills)
			a.r.fills[side.code] = f
		}
		f.steps += steps
		f.quote += e.Notional.v
	}
	must(a.r.fills[o.Code].steps <= o.remaining, "the order %s trades more than it has", o.Code)
}

// inFront checks that no order before the maker was passed over. Each of them must have been filled in full, or have
// ended in this record: it expired, it belongs to the taker, or it was reduce-only and its position is gone.
func (a *Auditor) inFront(i *instrument, maker *order, taker *account, at moment) {
	for _, o := range i.book[maker.side()] {
		if o == maker {
			return
		}
		if f := a.r.fills[o.Code]; f != nil && f.steps == o.remaining {
			continue
		}
		v := a.r.views[o.Code]
		must(v != nil, "the order %s stands before %s, and is passed over", o.Code, maker.Code)
		ended := v.Status == "expired" && o.past(at) || v.Reason == "self_trade" && o.account == taker || o.ReduceOnly && v.Reason == "reduce_only_invalid"
		cut := o.ReduceOnly && a.r.fills[o.Code] != nil && v.Status == "filled"
		must(ended || cut, "the order %s stands before %s, is %s and passed over", o.Code, maker.Code, v.Status)
	}
	must(false, "the order %s is not in the book", maker.Code)
}
