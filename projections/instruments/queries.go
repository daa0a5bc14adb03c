package instruments

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"

	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/projections"
	c "github.com/perpetua-exchange/perpetua/projections/column"
)

// Listed returns the listed instruments, in the order in which they were listed.
func Listed(ctx context.Context, db projections.DB) ([]Instrument, int64, error) {
	l := list()
	l.Where.And("status <> ?", string(market.Withdrawn))
	return l.All(ctx, db)
}

// All returns every instrument, withdrawn ones included, in the order in which they were listed.
func All(ctx context.Context, db projections.DB) ([]Instrument, int64, error) {
	return list().All(ctx, db)
}

// BySymbol returns an instrument, listed or withdrawn.
func BySymbol(ctx context.Context, db projections.DB, symbol string) (i Instrument, found bool, asOf int64, err error) {
	l := list()
	l.Where.And("symbol = ?", symbol)
	return l.One(ctx, db)
}

func list() projections.List[Instrument] {
	return projections.List[Instrument]{Journal: "trading", From: "instruments", Order: `listed_sequence, symbol COLLATE "C"`, Scan: scan,
		Columns: `symbol, underlying, quote_currency, settlement_currency, status, price_tick::text, amount_step::text,
			min_amount::text, max_amount::text, contract_size::text, init_margin_req::text, maint_margin_req::text,
			max_leverage, funding_interval_seconds, price_band::text, limit_band::text, maker_fee::text, taker_fee::text,
			index_stale_seconds, tiers::text, listed_sequence, sequence`}
}

func scan(row pgx.CollectableRow, i *Instrument, key ...any) error {
	var tiers string
	err := row.Scan(append([]any{&i.Symbol, &i.Underlying, &i.QuoteCurrency, &i.SettlementCurrency, c.IntoText(&i.Status),
		c.IntoDecimal(&i.PriceTick), c.IntoDecimal(&i.AmountStep), c.IntoDecimal(&i.MinAmount), c.IntoDecimal(&i.MaxAmount),
		c.IntoDecimal(&i.ContractSize), c.IntoDecimal(&i.InitMarginReq), c.IntoDecimal(&i.MaintMarginReq), &i.MaxLeverage,
		&i.FundingIntervalSeconds, c.IntoDecimal(&i.PriceBand), c.IntoDecimal(&i.LimitBand), c.IntoDecimal(&i.MakerFee),
		c.IntoDecimal(&i.TakerFee), &i.IndexStaleSeconds, &tiers, &i.Listed, &i.Sequence}, key...)...)
	if err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(tiers), &i.Tiers); err != nil {
		return fmt.Errorf("the tiers of %s: %w", i.Symbol, err)
	}
	return nil
}

// LastPrices returns the last prices of all instruments that have any, by symbol.
func LastPrices(ctx context.Context, db projections.DB) ([]Prices, int64, error) {
	return projections.List[Prices]{Journal: "trading", From: "prices", Order: `symbol COLLATE "C"`,
		Columns: "symbol, index_price::text, mark_price::text, index_time, last_price::text, last_time",
		Scan: func(row pgx.CollectableRow, p *Prices, key ...any) error {
			return row.Scan(append([]any{&p.Symbol, c.IntoDecimal(&p.Index), c.IntoDecimal(&p.Mark), c.IntoTime(&p.IndexTime),
				c.IntoDecimal(&p.Last), c.IntoTime(&p.LastTime)}, key...)...)
		}}.All(ctx, db)
}
