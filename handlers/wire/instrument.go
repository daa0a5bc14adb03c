package wire

import (
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Instrument is the public view of an instrument.
type Instrument struct {
	Symbol                 string        `json:"symbol"`
	Underlying             string        `json:"underlying"`
	BaseCurrency           string        `json:"base_currency"` // the traded asset; for a perpetual, the underlying
	QuoteCurrency          string        `json:"quote_currency"`
	SettlementCurrency     string        `json:"settlement_currency"`
	Status                 market.Status `json:"status"`
	PriceTick              fixed.Decimal `json:"price_tick"`
	AmountStep             fixed.Decimal `json:"amount_step"`
	MinAmount              fixed.Decimal `json:"min_amount"`
	MaxAmount              fixed.Decimal `json:"max_amount"`
	ContractSize           fixed.Decimal `json:"contract_size"`
	InitMarginReq          fixed.Decimal `json:"init_margin_req"`
	MaintMarginReq         fixed.Decimal `json:"maint_margin_req"`
	MaxLeverage            int           `json:"max_leverage"`
	MarginTiers            []Tier        `json:"margin_tiers"`
	MakerFee               fixed.Decimal `json:"maker_fee"` // default fees, in basis points
	TakerFee               fixed.Decimal `json:"taker_fee"`
	PriceBand              fixed.Decimal `json:"price_band"` // bands in percent
	LimitBand              fixed.Decimal `json:"limit_band"`
	FundingIntervalSeconds int           `json:"funding_interval_seconds"`
	Created                scalar.Time   `json:"created"` // time of listing
}

// Tier is a margin bracket. It ends where the next one begins.
type Tier struct {
	NotionalFrom   fixed.Money   `json:"notional_from"`
	InitMarginReq  fixed.Decimal `json:"init_margin_req"`
	MaintMarginReq fixed.Decimal `json:"maint_margin_req"`
	MaxLeverage    int           `json:"max_leverage"`
}

// NewInstrument converts an instrument and its time of listing to the JSON form. The caller chooses the status: the
// public view shows the effective status, the operator's view shows the operator's setting.
func NewInstrument(i *market.Instrument, status market.Status, listed scalar.Time) Instrument {
	out := Instrument{Symbol: i.Symbol, Underlying: i.Underlying, BaseCurrency: i.Underlying, QuoteCurrency: i.QuoteCurrency,
		SettlementCurrency: i.SettlementCurrency, Status: status, PriceTick: i.PriceTick, AmountStep: i.AmountStep,
		MinAmount: i.MinAmount, MaxAmount: i.MaxAmount, ContractSize: i.ContractSize, InitMarginReq: Percent(i.InitMarginReq),
		MaintMarginReq: Percent(i.MaintMarginReq), MaxLeverage: i.MaxLeverage, MarginTiers: []Tier{}, MakerFee: i.MakerFee,
		TakerFee: i.TakerFee, PriceBand: i.PriceBand, LimitBand: i.LimitBand, FundingIntervalSeconds: i.FundingIntervalSeconds,
		Created: listed}
	for _, t := range i.Tiers {
		out.MarginTiers = append(out.MarginTiers, Tier{t.NotionalFrom, Percent(t.InitMarginReq), Percent(t.MaintMarginReq), min(t.MaxLeverage, i.MaxLeverage)})
	}
	return out
}

// OperatedInstrument is an instrument as operators see it.
type OperatedInstrument struct {
	Instrument
	IndexStaleSeconds int `json:"index_stale_seconds"`
}

// NewOperatedInstrument converts an instrument and its time of listing to the operator's view.
func NewOperatedInstrument(i *market.Instrument, listed scalar.Time) OperatedInstrument {
	return OperatedInstrument{NewInstrument(i, i.Status, listed), i.IndexStaleSeconds}
}
