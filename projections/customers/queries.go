package customers

import (
	"context"

	"github.com/perpetua-exchange/perpetua/projections"
)

// Page returns a page of a broker's customers, or with broker "" of everybody's.
func Page(ctx context.Context, db projections.DB, broker string, p projections.Page) (projections.Paged[Customer], error) {
	l := projections.List[Customer]{Table: registry}
	l.Where.AndText("broker", broker)
	return l.Page(ctx, db, p)
}

// Registry returns the table of accounts.
func Registry() *projections.Table[Customer] { return registry }

// FeeProfiles returns the table of the fees that were set. Where there are none, the instrument's apply.
func FeeProfiles() *projections.Table[Fees] { return feeProfiles }

// MarginProfiles returns the table of the default margins that were set.
func MarginProfiles() *projections.Table[Margins] { return marginProfiles }

// Leverages returns the table of overrides.
func Leverages() *projections.Table[Leverage] { return leverages }
