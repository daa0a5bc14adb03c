package live

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
)

// bookStream is the common state of all subscriptions to one order book. sequence is that of the last record that
// changed the book, or of the last record before the first subscription. All subscriptions have the same sequence, so
// they share each update, and its prev_sequence is the sequence of each subscriber's previous message.
type bookStream struct {
	sequence int64
	time     scalar.Time // of the record at sequence
	snapshot *message    // the book at sequence; nil until a subscription needs it
}

// snapshotMessage is a complete order book.
type snapshotMessage struct {
	Channel string `json:"channel"`
	Type    string `json:"type"`
	wire.Orderbook
}

// bookUpdate contains the changes of a book by one record.
type bookUpdate struct {
	Channel      string      `json:"channel"`
	Type         string      `json:"type"`
	Symbol       string      `json:"symbol"`
	PrevSequence int64       `json:"prev_sequence"`
	Sequence     int64       `json:"sequence"`
	Changes      []change    `json:"changes"`
	Timestamp    scalar.Time `json:"timestamp"`
}

// change is a change of one price level. The amount is the new one, "0" on delete.
type change struct {
	Action string        `json:"action"` // new, change or delete
	Type   string        `json:"type"`   // bid or ask
	Price  fixed.Decimal `json:"price"`
	Amount fixed.Decimal `json:"amount"`
}

// sendSnapshot sends the book to a new subscription. The caller holds the fold's lock and the hub's.
func (h *Hub) sendSnapshot(sub *subscription, state *trading.State, sequence int64) {
	symbol := sub.key.name
	b := h.streams.books[symbol]
	if b == nil {
		b = &bookStream{sequence: sequence, time: h.streams.last.Time}
		h.streams.books[symbol] = b
	}
	if b.snapshot == nil {
		h.metrics.encoded.Add(1)
		b.snapshot = &message{position: h.logPosition(b.sequence).String(),
			plain: encode(snapshotMessage{sub.topic, snapshot, wire.NewOrderbook(state, symbol, 0, b.sequence, b.time)})}
	}
	h.sendTo(sub, b.snapshot)
}

// publishBooks sends the changes by the record at the stamp, one update for each book that has subscriptions.
func (h *Hub) publishBooks(state *trading.State, at decide.Stamp) {
	if len(h.streams.books) == 0 {
		return
	}
	changes := state.BookChanges()
	for len(changes) > 0 {
		n := 1
		for n < len(changes) && changes[n].Symbol == changes[0].Symbol {
			n++
		}
		if b := h.streams.books[changes[0].Symbol]; b != nil {
			h.publishBook(b, changes[:n], at)
		}
		changes = changes[n:]
	}
}

func (h *Hub) publishBook(b *bookStream, changes []trading.BookChange, at decide.Stamp) {
	symbol := changes[0].Symbol
	u := &bookUpdate{orderbook.topic(symbol), update, symbol, b.sequence, at.Sequence, make([]change, len(changes)), at.Time}
	for i, c := range changes {
		u.Changes[i] = changeOf(c)
	}
	b.sequence, b.time, b.snapshot = at.Sequence, at.Time, nil
	h.publish(&draft{channel: orderbook, symbol: symbol, value: u}, h.logPosition(at.Sequence).String())
}

func changeOf(c trading.BookChange) change {
	out := change{"change", "bid", c.Price, c.After}
	if c.Action == order.Sell {
		out.Type = "ask"
	}
	switch {
	case c.After.IsZero():
		out.Action, out.Amount = "delete", fixed.Decimal{} // "0" without decimals
	case c.Before.IsZero():
		out.Action = "new"
	}
	return out
}

// rejectWithdrawn ends the subscriptions to a withdrawn instrument.
func (h *Hub) rejectWithdrawn(symbol string) {
	for _, c := range channels() {
		for _, of := range c.topicsOf(symbol) {
			k := key{c, ofSymbol, of}
			for len(h.streams.index.readers[k]) > 0 {
				readers := h.streams.index.readers[k]
				h.expel(readers[len(readers)-1], c.refused, "the instrument is withdrawn")
			}
		}
	}
}
