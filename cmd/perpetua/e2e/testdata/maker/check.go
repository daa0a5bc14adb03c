package main

import (
	"context"
	"fmt"
	"maps"

	"github.com/shopspring/decimal"

	"example.org/maker/client"
)

// check holds the maker's own idea of its account against GET /state, as of the record that this names.
//
// The topic orders may be behind that record. So an order is placed after it, far from everything: once the topic tells of
// that, it has told all that came before, and any difference is a fault. What the other topics tell of those records is
// waited for.
func (m *maker) check(ctx context.Context) error {
	if err := m.await("all answers", func() bool { return len(m.waiting) == 0 }); err != nil {
		return err
	}
	s, err := m.venue.state(ctx)
	if err != nil {
		return err
	}
	if err := m.placeAfter(s.sequence); err != nil {
		return err
	}
	if err := m.sameOrders(s); err != nil {
		return err
	}
	// Trades that are not told yet may cancel out in the positions. They can't in the fills of each order.
	var fills error
	same := func() bool {
		fills = m.sameFills(s.sequence)
		return fills == nil && m.samePositions(s) && m.view.balanceAt(s.sequence).Equal(s.balance)
	}
	if err := m.await("the trades and movements up to the record", same); err != nil {
		return fmt.Errorf("%w: as of record %d the venue says %v and a balance of %s, and the topics %v, %v and %s (%v)", err, s.sequence,
			s.positions, s.balance, m.view.positionsAt(s.sequence), m.shownAt(s.sequence), m.view.balanceAt(s.sequence), fills)
	}
	m.did.Checks++
	return m.keptPromises()
}

// placeAfter places an order, far from the mark price, that comes after a record, and waits until the topic orders has told
// of it.
func (m *maker) placeAfter(sequence int64) error {
	i := m.instruments[0]
	for {
		o := m.entry(i, client.Buy, 0.1)
		m.quoted[i.Symbol] = append(m.quoted[i.Symbol], *o.ReferenceId)
		if err := m.ask("order.place_batch", map[string]any{"customer_code": m.venue.customer, "orders": []client.OrderEntry{o}}); err != nil {
			return err
		}
		before := len(m.promised)
		if err := m.await("the answer to the order behind the record", func() bool { return len(m.waiting) == 0 }); err != nil {
			return err
		}
		if len(m.promised) == before { // not accepted
			continue
		}
		placed := m.promised[len(m.promised)-1]
		if placed.Sequence <= sequence || !placed.live() {
			return fmt.Errorf("the order %+v was placed after record %d", placed, sequence)
		}
		return m.await("the order behind the record", func() bool {
			_, told := m.view.orderAt(placed.Code, placed.Sequence)
			return told
		})
	}
}

// sameOrders wants the orders that were live after a record to be those that the venue says.
func (m *maker) sameOrders(s *state) error {
	open := m.view.openAt(s.sequence)
	for _, o := range s.orders {
		own, known := open[o.Code]
		if !known {
			return fmt.Errorf("as of record %d the venue has the order %+v, of which the topic has told nothing: %+v", s.sequence, o, m.view.orders[o.Code])
		}
		if !own.same(&o) {
			return fmt.Errorf("as of record %d the venue has %+v, and the topic says %+v", s.sequence, o, own)
		}
	}
	if len(open) != len(s.orders) {
		return fmt.Errorf("as of record %d the venue has %d live orders, and the topic has told of %d: %+v", s.sequence, len(s.orders), len(open), open)
	}
	return nil
}

// samePositions reports whether the trades that were told, and the positions that were, are what the venue says.
func (m *maker) samePositions(s *state) bool {
	return maps.EqualFunc(m.view.positionsAt(s.sequence), s.positions, decimal.Decimal.Equal) &&
		maps.EqualFunc(m.shownAt(s.sequence), s.positions, decimal.Decimal.Equal)
}

// shownAt returns the positions that the topic positions has told up to a record.
func (m *maker) shownAt(sequence int64) map[string]decimal.Decimal {
	shown := make(map[string]decimal.Decimal)
	for symbol, all := range m.view.shown {
		for _, p := range all {
			if at, err := sequenceOf(p.Position); err == nil && at <= sequence {
				shown[symbol] = p.Amount
			}
		}
	}
	maps.DeleteFunc(shown, func(_ string, amount decimal.Decimal) bool { return amount.IsZero() })
	return shown
}

// sameFills wants the trades of each order to add up to what is filled of it.
func (m *maker) sameFills(sequence int64) error {
	sums := make(map[string]decimal.Decimal)
	for _, t := range m.view.trades {
		if t.Sequence <= sequence {
			sums[t.OrderCode] = sums[t.OrderCode].Add(t.Amount)
		}
	}
	for code := range m.view.orders {
		if o, known := m.view.orderAt(code, sequence); known && !o.FilledAmount.Equal(sums[code]) {
			return fmt.Errorf("as of record %d, %s of order %s is filled, and its trades add up to %s", sequence, o.FilledAmount, code, sums[code])
		}
	}
	return nil
}

// keptPromises wants every order that an answer told to have been told by the topic, in the same form.
func (m *maker) keptPromises() error {
	for _, o := range m.promised {
		if told, known := m.view.orderAt(o.Code, o.Sequence); !known || !told.same(&o) {
			return fmt.Errorf("an answer told of %+v, and the topic of %+v", o, m.view.orders[o.Code])
		}
	}
	m.promised = nil
	return nil
}
