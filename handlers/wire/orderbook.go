package wire

import (
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
)

// Level is the total amount at one price.
type Level struct {
	Price  fixed.Decimal `json:"price"`
	Amount fixed.Decimal `json:"amount"`
}

// Orderbook is a book as of a record.
type Orderbook struct {
	Symbol    string      `json:"symbol"`
	Sequence  int64       `json:"sequence"`
	Bids      []Level     `json:"bids"` // best price first, like Asks
	Asks      []Level     `json:"asks"`
	Timestamp scalar.Time `json:"timestamp"`
}

// NewOrderbook returns up to depth levels of each side of a book, or all if depth is 0. sequence and at are those of the
// record that the book is as of.
func NewOrderbook(s *trading.State, symbol string, depth int, sequence int64, at scalar.Time) Orderbook {
	bids, asks := s.Depth(symbol, depth)
	return Orderbook{symbol, sequence, levels(bids), levels(asks), at}
}

func levels(of []trading.Level) []Level {
	out := make([]Level, len(of))
	for i, l := range of {
		out[i] = Level{l.Price, l.Amount}
	}
	return out
}
