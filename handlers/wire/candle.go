package wire

import (
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

// Candles is a list that encodes each candle when it is added, so that a page is encoded while its rows are read.
type Candles struct{ w fastjson.Writer }

// NewCandles returns an empty list with space for n candles.
func NewCandles(n int) *Candles {
	return &Candles{fastjson.Writer{Bytes: append(make([]byte, 0, 2+n*candleSize), '[')}}
}

// Add appends a candle, exactly as the generic encoder writes it.
func (list *Candles) Add(k *Candle) {
	if len(list.w.Bytes) > 1 {
		list.w.Raw(`,`)
	}
	k.write(&list.w)
}

// AppendJSON appends the list. If b is empty, the result is the list's own memory, which may no longer be used.
func (list *Candles) AppendJSON(b []byte) ([]byte, error) {
	list.w.Raw(`]`)
	if len(b) == 0 {
		return list.w.Bytes, list.w.Err
	}
	return append(b, list.w.Bytes...), list.w.Err
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
