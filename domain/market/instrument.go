// Package market says what is traded: the instruments and their parameters, and how prices, amounts and notional are
// counted in integers.
//
// A price is counted in ticks, an amount in steps. One tick times one step times the contract size is a whole number
// of money units (10⁻⁸), the instrument's Unit, so that the notional of a trade is exact: ticks × steps × Unit. The
// mark price lies on a tick; it is counted in marks, of which a tick has 10,000, since older journals hold some that do
// not. Index prices may be finer than the tick: they are counted in units of 10⁻⁸.
package market

import (
	"github.com/perpetua-exchange/perpetua/domain/fixed"
)

// Instrument is a perpetual contract in its full state, as the journal and the interfaces show it.
type Instrument struct {
	Symbol             string `json:"symbol"`
	Underlying         string `json:"underlying"`
	QuoteCurrency      string `json:"quote_currency"`
	SettlementCurrency string `json:"settlement_currency"`
	// Status is the operator's setting. What is in force may be stricter: see trading.State.Status.
	Status       Status        `json:"status"`
	PriceTick    fixed.Decimal `json:"price_tick"`
	AmountStep   fixed.Decimal `json:"amount_step"`
	MinAmount    fixed.Decimal `json:"min_amount"`
	MaxAmount    fixed.Decimal `json:"max_amount"`
	ContractSize fixed.Decimal `json:"contract_size"`
	// InitMarginReq and MaintMarginReq are percentages with 2 decimals: the first tier's.
	InitMarginReq          fixed.Decimal `json:"init_margin_req"`
	MaintMarginReq         fixed.Decimal `json:"maint_margin_req"`
	MaxLeverage            int           `json:"max_leverage"`
	FundingIntervalSeconds int           `json:"funding_interval_seconds"`
	// PriceBand is how far from mark, in percent, market orders may trade.
	PriceBand fixed.Decimal `json:"price_band"`
	// LimitBand is how far beyond mark, in percent, a limit order's price may lie on its taking side.
	LimitBand fixed.Decimal `json:"limit_band"`
	// MakerFee and TakerFee are the default fees in basis points.
	MakerFee fixed.Decimal `json:"maker_fee"`
	TakerFee fixed.Decimal `json:"taker_fee"`
	// IndexStaleSeconds is the age at which the index price is too old to be used; 0 means never.
	IndexStaleSeconds int `json:"index_stale_seconds"`
	// Tiers are the marginal margin brackets, lowest first; never empty.
	Tiers []Tier `json:"margin_tiers"`
}

// Tier is one bracket of margin rates, which apply like tax brackets: each to the part of the notional inside it.
type Tier struct {
	// NotionalFrom is the notional at which the bracket begins, in the quote currency: zero in the first one.
	NotionalFrom fixed.Money `json:"notional_from"`
	// InitMarginReq and MaintMarginReq are percentages with at most 4 decimals.
	InitMarginReq  fixed.Decimal `json:"init_margin_req"`
	MaintMarginReq fixed.Decimal `json:"maint_margin_req"`
	// MaxLeverage is told to clients, at most what InitMarginReq allows. It decides nothing: the requirements do.
	MaxLeverage int `json:"max_leverage"`
}

// allows returns how many times its margin what lies in the bracket may be worth, in whole numbers.
func (t Tier) allows() int {
	rate := fixed.Percent(t.InitMarginReq)
	if rate.Num <= 0 {
		return 0 // an instrument that Check does not accept
	}
	return int(rate.Den / rate.Num)
}

// Status says what may be done on an instrument.
type Status string

// The statuses, from the loosest to the strictest.
const (
	Open       Status = "open"
	PostOnly   Status = "post_only"   // orders that rest may be placed; nothing matches
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
