package livetest

import (
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/shopspring/decimal"
)

// Level is a price level.
type Level struct {
	Price  string `json:"price"`
	Amount string `json:"amount"`
}

// Book is an order book built from the messages of a stream.
type Book struct {
	Sequence int64
	begun    bool
	bids     map[string]string
	asks     map[string]string
}

type bookMessage struct {
	Type         string  `json:"type"`
	PrevSequence int64   `json:"prev_sequence"`
	Sequence     int64   `json:"sequence"`
	Bids         []Level `json:"bids"`
	Asks         []Level `json:"asks"`
	Changes      []struct {
		Action string `json:"action"`
		Type   string `json:"type"`
		Price  string `json:"price"`
		Amount string `json:"amount"`
	} `json:"changes"`
}

// Apply applies a snapshot or an update. It returns an error if the message violates a guarantee of the stream.
func (b *Book) Apply(m Message) error {
	var message bookMessage
	if err := json.Unmarshal(m.Raw, &message); err != nil {
		return fmt.Errorf("a message of an order book: %w", err)
	}
	switch {
	case message.Type == "snapshot":
		b.begun, b.bids, b.asks = true, make(map[string]string), make(map[string]string)
		for _, l := range message.Bids {
			b.bids[l.Price] = l.Amount
		}
		for _, l := range message.Asks {
			b.asks[l.Price] = l.Amount
		}
		if !slices.Equal(b.Bids(), message.Bids) || !slices.Equal(b.Asks(), message.Asks) {
			return fmt.Errorf("the levels of the snapshot at %d are not in order", message.Sequence)
		}
	case message.Type != "update":
		return fmt.Errorf("a message of type %q", message.Type)
	case !b.begun:
		return fmt.Errorf("an update at %d before the snapshot", message.Sequence)
	case message.PrevSequence != b.Sequence || message.Sequence <= b.Sequence:
		return fmt.Errorf("an update from %d to %d does not follow on %d", message.PrevSequence, message.Sequence, b.Sequence)
	default:
		for _, c := range message.Changes {
			side := b.bids
			if c.Type == "ask" {
				side = b.asks
			}
			_, there := side[c.Price]
			switch {
			case c.Action == "new" && !there, c.Action == "change" && there && side[c.Price] != c.Amount:
				side[c.Price] = c.Amount
			case c.Action == "delete" && there && c.Amount == "0":
				delete(side, c.Price)
			default:
				return fmt.Errorf("the change %+v at %d does not fit the book", c, message.Sequence)
			}
		}
	}
	b.Sequence = message.Sequence
	return b.uncrossed()
}

func (b *Book) uncrossed() error {
	bids, asks := b.Bids(), b.Asks()
	if len(bids) > 0 && len(asks) > 0 && !number(bids[0].Price).LessThan(number(asks[0].Price)) {
		return fmt.Errorf("crossed at %d: bid %s, ask %s", b.Sequence, bids[0].Price, asks[0].Price)
	}
	return nil
}

func number(s string) decimal.Decimal {
	d, err := decimal.NewFromString(s)
	if err != nil {
		return decimal.Zero
	}
	return d
}

// Bids returns the bids, highest first.
func (b *Book) Bids() []Level { return sorted(b.bids, -1) }

// Asks returns the asks, lowest first.
func (b *Book) Asks() []Level { return sorted(b.asks, 1) }

func sorted(side map[string]string, direction int) []Level {
	out := make([]Level, 0, len(side))
	for _, price := range slices.Collect(maps.Keys(side)) {
		out = append(out, Level{price, side[price]})
	}
	slices.SortFunc(out, func(x, y Level) int { return direction * number(x.Price).Cmp(number(y.Price)) })
	return out
}
