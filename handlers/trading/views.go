package trading

import (
	"strconv"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	domain "github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
)

// Customer is a customer account.
type Customer struct {
	CustomerCode string                `json:"customer_code"`
	Name         wire.Nullable[string] `json:"name"`
	Broker       string                `json:"broker"`
	Created      scalar.Time           `json:"created"`
}

// marginProfile holds an account's default margins and the overrides for instruments.
type marginProfile struct {
	Leverage          string             `json:"leverage"` // equivalent of initial_margin
	InitialMargin     fixed.Decimal      `json:"initial_margin"`
	MaintenanceMargin fixed.Decimal      `json:"maintenance_margin"`
	InstrumentMargins []instrumentMargin `json:"instrument_margins"`
}

type instrumentMargin struct {
	Symbol        string        `json:"symbol"`
	Leverage      string        `json:"leverage"`
	InitialMargin fixed.Decimal `json:"initial_margin"`
}

func newMarginProfile(p *domain.MarginProfile) marginProfile {
	out := marginProfile{strconv.Itoa(p.Leverage), wire.Percent(p.InitialMargin), wire.Percent(p.MaintenanceMargin), []instrumentMargin{}}
	for _, m := range p.Instruments {
		out.InstrumentMargins = append(out.InstrumentMargins, instrumentMargin{m.Symbol, strconv.Itoa(m.Leverage), wire.Percent(m.InitialMargin)})
	}
	return out
}
