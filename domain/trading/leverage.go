package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/margin"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/validation"
)

// overrideLeverage applies the leverage that came with an order to the position and to its resting orders. The override
// remains even if the order is then rejected. If the margin does not permit it, nothing changes and the order is
// rejected.
func (d *recordBuilder) overrideLeverage(p *accountView, leverage int) order.Reason {
	if leverage == 0 || leverage == p.position.leverage {
		return ""
	}
	if !d.refloor(p, fixed.Leverage(leverage)) {
		return order.InsufficientMargin
	}
	d.events = append(d.events, &LeverageSet{p.account.code, p.account.broker, d.instrument.contract.Symbol, leverage})
	return ""
}

// refloor sets the account's least margin rate on the instrument, and reports whether the margin permits it.
func (d *recordBuilder) refloor(p *accountView, floor fixed.Rate) bool {
	before := d.standing(p)
	d.explainStanding(p, "before the leverage")
	p.floor = floor
	after := d.standing(p)
	fits := acceptable(before, after)
	d.explainStanding(p, "after the leverage")
	if d.sheet.On() {
		margin.ExplainRule(d.sheet, p.account.code, before, after, fits)
	}
	return fits
}

// acceptable is the margin rule: the available margin stays at or above zero, or the reserved margin does not rise. An
// account below maintenance margin may only do the latter, however much is available: an override may require less than
// its maintenance margin. (An account can give commands in that state only while its liquidation waits for an
// instrument to open.)
func acceptable(before, after margin.Standing) bool {
	return !before.Lacks() && after.Available().Sign() >= 0 || after.Reserved().Cmp(before.Reserved()) <= 0
}

// setLeverage decides to set or remove an override without an order. The margin rule is the one for an override that
// comes with an order, but a refusal changes nothing. The status of the instrument does not matter, since no order is
// placed.
func (r request) setLeverage(payload *SetLeverage) (decide.Decision, error) {
	a, err := r.customerOf(payload.CustomerCode)
	if err != nil {
		return decide.Decision{}, err
	}
	i, err := r.traded(payload.Symbol)
	if err != nil {
		return decide.Decision{}, err
	}
	var f validation.Errors
	checkLeverage(&f, i.contract, payload.Leverage)
	if err := refuseFirst(f.List); err != nil {
		return decide.Decision{}, err
	}
	floor := a.initial
	if payload.Leverage != 0 {
		floor = fixed.Leverage(payload.Leverage)
	}
	d := r.newRecordBuilder(r.at, i)
	if !d.refloor(d.viewOf(a), floor) {
		return decide.Decision{}, decide.Refuse(decide.Unacceptable, "INSUFFICIENT_MARGIN", "the available margin does not suffice for this leverage")
	}
	return accepted(&LeverageChanged{CustomerCode: a.code, Broker: a.broker, Symbol: payload.Symbol, Leverage: payload.Leverage,
		MarginProfile: r.marginProfile(a, i, floor)})
}

// checkLeverage adds the errors of a leverage; 0 means none was given.
func checkLeverage(f *validation.Errors, c *market.Contract, leverage int) {
	switch {
	case leverage < 0 || leverage > MaxLeverage:
		f.AddCode("leverage", "INVALID_LEVERAGE", "leverage must be a whole number from 1 to %d", MaxLeverage)
	case leverage > c.MaxLeverage:
		f.AddCode("leverage", "LEVERAGE_ABOVE_MAXIMUM", "leverage must not be above %d on %s", c.MaxLeverage, c.Symbol)
	}
}

// MarginProfile is an account's margin requirements, in percent with 2 decimals, rounded up.
type MarginProfile struct {
	InitialMargin     fixed.Decimal `json:"initial_margin"` // the account's default
	MaintenanceMargin fixed.Decimal `json:"maintenance_margin"`
	Leverage          int           `json:"leverage"` // the whole-number leverage that InitialMargin permits
	// Instruments are those, in the order of listing, on which the account's initial margin differs from its default,
	// because of an override or because the instrument requires more.
	Instruments []InstrumentMargin `json:"instrument_margins"`
}

// InstrumentMargin is the margin in force for an account on one instrument.
type InstrumentMargin struct {
	Symbol        string        `json:"symbol"`
	Leverage      int           `json:"leverage"`
	InitialMargin fixed.Decimal `json:"initial_margin"`
}

// MarginProfile returns an account's default margins, and the instruments on which others are in force.
func (s *State) MarginProfile(customer string) (MarginProfile, bool) {
	a := s.accounts[customer]
	if a == nil {
		return MarginProfile{}, false
	}
	return s.marginProfile(a, nil, fixed.Rate{}), true
}

// marginProfile returns an account's margins with floor instead of the least rate on the replaced instrument, if not
// nil.
func (s *State) marginProfile(a *account, replaced *instrument, floor fixed.Rate) MarginProfile {
	p := MarginProfile{a.initial.Percent(), a.maintenance.Percent(), leverageOf(a.initial), []InstrumentMargin{}}
	for _, i := range s.listing {
		if i.contract.Status == market.Withdrawn {
			continue
		}
		least := a.on(i).floor()
		if i == replaced {
			least = floor
		}
		if rate := i.contract.InitialRate(least); rate.Cmp(a.initial) != 0 {
			p.Instruments = append(p.Instruments, InstrumentMargin{i.contract.Symbol, leverageOf(rate), rate.Percent()})
		}
	}
	return p
}

// Leverage returns a customer's override on an instrument, or 0 for none.
func (s *State) Leverage(customer, symbol string) int {
	if a, i := s.accounts[customer], s.instruments[symbol]; a != nil && i != nil {
		return a.on(i).leverage
	}
	return 0
}
