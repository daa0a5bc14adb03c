package demo

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
)

// resting is one of the demo's live orders, as the venue reported it.
type resting struct {
	code      string
	customer  string
	symbol    string
	side      int
	price     int64 // in ticks
	remaining int64 // in steps
	filled    int64 // in steps
	reference string
}

// slot is the place of a maker's order in its ladder. It is part of the order's reference_id, so that it is recognized
// after a restart.
type slot struct{ side, level int }

// reference returns the text of the slot, followed by what makes it unique.
func (s slot) reference(unique string) string {
	return string("ba"[s.side]) + strconv.Itoa(s.level) + "-" + unique
}

// slotOf parses the slot in a reference. ok is false for an order without a slot.
func slotOf(reference string) (s slot, ok bool) {
	head, _, found := strings.Cut(reference, "-")
	if !found || len(head) < 2 {
		return s, false
	}
	level, err := strconv.Atoi(head[1:])
	side := strings.IndexByte("ba", head[0])
	return slot{side, level}, err == nil && side >= 0
}

// mirror holds the live orders and positions of the demo's customers, as reported by REST and the socket.
type mirror struct {
	orders    map[string]resting       // by code
	positions map[string]int64         // in steps, by customer and symbol
	asOf      map[string]int64         // log sequence at which a customer's positions were read
	units     map[string]fixed.Decimal // amount_step by symbol
	ticks     map[string]fixed.Decimal // price_tick by symbol
}

func newMirror(markets []*market) *mirror {
	m := &mirror{orders: make(map[string]resting), positions: make(map[string]int64), asOf: make(map[string]int64),
		units: make(map[string]fixed.Decimal), ticks: make(map[string]fixed.Decimal)}
	for _, k := range markets {
		m.units[k.symbol], m.ticks[k.symbol] = k.step, k.tick
	}
	return m
}

// orderView is an order in REST responses and socket messages.
type orderView struct {
	Code         string         `json:"code"`
	CustomerCode string         `json:"customer_code"`
	Symbol       string         `json:"symbol"`
	Action       string         `json:"action"`
	Status       string         `json:"status"`
	Amount       fixed.Decimal  `json:"amount"`
	FilledAmount fixed.Decimal  `json:"filled_amount"`
	LimitPrice   *fixed.Decimal `json:"limit_price"`
	ReferenceID  string         `json:"reference_id"`
}

// learn records the state of an order after the record at a sequence. The amount filled since its last known state
// changes the customer's position.
func (m *mirror) learn(o orderView, sequence int64) {
	unit, traded := m.units[o.Symbol]
	if !traded {
		return // the demo does not trade this instrument
	}
	amount, _ := o.Amount.Over(unit)
	filled, _ := o.FilledAmount.Over(unit)
	side := bid
	if o.Action == sideName(ask) {
		side = ask
	}
	if sequence > m.asOf[o.CustomerCode] {
		m.positions[o.CustomerCode+" "+o.Symbol] += sign(side) * (filled - m.orders[o.Code].filled)
	}
	if o.Status != "open" && o.Status != "partially_filled" {
		delete(m.orders, o.Code)
		return
	}
	r := resting{code: o.Code, customer: o.CustomerCode, symbol: o.Symbol, side: side, remaining: amount - filled, filled: filled,
		reference: o.ReferenceID}
	if o.LimitPrice != nil {
		r.price, _ = o.LimitPrice.Over(m.ticks[o.Symbol])
	}
	m.orders[o.Code] = r
}

// position returns a customer's position in steps.
func (m *mirror) position(customer, symbol string) int64 { return m.positions[customer+" "+symbol] }

// on returns the live orders on an instrument, sorted by customer and reference, which is unique.
func (m *mirror) on(symbol string) []resting {
	var out []resting
	for _, o := range m.orders {
		if o.symbol == symbol {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b resting) int {
		return cmp.Or(cmp.Compare(a.customer, b.customer), cmp.Compare(a.reference, b.reference), cmp.Compare(a.code, b.code))
	})
	return out
}

// positionOf is a position in REST responses.
type positionOf struct {
	Symbol string        `json:"symbol"`
	Amount fixed.Decimal `json:"amount"`
}

// hold records a customer's positions after the record at a sequence.
func (m *mirror) hold(customer string, all []positionOf, sequence int64) {
	m.asOf[customer] = sequence
	for _, p := range all {
		if unit, traded := m.units[p.Symbol]; traded {
			m.positions[customer+" "+p.Symbol], _ = p.Amount.Over(unit)
		}
	}
}
