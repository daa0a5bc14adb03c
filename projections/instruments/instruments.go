// Package instruments is the read model of instruments and of their last prices.
package instruments

import (
	_ "embed"

	"github.com/go-json-experiment/json"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/projections"
	c "github.com/perpetua-exchange/perpetua/projections/column"
	"github.com/perpetua-exchange/perpetua/streams/journal"
)

//go:embed upsert_instruments.sql
var upsertInstruments string

//go:embed upsert_index.sql
var upsertIndex string

//go:embed upsert_last.sql
var upsertLast string

// Projection keeps the tables instruments and prices.
type Projection struct{}

// Name returns "instruments".
func (Projection) Name() string { return "instruments" }

// Tables returns the tables of instruments and prices.
func (Projection) Tables() []string {
	return []string{"instruments", "prices"}
}

// Instrument is an instrument as the record Sequence left it.
type Instrument struct {
	market.Instrument
	Listed   int64 // the sequence of the record that listed it
	Sequence int64
}

// Prices are an instrument's last prices; zero where there was none yet.
type Prices struct {
	Symbol    string
	Index     fixed.Decimal
	Mark      fixed.Decimal
	IndexTime scalar.Time
	Last      fixed.Decimal
	LastTime  scalar.Time
}

// Project queues the last state of every instrument and price that the entries change.
func (Projection) Project(entries []journal.Entry, batch *projections.Batch) {
	var changed projections.Latest[string, Instrument]
	var index, last projections.Latest[string, Prices]
	for _, entry := range entries {
		at := entry.Record.Sequence
		put := func(i market.Instrument) {
			if old, again := changed.Put(i.Symbol, Instrument{i, at, at}); again {
				changed.Put(i.Symbol, Instrument{i, old.Listed, at})
			}
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
				index.Put(e.Symbol, Prices{Symbol: e.Symbol, Index: e.IndexPrice, Mark: e.MarkPrice, IndexTime: entry.Record.Time})
			case *trading.TradeExecuted:
				if e.MovesLastPrice() {
					last.Put(e.Symbol, Prices{Symbol: e.Symbol, Last: e.Price, LastTime: entry.Record.Time})
				}
			}
		}
	}
	if rows := changed.Rows(); len(rows) > 0 {
		batch.Queue(upsertInstruments, c.Args(rows, columns()...)...)
	}
	symbol := c.Text(func(r *Prices) string { return r.Symbol })
	if rows := index.Rows(); len(rows) > 0 {
		batch.Queue(upsertIndex, c.Args(rows, symbol,
			c.Decimal(func(r *Prices) fixed.Decimal { return r.Index }),
			c.Decimal(func(r *Prices) fixed.Decimal { return r.Mark }),
			c.Time(func(r *Prices) scalar.Time { return r.IndexTime }))...)
	}
	if rows := last.Rows(); len(rows) > 0 {
		batch.Queue(upsertLast, c.Args(rows, symbol,
			c.Decimal(func(r *Prices) fixed.Decimal { return r.Last }),
			c.Time(func(r *Prices) scalar.Time { return r.LastTime }))...)
	}
}

func columns() []c.Of[Instrument] {
	decimal := func(get func(*market.Instrument) fixed.Decimal) c.Of[Instrument] {
		return c.Decimal(func(r *Instrument) fixed.Decimal { return get(&r.Instrument) })
	}
	return []c.Of[Instrument]{
		c.Text(func(r *Instrument) string { return r.Symbol }),
		c.Text(func(r *Instrument) string { return r.Underlying }),
		c.Text(func(r *Instrument) string { return r.QuoteCurrency }),
		c.Text(func(r *Instrument) string { return r.SettlementCurrency }),
		c.Text(func(r *Instrument) string { return string(r.Status) }),
		decimal(func(i *market.Instrument) fixed.Decimal { return i.PriceTick }),
		decimal(func(i *market.Instrument) fixed.Decimal { return i.AmountStep }),
		decimal(func(i *market.Instrument) fixed.Decimal { return i.MinAmount }),
		decimal(func(i *market.Instrument) fixed.Decimal { return i.MaxAmount }),
		decimal(func(i *market.Instrument) fixed.Decimal { return i.ContractSize }),
		decimal(func(i *market.Instrument) fixed.Decimal { return i.InitMarginReq }),
		decimal(func(i *market.Instrument) fixed.Decimal { return i.MaintMarginReq }),
		c.Small(func(r *Instrument) int { return r.MaxLeverage }),
		c.Small(func(r *Instrument) int { return r.FundingIntervalSeconds }),
		decimal(func(i *market.Instrument) fixed.Decimal { return i.PriceBand }),
		decimal(func(i *market.Instrument) fixed.Decimal { return i.LimitBand }),
		decimal(func(i *market.Instrument) fixed.Decimal { return i.MakerFee }),
		decimal(func(i *market.Instrument) fixed.Decimal { return i.TakerFee }),
		c.Small(func(r *Instrument) int { return r.IndexStaleSeconds }),
		c.Text(func(r *Instrument) string { return tiers(r.Tiers) }),
		c.Int(func(r *Instrument) int64 { return r.Listed }),
		c.Int(func(r *Instrument) int64 { return r.Sequence }),
	}
}

// tiers returns the JSON text of the journal. Tiers hold integers and nothing that could fail to encode.
func tiers(t []market.Tier) string {
	b, err := json.Marshal(t)
	if err != nil {
		return "[]"
	}
	return string(b)
}
