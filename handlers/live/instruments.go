package live

import (
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// instrumentMessage is an instrument on the instruments channel.
type instrumentMessage struct {
	Channel string `json:"channel"`
	Kind    string `json:"type"`
	wire.Instrument
}

// publishInstruments sends the instruments that a record changed: their parameters or their effective status, which
// the operator or a guard may change. Every change of a status has an event that names the instrument, so other
// instruments need no check. It runs under the fold's lock and the hub's.
func (h *Hub) publishInstruments(e record.Entry, s *trading.State) {
	for _, event := range e.Record.Events {
		switch event := event.(type) {
		case *trading.InstrumentListed:
			h.publishChanged(event.Symbol, true, s, e.Record.Sequence)
		case *trading.InstrumentChanged:
			h.publishChanged(event.Symbol, true, s, e.Record.Sequence)
		case *trading.InstrumentDelisted:
			h.publishInstrument(&event.Instrument, market.Withdrawn, s, e.Record.Sequence)
			delete(h.streams.statuses, event.Symbol)
		case *trading.GuardSet:
			h.publishChanged(event.Symbol, false, s, e.Record.Sequence)
		case *trading.IndexUpdated: // the first index price lifts the guard; early rules record no event for that
			h.publishChanged(event.Symbol, false, s, e.Record.Sequence)
		}
	}
}

// publishChanged sends an instrument if its parameters changed or its effective status differs from the status before
// the record.
func (h *Hub) publishChanged(symbol string, parameters bool, s *trading.State, sequence int64) {
	status, _ := s.Status(symbol)
	before, known := h.streams.statuses[symbol]
	h.streams.statuses[symbol] = status
	if parameters || known && before != status {
		i, _ := s.Instrument(symbol)
		h.publishInstrument(&i, status, s, sequence)
	}
}

// noteStatuses stores the effective statuses.
func (h *Hub) noteStatuses(s *trading.State) {
	for _, i := range s.Instruments() {
		h.streams.statuses[i.Symbol], _ = s.Status(i.Symbol)
	}
}

func (h *Hub) publishInstrument(i *market.Instrument, status market.Status, s *trading.State, sequence int64) {
	listed := s.Listed(i.Symbol)
	h.publish(&draft{channel: instruments, value: &instrumentMessage{instruments.name, update, wire.NewInstrument(i, status, listed)}},
		h.logPosition(sequence).String())
}
