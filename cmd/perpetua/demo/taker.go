package demo

import "strconv"

// takers are the customers who trade with resting orders.
func takers() []string { return []string{"demo-taker-1", "demo-taker-2", "demo-taker-3"} }

const (
	// takerLimit is the position, in lots, at which a taker trades only to reduce it.
	takerLimit = 100
	// reach is the distance from the index price to a taker's limit price, in parts per million.
	reach = 1500
	// insideSpread is the distance from the index price to a taker's resting order, which is inside the makers' quotes.
	insideSpread = 150
)

// wish is the action of a taker in a turn: it cancels its resting order or places a new one.
type wish struct {
	customer string
	cancel   *resting
	order    map[string]any
}

// wants draws the action on an instrument in this turn.
func wants(m *market, view *mirror) wish {
	names := takers()
	w := wish{customer: names[m.flow.below(int64(len(names)))]}
	for _, o := range view.on(m.symbol) {
		if o.customer == w.customer {
			w.cancel = &o
			return w
		}
	}
	side := leaning(m, view.position(w.customer, m.symbol))
	w.order = map[string]any{"symbol": m.symbol, "action": sideName(side)}
	steps := m.lot * (1 + m.flow.below(10)) * (1 + m.flow.below(4)) / 8
	steps = max(1, steps*(80+m.flow.below(40))/100)
	switch kind := m.flow.below(100); {
	case kind < 60:
		w.order["type"], w.order["amount"] = "market", m.amount(steps)
	case kind < 80:
		w.order["type"], w.order["amount"], w.order["time_in_force"] = "limit", m.amount(steps), "IOC"
		w.order["limit_price"] = m.price(away(m.index, reach, 1-side))
	case kind < 90:
		w.order["type"], w.order["cash_amount"] = "market", strconv.FormatInt(200+50*m.flow.below(17), 10)
	default:
		w.order["type"], w.order["amount"] = "limit", m.amount(steps)
		w.order["limit_price"] = m.price(away(m.index, insideSpread, side))
	}
	return w
}

// leaning draws the side on which a taker with a position trades. The direction in which the price moved is more
// likely, and the larger the position, the more likely is the opposite side.
func leaning(m *market, position int64) int {
	limit := takerLimit * m.lot
	buys := 500 - 400*position/limit
	switch {
	case m.index > m.before:
		buys += 100
	case m.index < m.before:
		buys -= 100
	}
	if position >= limit || position > -limit && !m.flow.chance(buys) {
		return ask
	}
	return bid
}
