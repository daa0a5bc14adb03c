package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// settlementWork is the daily settlement, of which one step fixes the mark prices for all positions. Of several that were
// missed there is one, at the marks of when it is done, stale or not.
type settlementWork struct{}

func (settlementWork) work(*dueEntry) Work      { return WorkSettlement }
func (settlementWork) subject(*dueEntry) string { return "daily" }
func (settlementWork) save(*saver, *dueEntry)   {}
func (settlementWork) load(v *loader) *dueEntry { return v.settlement }

func (settlementWork) step(s *State, at decide.Stamp, entries []*dueEntry, _ bool) decide.Decision {
	e := &SettlementFixed{Time: entries[0].time, Marks: []SettlementMark{}}
	for next := market.NextSettlement(e.Time); next <= at.Time; next = market.NextSettlement(e.Time) {
		e.Time = next
	}
	for _, i := range s.listing {
		if i.openInterest != 0 {
			e.Marks = append(e.Marks, SettlementMark{i.contract.Symbol, i.contract.MarkPrice(i.mark)})
		}
	}
	return stepped(WorkSettlement, e)
}

// settlementFixed takes over the marks: from here on all who hold a position owe it.
func (f *fold) settlementFixed(e *SettlementFixed) {
	f.armSettlement(e.Time)
	for _, m := range e.Marks {
		i := f.instrument(m.Symbol)
		mark, _ := i.contract.Marks(m.MarkPrice)
		f.owe(&instant{kind: instantSettlement, instrument: i, time: e.Time, mark: mark})
	}
}

// armSettlement puts the first settlement after a time on the due list.
func (f *fold) armSettlement(after scalar.Time) {
	f.cancelEntry(f.settlement)
	f.settlement = &dueEntry{time: market.NextSettlement(after), kind: dueSettlement}
	f.due.push(f.settlement)
}
