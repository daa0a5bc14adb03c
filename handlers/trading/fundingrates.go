package trading

import (
	"context"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/handlers/web/rows"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/funding"
)

// fundingRate holds the values that were fixed for a funding time.
type fundingRate struct {
	Symbol          string        `json:"symbol"`
	FundingRate     fixed.Decimal `json:"funding_rate"` // paid by longs, as a fraction of the value of their positions
	IndexPrice      fixed.Decimal `json:"index_price"`
	MarkPrice       fixed.Decimal `json:"mark_price"`
	IntervalSeconds int           `json:"interval_seconds"`
	Timestamp       scalar.Time   `json:"timestamp"`
	Missed          bool          `json:"missed"`
}

func newFundingRate(r *funding.Rate) fundingRate {
	return fundingRate{r.Symbol, r.FundingRate, r.IndexPrice, r.MarkPrice, r.IntervalSeconds, r.Time, r.Missed}
}

// listFundingRates lists the fixed funding rates, newest first.
func (h *Handler) listFundingRates(c echo.Context) error {
	query := rest.Query(c)
	f := funding.Filter{Symbol: symbolFilter(query), Span: rows.ReadSpan(query, false)}
	p := rows.ReadPaging(query, false)
	if err := query.Done(); err != nil {
		return err
	}
	return rows.Page(c, h.rows, p, func(ctx context.Context, db projections.DB, p projections.Page) (projections.Paged[funding.Rate], error) {
		return funding.Rates(ctx, db, f, p)
	}, newFundingRate)
}
