package demo

// million is the unit of relative distances: parts per million.
const million = 1_000_000

// The walk counts in 2^-16 ticks, so that a step much smaller than a tick still counts.
const fraction = 16

// walk is an index price that wanders: each step is a random shock, plus a trend that itself wanders slowly, plus a
// pull towards the base. It stays within three quarters and four thirds of the base.
type walk struct {
	draws      draws
	value      int64 // in 2^-16 ticks
	base       int64 // likewise
	volatility int64 // standard deviation of the shock in parts per million
	trend      int64 // parts per billion a step
}

// newWalk starts at a price in ticks. One that is out of bounds becomes the base: the operator has moved the market.
func newWalk(d draws, base, volatility, start int64) *walk {
	w := &walk{draws: d, value: start << fraction, base: base << fraction, volatility: volatility}
	if w.value < w.floor() || w.value > w.ceiling() {
		w.base = w.value
	}
	return w
}

func (w *walk) floor() int64   { return w.base / 4 * 3 }
func (w *walk) ceiling() int64 { return w.base / 3 * 4 }

// ticks is the price.
func (w *walk) ticks() int64 { return w.value >> fraction }

// push moves the price by so many parts per million, as far as it may go, and returns it.
func (w *walk) push(distance int64) int64 {
	w.value = min(max(w.value+w.value/million*distance, w.floor()), w.ceiling())
	return w.ticks()
}

// step moves the price and returns it.
func (w *walk) step() int64 {
	reach := w.volatility * 1000 * 7 / 8 // the sum of four draws from −r to r deviates by 2r/√3
	shock := int64(0)
	for range 4 {
		shock += w.draws.within(reach)
	}
	// The trend forgets a 64th of itself a step; its own deviation is about a fifth of the shock's.
	w.trend += w.draws.within(w.volatility*1000/16) - w.trend/64
	moved := w.value / million * (shock + w.trend) / 1000
	pull := (w.base - w.value) / (1 << 14)
	w.value = min(max(w.value+moved+pull, w.floor()), w.ceiling())
	return w.ticks()
}
