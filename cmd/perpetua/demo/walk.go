package demo

// million is the unit of relative distances: parts per million.
const million = 1_000_000

// The walk counts in 2^-16 ticks, so that steps much smaller than a tick add up.
const fraction = 16

// walk is a random index price. Each step is the sum of a random shock, a trend that itself changes slowly, and a pull
// toward the base. The price stays within three quarters and four thirds of the base.
type walk struct {
	draws      draws
	value      int64 // in 2^-16 ticks
	base       int64 // in 2^-16 ticks
	volatility int64 // standard deviation of the shock in parts per million
	trend      int64 // parts per billion per step
}

// newWalk starts at a price in ticks. If the price is outside of the bounds, it becomes the base: an operator has moved
// the market.
func newWalk(d draws, base, volatility, start int64) *walk {
	w := &walk{draws: d, value: start << fraction, base: base << fraction, volatility: volatility}
	if w.value < w.floor() || w.value > w.ceiling() {
		w.base = w.value
	}
	return w
}

func (w *walk) floor() int64   { return w.base / 4 * 3 }
func (w *walk) ceiling() int64 { return w.base / 3 * 4 }

// ticks returns the price in ticks.
func (w *walk) ticks() int64 { return w.value >> fraction }

// push moves the price by a distance in parts per million, within the bounds, and returns it.
func (w *walk) push(distance int64) int64 {
	w.value = min(max(w.value+w.value/million*distance, w.floor()), w.ceiling())
	return w.ticks()
}

// step moves the price and returns it.
func (w *walk) step() int64 {
	reach := w.volatility * 1000 * 7 / 8 // the sum of four draws from −r to r has a standard deviation of 2r/√3
	shock := int64(0)
	for range 4 {
		shock += w.draws.within(reach)
	}
	// The trend decays by 1/64 per step. Its standard deviation is about a fifth of the shock's.
	w.trend += w.draws.within(w.volatility*1000/16) - w.trend/64
	moved := w.value / million * (shock + w.trend) / 1000
	pull := (w.base - w.value) / (1 << 14)
	w.value = min(max(w.value+moved+pull, w.floor()), w.ceiling())
	return w.ticks()
}
