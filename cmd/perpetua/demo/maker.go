package demo

// maker quotes both sides of every instrument on a ladder of levels around the index price.
type maker struct {
	customer string
	ladder   []int64 // distances from the center, in parts per million
}

func makers() []maker {
	return []maker{
		{"demo-maker-1", []int64{300, 650, 1100, 1800, 2800}},
		{"demo-maker-2", []int64{400, 850, 1400, 2200, 3500}},
	}
}

const (
	// makerLimit is the position, in lots, beyond which a maker no longer quotes the side that adds to it.
	makerLimit = 400
	// skew is the distance, in parts per million, by which a maker at its limit shifts its quotes so that other traders
	// reduce its position.
	skew = 600
)

// centre returns the price that a maker quotes around, in ticks: the index price, shifted against the maker's position.
func (k *maker) centre(m *market, position int64) int64 {
	limit := makerLimit * m.lot
	position = min(max(position, -limit), limit)
	return m.index - m.index*(skew*position/limit)/million
}

// deed is an action of a maker.
type deed struct {
	verb    verb
	order   resting // order to amend or cancel
	slot    slot    // of a new order
	maker   *maker
	price   int64 // in ticks, to amend to or place at
	urgency int64
}

type verb int

const (
	nothing verb = iota
	cancel
	amend
	post
)

// Urgencies of actions that have no distance to measure.
const (
	urgentCancel = 1 << 40
	urgentPost   = 3000
)

// most returns the more urgent of two deeds, the first one if they are equal.
func most(a, b deed) deed {
	if b.urgency > a.urgency {
		return b
	}
	return a
}

// next returns the most urgent action on the quotes of an instrument. Quotes that the price has come too close to come
// first, since others could trade with them at the maker's loss; quotes that are too far away come later. missing is
// the number of empty levels of all ladders.
func next(all []maker, m *market, view *mirror) (urgent deed, missing int) {
	orders := view.on(m.symbol)
	for i := range all {
		k := &all[i]
		position := view.position(k.customer, m.symbol)
		standing := make(map[slot]bool)
		for _, o := range orders {
			if o.customer != k.customer {
				continue
			}
			s, ok := slotOf(o.reference)
			if !ok || s.side != o.side || s.level >= len(k.ladder) || standing[s] || !k.quotes(s.side, m, position) {
				urgent = most(urgent, deed{verb: cancel, order: o, maker: k, urgency: urgentCancel})
				continue
			}
			standing[s] = true
			urgent = most(urgent, k.adjust(m, o, s, position, orders))
		}
		for level := range k.ladder {
			for side := range 2 {
				s := slot{side, level}
				if standing[s] || !k.quotes(side, m, position) {
					continue
				}
				missing++
				if m.turns >= m.cooling[side] {
					price := uncrossed(away(k.centre(m, position), k.ladder[level], side), side, orders)
					urgent = most(urgent, deed{verb: post, slot: s, maker: k, price: price, urgency: urgentPost - int64(level)})
				}
			}
		}
	}
	return urgent, missing
}

// quotes reports whether a maker with a position quotes a side.
func (k *maker) quotes(side int, m *market, position int64) bool {
	return sign(side)*position < makerLimit*m.lot
}

// adjust returns the amendment that moves an order to its level, if it is far enough off.
func (k *maker) adjust(m *market, o resting, s slot, position int64, orders []resting) deed {
	want := away(k.centre(m, position), k.ladder[s.level], s.side)
	off := (want - o.price) * million / m.index * sign(s.side) // positive if the order is too far out
	tolerance := k.ladder[s.level] / 2
	urgency := max(off, -off) * 1000 / tolerance
	if urgency <= 1000 || off > 0 && m.turns < m.cooling[s.side] {
		return deed{}
	}
	if off < 0 {
		urgency *= 4
	}
	price := uncrossed(want, s.side, orders)
	if price == o.price || off > 0 && sign(s.side)*(price-o.price) < 0 {
		return deed{} // other orders of the demo are still in between
	}
	return deed{verb: amend, order: o, maker: k, price: price, urgency: urgency}
}

// depth draws the size of an order for a level, in steps. Outer levels are deeper, and sizes vary at random.
func (m *market) depth(level int) int64 {
	return max(1, m.lot*int64(2+level)*(60+m.flow.below(80))/100)
}

// uncrossed returns the price, or the best price that does not trade with the demo's orders on the other side.
func uncrossed(price int64, side int, orders []resting) int64 {
	for _, o := range orders {
		if o.side != side && sign(side)*(price-o.price) >= 0 {
			price = o.price - sign(side)
		}
	}
	return price
}
