package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/schedule"
)

// latestFunding is the maximum delay with which a funding charge may be fixed. One that comes later, because no node
// served, is recorded as missed and never charged.
const latestFunding = scalar.Minute

// fundingWork fixes the funding charges. A step fixes the rate and the mark price for all holders of a position; later
// steps post the resulting payments: see due_posting.go.
type fundingWork struct{ aboutInstrument }

// step fixes the charges that are due at the same time, one per instrument, and further charges of those instruments
// if they were missed. After a long outage there may be very many, so the number per record is bounded.
func (fundingWork) step(s *State, at decide.Stamp, entries []*dueEntry, single bool) decide.Decision {
	var events []decide.Event
	b := s.newBooking()
	for _, e := range entries {
		if e.Time != entries[0].Time {
			break
		}
		i, time := e.instrument, e.Time
		first := i.fix(at, time)
		// The engine sets the entry aside after a panic.
		if rate := first.FundingRate.Coef; rate != 0 && !b.admit(&charge{kind: fundingCharge, instrument: i, mark: i.mark, rate: rate}, maxFunded) {
			panic("trading: the funding of " + i.contract.Symbol + " would bring a balance beyond what it may be")
		}
		if !first.Missed {
			i.contract.ExplainFundingRate(s.sheet, i.premiums, first.FundingRate.Coef)
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

// fix returns the event that fixes a charge.
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

// fundingFixed applies the event: from now on all holders of a position owe the payment.
func (f *fold) fundingFixed(e *FundingFixed) {
	i := f.instrument(e.Symbol)
	i.rate = e.FundingRate.Coef
	i.premiums = market.Premiums{}
	f.armFunding(i, e.Time)
	f.fixing = max(f.fixing, e.Time)
	mark, _ := i.contract.Marks(e.MarkPrice)
	if i.rate != 0 {
		f.advanceFunding(i, mark, i.rate)
		f.owe(&charge{kind: fundingCharge, instrument: i, time: e.Time, mark: mark, rate: i.rate})
	}
}

// armFunding puts the first charge after a time on the due list.
func (f *fold) armFunding(i *instrument, after scalar.Time) {
	f.cancelEntry(i.funding)
	i.funding = nil
	if i.contract.Status != market.Withdrawn {
		i.funding = &dueEntry{Slot: schedule.At(market.NextFunding(after, i.contract.FundingIntervalSeconds), dueFunding), instrument: i}
		f.due.push(i.funding)
	}
}
