package wire

import (
	"slices"
	"strconv"

	"github.com/perpetua-exchange/perpetua/domain/fastjson"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Candle is the price range of the interval that begins at Time. Traded is nil for mark and index prices.
type Candle struct {
	Time  scalar.Time `json:"time"`
	Open  string      `json:"open"`
	High  string      `json:"high"`
	Low   string      `json:"low"`
	Close string      `json:"close"`
	*Traded
	Closed bool `json:"closed"` // the candle is final
}

// Traded is the volume of an interval.
type Traded struct {
	Volume   string `json:"volume"`   // contracts
	Turnover string `json:"turnover"` // quote currency
	Trades   int64  `json:"trades"`
}

// candleSize is the capacity reserved per candle; nearly every candle fits.
const candleSize = 208

// Candles is a list of candles.
type Candles []Candle

// AppendJSON appends the list exactly as the generic encoder writes it.
func (list Candles) AppendJSON(b []byte) ([]byte, error) {
	w := fastjson.Writer{Bytes: append(slices.Grow(b, 2+len(list)*candleSize), '[')}
	for i := range list {
		if i > 0 {
			w.Raw(`,`)
		}
		list[i].write(&w)
	}
	w.Raw(`]`)
	return w.Bytes, w.Err
}

func (k *Candle) write(w *fastjson.Writer) {
	w.Raw(`{"time":`)
	fastjson.Text(w, k.Time)
	number(w, `,"open":"`, k.Open)
	number(w, `,"high":"`, k.High)
	number(w, `,"low":"`, k.Low)
	number(w, `,"close":"`, k.Close)
	if k.Traded != nil {
		number(w, `,"volume":"`, k.Volume)
		number(w, `,"turnover":"`, k.Turnover)
		w.Raw(`,"trades":`)
		w.Bytes = strconv.AppendInt(w.Bytes, k.Trades, 10)
	}
	w.Raw(`,"closed":`)
	w.Bool(k.Closed)
	w.Raw(`}`)
}

// number writes a member with a numeric text, which needs no escaping.
func number(w *fastjson.Writer, name, text string) {
	w.Raw(name)
	w.Raw(text)
	w.Raw(`"`)
}
