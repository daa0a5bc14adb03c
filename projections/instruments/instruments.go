// Package instruments is the read model of instruments and their last prices.
package instruments

import (
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/projections"
	c "github.com/perpetua-exchange/perpetua/projections/column"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Projection maintains the tables instruments and prices.
var Projection = projections.NewProjection("instruments", project, table.Name, priceTable.Name)

// Instrument is an instrument after the record with sequence Sequence.
type Instrument struct {
	market.Instrument
	Created  scalar.Time // the time of the listing
	Listed   int64       // the sequence of the listing's record
	Sequence int64

	tiers string // JSON, as in the journal
}

// Prices are an instrument's last prices. A price that did not occur yet is zero.
type Prices struct {
	Symbol    string
	Index     fixed.Decimal
	Mark      fixed.Decimal
	IndexTime scalar.Time
	Stale     bool // the index price is too old
	Last      fixed.Decimal
	LastTime  scalar.Time
}

type (
	row      = projections.Row[Instrument]
	priceRow = projections.Row[Prices]
)

var table = &projections.Table[Instrument]{
	Name: "instruments", Journal: "trading",
	Columns: []c.Column[row]{
		c.Text("symbol", func(r *row) *string { return &r.Value.Symbol }).Key(),
		c.Text("underlying", func(r *row) *string { return &r.Value.Underlying }),
		c.Text("quote_currency", func(r *row) *string { return &r.Value.QuoteCurrency }),
		c.Text("settlement_currency", func(r *row) *string { return &r.Value.SettlementCurrency }),
		c.Text("status", func(r *row) *market.Status { return &r.Value.Status }),
		c.Decimal("price_tick", func(r *row) *fixed.Decimal { return &r.Value.PriceTick }),
		c.Decimal("amount_step", func(r *row) *fixed.Decimal { return &r.Value.AmountStep }),
		c.Decimal("min_amount", func(r *row) *fixed.Decimal { return &r.Value.MinAmount }),
		c.Decimal("max_amount", func(r *row) *fixed.Decimal { return &r.Value.MaxAmount }),
		c.Decimal("contract_size", func(r *row) *fixed.Decimal { return &r.Value.ContractSize }),
		c.Decimal("init_margin_req", func(r *row) *fixed.Decimal { return &r.Value.InitMarginReq }),
		c.Decimal("maint_margin_req", func(r *row) *fixed.Decimal { return &r.Value.MaintMarginReq }),
		c.Small("max_leverage", func(r *row) *int { return &r.Value.MaxLeverage }),
		c.Small("funding_interval_seconds", func(r *row) *int { return &r.Value.FundingIntervalSeconds }),
		c.Decimal("price_band", func(r *row) *fixed.Decimal { return &r.Value.PriceBand }),
		c.Decimal("limit_band", func(r *row) *fixed.Decimal { return &r.Value.LimitBand }),
		c.Decimal("maker_fee", func(r *row) *fixed.Decimal { return &r.Value.MakerFee }),
		c.Decimal("taker_fee", func(r *row) *fixed.Decimal { return &r.Value.TakerFee }),
		c.Small("index_stale_seconds", func(r *row) *int { return &r.Value.IndexStaleSeconds }),
		c.JSON("tiers", func(r *row) *string { return &r.Value.tiers }),
		c.Time("created", func(r *row) *scalar.Time { return &r.Value.Created }).Fixed(),
		c.Int("listed_sequence", func(r *row) *int64 { return &r.Value.Listed }).Fixed(),
		c.Int("sequence", func(r *row) *int64 { return &r.Value.Sequence }),
	},
	Loaded: func(r *row) error {
		if err := json.Unmarshal([]byte(r.Value.tiers), &r.Value.Tiers); err != nil {
			return fmt.Errorf("the tiers of %s: %w", r.Value.Symbol, err)
		}
		r.Value.tiers = ""
		return nil
	},
}

var priceTable = &projections.Table[Prices]{
	Name: "prices", Journal: "trading",
	Columns: []c.Column[priceRow]{
		c.Text("symbol", func(r *priceRow) *string { return &r.Value.Symbol }).Key(),
		c.NullDecimal("index_price", func(r *priceRow) *fixed.Decimal { return &r.Value.Index }),
		c.NullDecimal("mark_price", func(r *priceRow) *fixed.Decimal { return &r.Value.Mark }),
		c.Time("index_time", func(r *priceRow) *scalar.Time { return &r.Value.IndexTime }),
		c.Bool("index_stale", func(r *priceRow) *bool { return &r.Value.Stale }),
		c.NullDecimal("last_price", func(r *priceRow) *fixed.Decimal { return &r.Value.Last }),
		c.Time("last_time", func(r *priceRow) *scalar.Time { return &r.Value.LastTime }),
	},
}

// Instruments returns the table of all instruments ever listed.
func Instruments() *projections.Table[Instrument] { return table }

// LastPrices returns the table of the instruments' last prices.
func LastPrices() *projections.Table[Prices] { return priceTable }

// project adds the last state of each instrument and price that the entries change.
func project(entries []record.Entry, batch *projections.Batch) {
	var changed projections.Latest[string, row]
	var index, stale, last projections.Latest[string, priceRow]
	for _, entry := range entries {
		at := entry.Record.Sequence
		put := func(i market.Instrument) {
			r, again := changed.Slot(i.Symbol)
			created, listed := entry.Record.Time, at
			if again {
				created, listed = r.Value.Created, r.Value.Listed
			}
			r.Value = Instrument{i, created, listed, at, tiers(i.Tiers)}
		}
		for _, event := range entry.Record.Events {
			switch e := event.(type) {
			case *trading.InstrumentListed:
				put(e.Instrument)
			case *trading.InstrumentChanged:
				put(e.Instrument)
			case *trading.InstrumentDelisted:
				put(e.Instrument)
			case *trading.IndexUpdated:
				index.Put(e.Symbol, priceRow{Value: Prices{Symbol: e.Symbol, Index: e.IndexPrice, Mark: e.MarkPrice, IndexTime: entry.Record.Time}})
				stale.Put(e.Symbol, priceRow{Value: Prices{Symbol: e.Symbol}})
			case *trading.GuardSet:
				stale.Put(e.Symbol, priceRow{Value: Prices{Symbol: e.Symbol, Stale: e.Stale}})
			case *trading.TradeExecuted:
				if e.MovesLastPrice() {
					last.Put(e.Symbol, priceRow{Value: Prices{Symbol: e.Symbol, Last: e.Price, LastTime: entry.Record.Time}})
				}
			}
		}
	}
	table.Upsert(batch, changed.Rows())
	priceTable.Upsert(batch, index.Rows(), "index_price", "mark_price", "index_time")
	priceTable.Upsert(batch, stale.Rows(), "index_stale")
	priceTable.Upsert(batch, last.Rows(), "last_price", "last_time")
}

// tiers returns the JSON of the journal. Tiers contain only integers, so encoding cannot fail.
func tiers(t []market.Tier) string {
	b, err := json.Marshal(t)
	if err != nil {
		return "[]"
	}
	return string(b)
}
