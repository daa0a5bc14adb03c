package wire

import (
	"strconv"

	"github.com/perpetua-exchange/perpetua/domain/fastjson"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Candle is what a price did in an interval that begins at Time. Of mark and index prices Traded is nil.
type Candle struct {
	Time  scalar.Time `json:"time"`
	Open  string      `json:"open"`
	High  string      `json:"high"`
	Low   string      `json:"low"`
	Close string      `json:"close"`
	*Traded
	Closed bool `json:"closed"` // nothing can change it any more
}

// Traded is how much was traded in an interval.
type Traded struct {
	Volume   string `json:"volume"`   // contracts
	Turnover string `json:"turnover"` // quote currency
	Trades   int64  `json:"trades"`
}

// Candles is a list of candles.
type Candles []Candle

// AppendJSON appends the list as the generic encoder writes it.
func (list Candles) AppendJSON(b []byte) ([]byte, error) {
	w := fastjson.Writer{Bytes: append(b, '[')}
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
	for _, of := range [...]struct{ name, value string }{{`,"open":`, k.Open}, {`,"high":`, k.High}, {`,"low":`, k.Low}, {`,"close":`, k.Close}} {
		w.Raw(of.name)
		w.String(of.value)
	}
	if k.Traded != nil {
		w.Raw(`,"volume":`)
		w.String(k.Volume)
		w.Raw(`,"turnover":`)
		w.String(k.Turnover)
		w.Raw(`,"trades":`)
		w.Bytes = strconv.AppendInt(w.Bytes, k.Trades, 10)
	}
	w.Raw(`,"closed":`)
	w.Bool(k.Closed)
	w.Raw(`}`)
}
