package live

import (
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
	"github.com/perpetua-exchange/perpetua/streams/journal"
)

// instrumentMessage is an instrument on the channel instruments.
type instrumentMessage struct {
	Channel string `json:"channel"`
	Kind    string `json:"type"`
	wire.Instrument
}

// publishInstruments sends the instruments that a record changed: their parameters, or the status in force, which guards
// change as well as the operator. It runs under the fold's lock and the hub's.
func (h *Hub) publishInstruments(e journal.Entry, s *trading.State) {
	changed := make(map[string]bool)
	for _, event := range e.Record.Events {
		switch event := event.(type) {
		case trading.OrderEvent, *trading.TradeExecuted: // as nearly all records: they change no instrument
			continue
		case *trading.InstrumentListed:
			changed[event.Symbol] = true
		case *trading.InstrumentChanged:
			changed[event.Symbol] = true
		case *trading.InstrumentDelisted:
			changed[event.Symbol] = true
			h.publishInstrument(&event.Instrument, market.Withdrawn, s, e.Record.Sequence)
		}
	}
	if len(changed) == 0 && !mayMoveStatus(e) {
		return
	}
	for _, i := range s.Instruments() {
		status, _ := s.Status(i.Symbol)
		if before, known := h.statuses[i.Symbol]; changed[i.Symbol] || known && before != status {
			h.publishInstrument(&i, status, s, e.Record.Sequence)
		}
		h.statuses[i.Symbol] = status
	}
}

// noteStatuses takes note of the statuses in force.
func (h *Hub) noteStatuses(s *trading.State) {
	for _, i := range s.Instruments() {
		h.statuses[i.Symbol], _ = s.Status(i.Symbol)
	}
}

// mayMoveStatus reports whether a record may change a status in force without naming the instrument's parameters.
func mayMoveStatus(e journal.Entry) bool {
	switch e.Record.Events[0].(type) {
	case trading.OrderEvent, *trading.TradeExecuted:
		return false
	}
	return true
}

func (h *Hub) publishInstrument(i *market.Instrument, status market.Status, s *trading.State, sequence int64) {
	listed := s.Listed(i.Symbol)
	h.publish(&draft{channel: instruments, value: &instrumentMessage{instruments.name, update, wire.NewInstrument(i, status, listed)}},
		h.logPosition(sequence).String())
}
