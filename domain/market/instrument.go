// Package market defines what is traded: instruments and their parameters, how their prices, amounts and notional are
// counted in integers, and the formulas of mark price, funding and margin requirements.
//
// Prices are counted in ticks and amounts in steps. One tick times one step times the contract size is a whole number
// of money units (10⁻⁸), the instrument's Unit. So the notional of a trade is exact: ticks × steps × Unit. Mark prices
// are on a tick, but are counted in marks, which have 4 more decimals than the tick, because older journals hold mark
// prices between ticks. Index prices may be finer than the tick and are counted in units of 10⁻⁸.
//
// Start with instrument.go for the parameters and contract.go for the conversions.
package market

import (
	"github.com/perpetua-exchange/perpetua/domain/fixed"
)

// Instrument holds all parameters of a perpetual contract, as the journal and the interfaces show it.
type Instrument struct {
	Symbol             string `json:"symbol"`
	Underlying         string `json:"underlying"`
	QuoteCurrency      string `json:"quote_currency"`
	SettlementCurrency string `json:"settlement_currency"`
	// Status is the operator's setting. The status in force may be stricter: see trading.State.Status.
	Status       Status        `json:"status"`
	PriceTick    fixed.Decimal `json:"price_tick"`
	AmountStep   fixed.Decimal `json:"amount_step"`
	MinAmount    fixed.Decimal `json:"min_amount"`
	MaxAmount    fixed.Decimal `json:"max_amount"`
	ContractSize fixed.Decimal `json:"contract_size"`
	// InitMarginReq and MaintMarginReq are the first tier's rates, as percentages with 2 decimals.
	InitMarginReq  fixed.Decimal `json:"init_margin_req"`
	MaintMarginReq fixed.Decimal `json:"maint_margin_req"`
	// MaxLeverage is the highest leverage that an order or a margin profile may set. Rules 6 of trading keep it at or below
	// PermittedLeverage.
	MaxLeverage            int `json:"max_leverage"`
	FundingIntervalSeconds int `json:"funding_interval_seconds"`
	// PriceBand is the distance from mark, in percent, within which market orders may trade.
	PriceBand fixed.Decimal `json:"price_band"`
	// LimitBand is how far beyond mark, in percent, a limit price may be on the side where it takes.
	LimitBand fixed.Decimal `json:"limit_band"`
	// MakerFee and TakerFee are the default fees in basis points.
	MakerFee fixed.Decimal `json:"maker_fee"`
	TakerFee fixed.Decimal `json:"taker_fee"`
	// IndexStaleSeconds is the age at which the index price becomes stale; 0 means never.
	IndexStaleSeconds int `json:"index_stale_seconds"`
	// Tiers are the marginal margin brackets, lowest first. There is at least one.
	Tiers []Tier `json:"margin_tiers"`
}

// PermittedLeverage returns the highest MaxLeverage that the first tier's initial margin permits: 100 % ÷ init_margin_req, rounded
// down, from 1 to MaxInstrumentLeverage. The instrument MUST have a tier.
func (i *Instrument) PermittedLeverage() int {
	return max(1, min(i.Tiers[0].allows(), MaxInstrumentLeverage))
}

// Tier is a bracket of margin rates. Brackets apply like tax brackets: each to the part of the notional inside it.
type Tier struct {
	// NotionalFrom is the notional at which the bracket begins, in the quote currency. It is zero in the first bracket.
	NotionalFrom fixed.Money `json:"notional_from"`
	// InitMarginReq and MaintMarginReq are percentages with at most 4 decimals.
	InitMarginReq  fixed.Decimal `json:"init_margin_req"`
	MaintMarginReq fixed.Decimal `json:"maint_margin_req"`
	// MaxLeverage is for clients to show, and is at most what InitMarginReq permits. The venue itself does not enforce
	// it.
	MaxLeverage int `json:"max_leverage"`
}

// allows returns the leverage that the bracket's initial rate permits, rounded down to a whole number.
func (t Tier) allows() int {
	rate := fixed.Percent(t.InitMarginReq)
	if rate.Num <= 0 {
		return 0 // Check does not accept this
	}
	return int(rate.Den / rate.Num)
}

// Status is the trading status of an instrument.
type Status string

// The statuses, from the loosest to the strictest.
const (
	Open       Status = "open"
	PostOnly   Status = "post_only"   // only orders that rest are accepted; nothing matches
	CancelOnly Status = "cancel_only" // no new orders
	TradeHalt  Status = "trade_halt"  // no new orders
	Withdrawn  Status = "withdrawn"   // no longer listed
)

// Valid reports whether s is a status that an operator may set on a listed instrument.
func (s Status) Valid() bool {
	return s == Open || s == PostOnly || s == CancelOnly || s == TradeHalt
}

// Stricter returns the stricter of two statuses.
func (s Status) Stricter(o Status) Status {
	if o.rank() > s.rank() {
		return o
	}
	return s
}

func (s Status) rank() int {
	switch s {
	case Open:
		return 0
	case PostOnly:
		return 1
	case CancelOnly:
		return 2
	case TradeHalt:
		return 3
	}
	return 4
}
