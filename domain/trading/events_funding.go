package trading

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// IndexUpdated says that an index price came in, what mark price follows, and how far the book stood from it where the
// premium was sampled.
type IndexUpdated struct {
	Symbol     string        `json:"symbol"`
	IndexPrice fixed.Decimal `json:"index_price"`
	MarkPrice  fixed.Decimal `json:"mark_price"`
	// Premium is a part of the index price, with 12 decimals; nil where there is no sample. (Zero is one: it is not omitted.)
	Premium *fixed.Decimal `json:"premium,omitempty"`
}

// EventType returns "index.updated".
func (*IndexUpdated) EventType() string { return "index.updated" }

// EventVersion returns 2.
func (*IndexUpdated) EventVersion() int { return 2 }

// readIndexUpdated1 reads the first version, which had no sample of the premium.
func readIndexUpdated1(raw jsontext.Value) (decide.Event, error) {
	var old struct {
		Symbol     string        `json:"symbol"`
		IndexPrice fixed.Decimal `json:"index_price"`
		MarkPrice  fixed.Decimal `json:"mark_price"`
	}
	if err := json.Unmarshal(raw, &old, json.RejectUnknownMembers(true)); err != nil {
		return nil, err
	}
	return &IndexUpdated{Symbol: old.Symbol, IndexPrice: old.IndexPrice, MarkPrice: old.MarkPrice}, nil
}

// GuardSet says whether an instrument's index price is too old, and what status is in force with that.
type GuardSet struct {
	Symbol string        `json:"symbol"`
	Stale  bool          `json:"stale"`
	Status market.Status `json:"status"`
}

// EventType returns "guard.set".
func (*GuardSet) EventType() string { return "guard.set" }

// EventVersion returns 1.
func (*GuardSet) EventVersion() int { return 1 }

// FundingFixed says at what rate and mark price an instrument's positions pay funding for an instant, or that the instant
// was missed and nobody pays.
type FundingFixed struct {
	Symbol string `json:"symbol"`
	// FundingRate has 8 decimals: what longs pay to shorts, as a part of what their positions are worth.
	FundingRate     fixed.Decimal `json:"funding_rate"`
	IndexPrice      fixed.Decimal `json:"index_price"`
	MarkPrice       fixed.Decimal `json:"mark_price"`
	IntervalSeconds int           `json:"interval_seconds"`
	Time            scalar.Time   `json:"timestamp"` // the instant
	Missed          bool          `json:"missed"`
}

// EventType returns "funding.fixed".
func (*FundingFixed) EventType() string { return "funding.fixed" }

// EventVersion returns 1.
func (*FundingFixed) EventVersion() int { return 1 }

// SettlementFixed says at what mark prices all positions are settled.
type SettlementFixed struct {
	Time  scalar.Time      `json:"timestamp"` // the time of day for which it is
	Marks []SettlementMark `json:"marks"`     // of the instruments with positions, in the order of listing, without those left out: see AlarmSettlement
}

// SettlementMark is the price at which positions on an instrument are settled.
type SettlementMark struct {
	Symbol    string        `json:"symbol"`
	MarkPrice fixed.Decimal `json:"mark_price"`
}

// EventType returns "settlement.fixed".
func (*SettlementFixed) EventType() string { return "settlement.fixed" }

// EventVersion returns 1.
func (*SettlementFixed) EventVersion() int { return 1 }

// DebtPosted is what a posting of funding and one of settlement have in common.
type DebtPosted struct {
	Code         scalar.ID        `json:"code"`
	CustomerCode string           `json:"customer_code"`
	Broker       string           `json:"broker"`
	Symbol       string           `json:"symbol"`
	Time         scalar.Time      `json:"timestamp"` // of what was fixed
	MarkPrice    fixed.Decimal    `json:"mark_price"`
	Entries      []ledger.Posting `json:"postings"` // none where nothing is to be paid
}

// Postings implements ledger.Posted.
func (e *DebtPosted) Postings() []ledger.Posting { return e.Entries }

// BrokerOf implements ledger.Posted and PositionEvent: there is one customer.
func (e *DebtPosted) BrokerOf(string) string { return e.Broker }

// FundingPosted says that a position paid or received what it owed of a funding instant.
type FundingPosted struct {
	DebtPosted
	PositionAmount fixed.Decimal `json:"position_amount"` // signed: negative is short
	FundingRate    fixed.Decimal `json:"funding_rate"`
}

// EventType returns "funding.posted".
func (*FundingPosted) EventType() string { return "funding.posted" }

// EventVersion returns 1.
func (*FundingPosted) EventVersion() int { return 1 }

// FundingTerms implements ledger.Funded.
func (e *FundingPosted) FundingTerms() ledger.FundingTerms {
	return ledger.FundingTerms{FundingRate: e.FundingRate, PositionAmount: e.PositionAmount, MarkPrice: e.MarkPrice}
}

// SettlementPosted says that a position's unrealised profit became balance, and its value at mark its cost.
type SettlementPosted struct {
	DebtPosted
	Positions []PositionHeld `json:"positions"` // the one, after it
}

// EventType returns "settlement.posted".
func (*SettlementPosted) EventType() string { return "settlement.posted" }

// EventVersion returns 1.
func (*SettlementPosted) EventVersion() int { return 1 }

// PositionsAfter implements PositionEvent.
func (e *SettlementPosted) PositionsAfter() []PositionHeld { return e.Positions }

func rateOf(x *instant) fixed.Decimal { return market.Rate(x.rate) }
