package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/schedule"
)

// AlarmSettlement is the kind of alarm for instruments that are left out of a settlement, since it would bring a
// balance beyond its limit. Their profits and losses stay unrealized until the next settlement.
const AlarmSettlement = "settlement_left_out"

// settlementWork is the daily settlement. One step fixes the mark prices for all positions. After several missed
// settlements there is only one, at the mark prices of when it is done, stale or not.
type settlementWork struct{}

func (settlementWork) work(*dueEntry) Work      { return WorkSettlement }
func (settlementWork) subject(*dueEntry) string { return "daily" }

func (settlementWork) visit(v *visit, _ *dueEntry) *dueEntry { return v.settlement }

func (settlementWork) step(s *State, at decide.Stamp, entries []*dueEntry, _ bool) decide.Decision {
	e := &SettlementFixed{Time: entries[0].Time, Marks: []SettlementMark{}}
	for next := market.NextSettlement(e.Time); next <= at.Time; next = market.NextSettlement(e.Time) {
		e.Time = next
	}
	b, left := s.newBooking(), ""
	for _, i := range s.listing {
		switch {
		case i.openInterest == 0:
		case b.admit(&charge{kind: settlementCharge, instrument: i, mark: i.mark}, maxSettled):
			e.Marks = append(e.Marks, SettlementMark{i.contract.Symbol, i.contract.MarkPrice(i.mark)})
		default:
			left += " " + i.contract.Symbol
		}
	}
	d := stepped(WorkSettlement, e)
	if left != "" {
		d.Alarm = decide.Alarm{Kind: AlarmSettlement, Message: "no balance may be beyond " + maxSettled.String() + " " + currency +
			": what was gained and lost waits for the next settlement, on" + left}
	}
	return d
}

// settlementFixed applies the event: from now on all holders of a position owe the settlement.
func (f *fold) settlementFixed(e *SettlementFixed) {
	f.armSettlement(e.Time)
	for _, m := range e.Marks {
		i := f.instrument(m.Symbol)
		mark, _ := i.contract.Marks(m.MarkPrice)
		f.owe(&charge{kind: settlementCharge, instrument: i, time: e.Time, mark: mark})
	}
}

// armSettlement puts the first settlement after a time on the due list.
func (f *fold) armSettlement(after scalar.Time) {
	f.cancelEntry(f.settlement)
	f.settlement = &dueEntry{Slot: schedule.At(market.NextSettlement(after), dueSettlement)}
	f.due.push(f.settlement)
}
