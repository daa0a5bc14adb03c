package tickers

import (
	"slices"

	"github.com/shopspring/decimal"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Recent holds the latest trades of a fold. The rest of a ticker comes from the fold. Its figures of the day come from
// rows, which follow the log independently and are a few records before or behind the fold. Adding the trades in
// between brings the figures to the fold's position, so that the whole ticker is as of one record.
//
// Observe is a listener of the fold, and Bring is called in a view of the same fold. The fold's lock separates the two.
type Recent struct {
	ring  []recentTrade
	next  int   // the index of the oldest trade when the ring is full
	whole int64 // the sequence from which no trade is missing
	begun bool
}

type recentTrade struct {
	sequence int64
	time     scalar.Time
	symbol   string
	price    fixed.Decimal
	amount   fixed.Decimal
	notional fixed.Money
}

// mostRecent is the capacity of the ring: the trades of ten seconds or more in a busy market. Rows are usually some
// tens of milliseconds behind.
const mostRecent = 1 << 16

// Observe adds the trades of a record.
func (r *Recent) Observe(e record.Entry, _ decide.State) {
	if !r.begun {
		r.begun, r.whole = true, e.Position.Sequence
	}
	for _, event := range e.Record.Events {
		t, ok := event.(*trading.TradeExecuted)
		if !ok || !t.MovesLastPrice() {
			continue
		}
		trade := recentTrade{e.Position.Sequence, e.Record.Time, t.Symbol, t.Price, t.Amount, t.Notional}
		if len(r.ring) < mostRecent {
			r.ring = append(r.ring, trade)
			continue
		}
		// The overwritten trade may be one of several in its record.
		r.whole = r.ring[r.next].sequence + 1
		r.ring[r.next] = trade
		r.next = (r.next + 1) % len(r.ring)
	}
}

// Bring adds to figures the trades of the records after the figures' sequence, up to the fold's later position. It
// returns false and changes nothing if some of these trades are no longer held, or if the figures are newer.
func (r *Recent) Bring(figures []Figures, since scalar.Time, from, to int64) ([]Figures, bool) {
	if from == to {
		return figures, true
	}
	if from > to || !r.begun || from+1 < r.whole {
		return figures, false
	}
	// The trades after from are the last ones.
	behind := 0
	for behind < len(r.ring) && r.at(len(r.ring)-1-behind).sequence > from {
		behind++
	}
	figures = slices.Clone(figures)
	for i := len(r.ring) - behind; i < len(r.ring); i++ {
		if t := r.at(i); t.time >= since {
			figures = add(figures, t)
		}
	}
	return figures, true
}

// at returns the trade with an index, counted from the oldest.
func (r *Recent) at(i int) *recentTrade { return &r.ring[(r.next+i)%len(r.ring)] }

// add adds a trade that is later than all trades in the figures.
func add(figures []Figures, t *recentTrade) []Figures {
	i := slices.IndexFunc(figures, func(f Figures) bool { return f.Symbol == t.symbol })
	if i < 0 {
		i = len(figures)
		figures = append(figures, Figures{Symbol: t.symbol, Open: t.price, High: t.price, Low: t.price})
	}
	f := &figures[i]
	if t.price.Cmp(f.High) > 0 {
		f.High = t.price
	}
	if t.price.Cmp(f.Low) < 0 {
		f.Low = t.price
	}
	f.Close = t.price
	f.Volume = f.Volume.Add(number(t.amount))
	f.Turnover = f.Turnover.Add(number(t.notional.Decimal()))
	return figures
}

func number(d fixed.Decimal) decimal.Decimal { return decimal.New(d.Coef, -int32(d.Scale)) }
