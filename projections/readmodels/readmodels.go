// Package readmodels lists the projections of each journal, and compares their rows with a fold of the log.
package readmodels

import (
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/candles"
	"github.com/perpetua-exchange/perpetua/projections/customers"
	"github.com/perpetua-exchange/perpetua/projections/funding"
	"github.com/perpetua-exchange/perpetua/projections/identity"
	"github.com/perpetua-exchange/perpetua/projections/instruments"
	"github.com/perpetua-exchange/perpetua/projections/ledger"
	"github.com/perpetua-exchange/perpetua/projections/liabilities"
	"github.com/perpetua-exchange/perpetua/projections/onboarding"
	"github.com/perpetua-exchange/perpetua/projections/orders"
	"github.com/perpetua-exchange/perpetua/projections/proposals"
	"github.com/perpetua-exchange/perpetua/projections/records"
	"github.com/perpetua-exchange/perpetua/projections/trades"
)

// Trading returns the projections of the trading journal, in the order in which a runner must apply them.
func Trading() []projections.Projection {
	return []projections.Projection{
		projections.HistoryBounds("trading"),
		records.Projection{Journal: "trading"},
		customers.Projection,
		instruments.Projection,
		orders.Projection,
		trades.Projection,
		candles.Projection,
		ledger.Projection,
		funding.Projection,
		liabilities.Projection,
		proposals.Trading,
	}
}

// Identity returns the projections of the identity journal.
func Identity() []projections.Projection {
	return []projections.Projection{records.Projection{Journal: "identity"}, identity.Projection}
}

// Onboarding returns the projections of the onboarding journal.
func Onboarding() []projections.Projection {
	return []projections.Projection{projections.HistoryBounds("onboarding"), records.Projection{Journal: "onboarding"}, onboarding.Projection, proposals.Onboarding}
}
