package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// latestFunding is how late a funding instant may be fixed. One that comes later, since nobody served, is recorded as
// missed and never charged.
const latestFunding = scalar.Minute

// fundingWork is the instants of funding. A step fixes the rate and the mark price for all who hold a position; what
// follows from that for each of them is posted after it: see due_posting.go.
type fundingWork struct{}

func (fundingWork) work(*dueEntry) Work        { return WorkFunding }
func (fundingWork) subject(e *dueEntry) string { return e.instrument.contract.Symbol }
func (fundingWork) save(v *saver, e *dueEntry) { v.Len(e.instrument.index) }
func (fundingWork) load(v *loader) *dueEntry {
	return v.entryOf(func(i *instrument) *dueEntry { return i.funding })
}

// step fixes the instants that are due at one time, which every instrument has its own of, and more where they are missed:
// there may be very many after a long silence.
func (fundingWork) step(s *State, at decide.Stamp, entries []*dueEntry, single bool) decide.Decision {
	var events []decide.Event
	b := s.newBooking()
	for _, e := range entries {
		if e.time != entries[0].time {
			break
		}
		i, time := e.instrument, e.time
		first := i.fix(at, time)
		if rate := first.FundingRate.Coef; rate != 0 && !b.admit(&instant{kind: instantFunding, instrument: i, mark: i.mark, rate: rate}, maxFunded) {
			panic("trading: the funding of " + i.contract.Symbol + " would bring a balance beyond what it may be") // so it is set aside
		}
		events = append(events, first)
		for at.Time-time > latestFunding && len(events) < s.most(single) {
			if time = market.NextFunding(time, i.contract.FundingIntervalSeconds); at.Time-time > latestFunding {
				events = append(events, i.fix(at, time))
			}
		}
	}
	return stepped(WorkFunding, events...)
}

// fix decides what is fixed for an instant.
func (i *instrument) fix(at decide.Stamp, instant scalar.Time) *FundingFixed {
	c := i.contract
	e := &FundingFixed{Symbol: c.Symbol, IndexPrice: c.IndexPrice(i.indexPrice), MarkPrice: c.MarkPrice(i.mark),
		IntervalSeconds: c.FundingIntervalSeconds, Time: instant, Missed: at.Time-instant > latestFunding}
	e.FundingRate = market.Rate(0)
	if !e.Missed {
		e.FundingRate = market.Rate(c.FundingRate(i.premiums))
	}
	return e
}

// fundingFixed takes over what was fixed: from here on all who hold a position owe it.
func (f *fold) fundingFixed(e *FundingFixed) {
	i := f.instrument(e.Symbol)
	i.rate = e.FundingRate.Coef
	i.premiums = market.Premiums{}
	f.armFunding(i, e.Time)
	mark, _ := i.contract.Marks(e.MarkPrice)
	if i.rate != 0 {
		f.levied(i, mark, i.rate)
		f.owe(&instant{kind: instantFunding, instrument: i, time: e.Time, mark: mark, rate: i.rate})
	}
}

// armFunding puts the first instant after a time on the due list.
func (f *fold) armFunding(i *instrument, after scalar.Time) {
	f.cancelEntry(i.funding)
	i.funding = nil
	if i.contract.Status != market.Withdrawn {
		i.funding = &dueEntry{time: market.NextFunding(after, i.contract.FundingIntervalSeconds), kind: dueFunding, instrument: i}
		f.due.push(i.funding)
	}
}
