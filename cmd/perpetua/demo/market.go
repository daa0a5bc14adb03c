package demo

import (
	"fmt"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
)

// The sides of a book.
const (
	bid = iota
	ask
)

// sideName returns the action of an order on a side.
func sideName(side int) string { return [2]string{"buy", "sell"}[side] }

// sign returns 1 for bids, which add to a position, and −1 for asks.
func sign(side int) int64 { return [2]int64{1, -1}[side] }

// preset holds the demo's assumptions about an instrument: its initial price, how much the price moves, and the usual
// size of an order. The demo reads the other properties from the venue.
type preset struct {
	symbol, price, lot string
	volatility         int64 // of a turn, in parts per million
}

// presets returns the instruments that the demo trades, if the venue lists them.
func presets() []preset {
	return []preset{
		{"BTCUSDC_PERP", "65000", "0.010", 60},
		{"ETHUSDC_PERP", "3200", "0.20", 75},
		{"SOLUSDC_PERP", "150", "4.0", 95},
	}
}

// market is the state of an instrument in the demo.
type market struct {
	symbol     string
	tick, step fixed.Decimal
	lot        int64 // usual size of an order, in steps
	walk       *walk
	flow       draws // random numbers for orders
	index      int64 // index price in ticks
	before     int64 // previous index price
	began      int64 // base price of the market, from the preset
	turns      int64
	rests      int64    // no orders are placed before this turn: the instrument is halted
	cooling    [2]int64 // by side, the makers do not advance before this turn: another trader's order blocks them
}

// listed is the part of an instrument or ticker that the demo reads.
type listed struct {
	Symbol     string         `json:"symbol"`
	PriceTick  fixed.Decimal  `json:"price_tick"`
	AmountStep fixed.Decimal  `json:"amount_step"`
	IndexPrice *fixed.Decimal `json:"index_price"`
}

// newMarket returns the market of a listed instrument. last is its index price in ticks, 0 if it has none yet. run
// identifies the run on a venue, 0 for the first one.
func newMarket(p preset, number int, i listed, last int64, seed, run uint64) (*market, error) {
	base, err := inUnits(p.price, i.PriceTick)
	if err != nil {
		return nil, fmt.Errorf("%s: the price %s: %w", p.symbol, p.price, err)
	}
	lot, err := inUnits(p.lot, i.AmountStep)
	if err != nil {
		return nil, fmt.Errorf("%s: the amount %s: %w", p.symbol, p.lot, err)
	}
	start := last
	if start == 0 {
		start = base
	}
	stream := run<<8 | uint64(number)<<1
	return &market{symbol: p.symbol, tick: i.PriceTick, step: i.AmountStep, lot: lot, index: start, before: start, began: base,
		walk: newWalk(newDraws(seed, stream), base, p.volatility, start), flow: newDraws(seed, stream|1)}, nil
}

func inUnits(text string, unit fixed.Decimal) (int64, error) {
	d, err := fixed.ParseDecimal(text)
	if err != nil {
		return 0, err
	}
	n, whole := d.Over(unit)
	if !whole || n <= 0 {
		return 0, fmt.Errorf("is no multiple of %s", unit)
	}
	return n, nil
}

// move advances the index price by one step.
func (m *market) move() {
	m.turns++
	m.before, m.index = m.index, m.walk.step()
	m.push()
}

// price formats a price in ticks.
func (m *market) price(ticks int64) string { return inText(m.tick, ticks) }

// amount formats an amount in steps.
func (m *market) amount(steps int64) string { return inText(m.step, steps) }

func inText(unit fixed.Decimal, n int64) string {
	d, _ := unit.Times(n) // never overflows: the engine accepts such prices and amounts
	return d.String()
}

// away returns the price at a distance, in parts per million, from another price, toward the outer end of a side of the
// book.
func away(from, distance int64, side int) int64 {
	return from - sign(side)*(from*distance/million)
}
