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

// IndexUpdated says that a new index price was set, with the resulting mark price and, if the premium was sampled, how
// far the book was from the index price.
type IndexUpdated struct {
	Symbol     string        `json:"symbol"`
	IndexPrice fixed.Decimal `json:"index_price"`
	MarkPrice  fixed.Decimal `json:"mark_price"`
	// Premium is a fraction of the index price with 12 decimals; nil if it was not sampled. (Zero is a sample and is
	// not omitted.)
	Premium *fixed.Decimal `json:"premium,omitempty"`
}

// EventType returns "index.updated".
func (*IndexUpdated) EventType() string { return "index.updated" }

var _ decide.Versioned = (*IndexUpdated)(nil)

// EventVersion returns 2.
func (*IndexUpdated) EventVersion() int { return 2 }

// readIndexUpdated1 reads version 1, which had no premium.
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

// GuardSet says whether an instrument's index price is too old, and which status is in force as a result.
type GuardSet struct {
	Symbol string        `json:"symbol"`
	Stale  bool          `json:"stale"`
	Status market.Status `json:"status"`
}

// EventType returns "guard.set".
func (*GuardSet) EventType() string { return "guard.set" }

// FundingFixed says at which rate and mark price an instrument's positions pay funding for an instant, or that the
// instant was missed and no position pays.
type FundingFixed struct {
	Symbol string `json:"symbol"`
	// FundingRate has 8 decimals: the fraction of their position's value that longs pay to shorts.
	FundingRate     fixed.Decimal `json:"funding_rate"`
	IndexPrice      fixed.Decimal `json:"index_price"`
	MarkPrice       fixed.Decimal `json:"mark_price"`
	IntervalSeconds int           `json:"interval_seconds"`
	Time            scalar.Time   `json:"timestamp"` // the instant
	Missed          bool          `json:"missed"`
}

// EventType returns "funding.fixed".
func (*FundingFixed) EventType() string { return "funding.fixed" }

// SettlementFixed says at which mark prices all positions are settled.
type SettlementFixed struct {
	Time  scalar.Time      `json:"timestamp"` // the scheduled time of the settlement
	Marks []SettlementMark `json:"marks"`     // instruments with positions, in listing order, but not those of AlarmSettlement
}

// SettlementMark is the price at which positions on an instrument are settled.
type SettlementMark struct {
	Symbol    string        `json:"symbol"`
	MarkPrice fixed.Decimal `json:"mark_price"`
}

// EventType returns "settlement.fixed".
func (*SettlementFixed) EventType() string { return "settlement.fixed" }

// DebtPosted has the common fields of the postings of funding and of settlement.
type DebtPosted struct {
	Code         scalar.ID        `json:"code"`
	CustomerCode string           `json:"customer_code"`
	Broker       string           `json:"broker"`
	Symbol       string           `json:"symbol"`
	Time         scalar.Time      `json:"timestamp"` // of the instant
	MarkPrice    fixed.Decimal    `json:"mark_price"`
	Entries      []ledger.Posting `json:"postings"` // empty if nothing is owed
}

// Postings implements ledger.Posted.
func (e *DebtPosted) Postings() []ledger.Posting { return e.Entries }

// BrokerOf implements ledger.Posted and PositionEvent. The event is about one customer.
func (e *DebtPosted) BrokerOf(string) string { return e.Broker }

// FundingPosted says that a position paid or received the funding of one instant.
type FundingPosted struct {
	DebtPosted
	PositionAmount fixed.Decimal `json:"position_amount"` // signed: negative is short
	FundingRate    fixed.Decimal `json:"funding_rate"`
}

// EventType returns "funding.posted".
func (*FundingPosted) EventType() string { return "funding.posted" }

// FundingTerms implements ledger.Funded.
func (e *FundingPosted) FundingTerms() ledger.FundingTerms {
	return ledger.FundingTerms{FundingRate: e.FundingRate, PositionAmount: e.PositionAmount, MarkPrice: e.MarkPrice}
}

// SettlementPosted says that a position's unrealized profit was added to the balance, and that its value at mark became
// its cost.
type SettlementPosted struct {
	DebtPosted
	Positions []PositionHeld `json:"positions"` // the one position after the settlement
}

// EventType returns "settlement.posted".
func (*SettlementPosted) EventType() string { return "settlement.posted" }

// PositionsAfter implements PositionEvent.
func (e *SettlementPosted) PositionsAfter() []PositionHeld { return e.Positions }

func rateOf(x *charge) fixed.Decimal { return market.Rate(x.rate) }
