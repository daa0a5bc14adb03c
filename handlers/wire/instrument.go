package wire

import (
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/market"
)

// Instrument is an instrument as everybody may see it.
type Instrument struct {
	Symbol                 string        `json:"symbol"`
	Underlying             string        `json:"underlying"`
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
	FundingIntervalSeconds int           `json:"funding_interval_seconds"`
}

// NewInstrument shows an instrument with a status: the one in force for everybody, the operator's own setting for the
// operator.
func NewInstrument(i *market.Instrument, status market.Status) Instrument {
	return Instrument{i.Symbol, i.Underlying, i.QuoteCurrency, i.SettlementCurrency, status, i.PriceTick, i.AmountStep,
		i.MinAmount, i.MaxAmount, i.ContractSize, Percent(i.InitMarginReq), Percent(i.MaintMarginReq), i.MaxLeverage,
		i.FundingIntervalSeconds}
}

// OperatedInstrument is an instrument with its risk parameters, for the operator.
type OperatedInstrument struct {
	Instrument
	PriceBand         fixed.Decimal `json:"price_band"`
	LimitBand         fixed.Decimal `json:"limit_band"`
	MakerFee          fixed.Decimal `json:"maker_fee"`
	TakerFee          fixed.Decimal `json:"taker_fee"`
	IndexStaleSeconds int           `json:"index_stale_seconds"`
	MarginTiers       []Tier        `json:"margin_tiers"`
}

// Tier is a margin bracket, which ends where the next one begins.
type Tier struct {
	NotionalFrom   fixed.Money   `json:"notional_from"`
	InitMarginReq  fixed.Decimal `json:"init_margin_req"`
	MaintMarginReq fixed.Decimal `json:"maint_margin_req"`
	MaxLeverage    int           `json:"max_leverage"`
}

// NewOperatedInstrument shows an instrument to the operator.
func NewOperatedInstrument(i *market.Instrument) OperatedInstrument {
	out := OperatedInstrument{NewInstrument(i, i.Status), i.PriceBand, i.LimitBand, i.MakerFee, i.TakerFee, i.IndexStaleSeconds, []Tier{}}
	for _, t := range i.Tiers {
		out.MarginTiers = append(out.MarginTiers, Tier{t.NotionalFrom, t.InitMarginReq, t.MaintMarginReq, min(t.MaxLeverage, i.MaxLeverage)})
	}
	return out
}
