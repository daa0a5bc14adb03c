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

// sideName is the action of an order on a side.
func sideName(side int) string { return [2]string{"buy", "sell"}[side] }

// sign is 1 for bids, which add to a position, and −1 for asks.
func sign(side int) int64 { return [2]int64{1, -1}[side] }

// preset is what the demo assumes of an instrument: where its price starts, how much it moves, and what a usual order
// is. The rest it reads from the venue.
type preset struct {
	symbol, price, lot string
	volatility         int64 // of a turn, in parts per million
}

// presets are the instruments that the demo trades, as far as the venue lists them.
func presets() []preset {
	return []preset{
		{"BTCUSDC_PERP", "65000", "0.010", 60},
		{"ETHUSDC_PERP", "3200", "0.20", 75},
		{"SOLUSDC_PERP", "150", "4.0", 95},
	}
}

// market is an instrument and what the demo knows of it.
type market struct {
	symbol     string
	tick, step fixed.Decimal
	lot        int64 // a usual order, in steps
	walk       *walk
	flow       draws // of orders
	index      int64 // in ticks
	before     int64 // the index price before that
	began      int64 // the price that the market was made with
	turns      int64
	rests      int64    // until this turn nobody places orders: the instrument is halted
	cooling    [2]int64 // until this turn the makers do not advance on a side: somebody else's order is in the way
}

// listed is an instrument or ticker as the venue shows it, as far as the demo reads it.
type listed struct {
	Symbol     string         `json:"symbol"`
	PriceTick  fixed.Decimal  `json:"price_tick"`
	AmountStep fixed.Decimal  `json:"amount_step"`
	IndexPrice *fixed.Decimal `json:"index_price"`
}

// newMarket makes the market of a listed instrument. last is its index price in ticks, 0 if it has none yet; run
// tells apart the runs on a venue, 0 for the first one.
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

// move takes the index price one step further.
func (m *market) move() {
	m.turns++
	m.before, m.index = m.index, m.walk.step()
	m.push()
}

// price is the text of a price in ticks.
func (m *market) price(ticks int64) string { return inText(m.tick, ticks) }

// amount is the text of an amount in steps.
func (m *market) amount(steps int64) string { return inText(m.step, steps) }

func inText(unit fixed.Decimal, n int64) string {
	d, _ := unit.Times(n) // a price or amount that the engine can hold
	return d.String()
}

// away returns the price that lies so many parts per million from another one, on the outer side of the book.
func away(from, distance int64, side int) int64 {
	return from - sign(side)*(from*distance/million)
}
