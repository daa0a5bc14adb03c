package ledger

import (
	"crypto/sha256"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Row is a row of a customer's transactions after an event.
type Row struct {
	Code         scalar.ID
	CustomerCode string
	Broker       string
	Type         Type
	Currency     string
	Amount       fixed.Money // signed
	Status       Status
	// Balance is the account's balance after the row, and BalanceAsOf its time. Both are zero unless the row is
	// completed.
	Balance     fixed.Money
	BalanceAsOf scalar.Time
	Symbol      string
	OrderCode   scalar.ID
	// ReferenceID is set on deposits and withdrawals.
	ReferenceID string
	// FundingTerms is set on funding rows only.
	FundingTerms
	Created scalar.Time
	Updated scalar.Time
	// Sequence is the sequence of the last record that changed the row.
	Sequence int64
}

// FundingTerms are the inputs of a funding payment, which is position × mark price × rate.
type FundingTerms struct {
	FundingRate    fixed.Decimal // the rate that longs pay, with 8 decimals
	PositionAmount fixed.Decimal // signed
	MarkPrice      fixed.Decimal
}

// Funded is implemented by the events that post funding.
type Funded interface {
	Posted
	FundingTerms() FundingTerms
}

// ID returns the row's id, a UUID of version 8. It is derived from Code, Type and CustomerCode, because a trade and its
// fees share a code, on both sides.
func (r *Row) ID() scalar.ID {
	b := append(r.Code[:len(r.Code):len(r.Code)], r.Type...)
	b = append(append(b, 0), r.CustomerCode...) // no type contains a zero byte
	sum := sha256.Sum256(b)
	id := scalar.ID(sum[:16])
	id[6] = id[6]&0x0f | 0x80
	id[8] = id[8]&0x3f | 0x80
	return id
}

// Rows calls each with every row of customers' transactions that an event adds or changes, in the order of the
// postings. A deposit or withdrawal is one row, for any event about it. For every other event, each posting to a
// customer's account is a completed row.
func Rows(at decide.Stamp, e decide.Event, each func(*Row)) {
	if about, ok := e.(TransactionEvent); ok {
		each(about.TransactionAfter().Row(at.Sequence))
		return
	}
	posted, ok := e.(Posted)
	if !ok {
		return
	}
	var terms FundingTerms
	if funded, ok := e.(Funded); ok {
		terms = funded.FundingTerms()
	}
	entries := posted.Postings()
	for i := range entries {
		if p := &entries[i]; p.CustomerCode != "" {
			each(&Row{Code: p.Code, CustomerCode: p.CustomerCode, Broker: posted.BrokerOf(p.CustomerCode), Type: p.Type,
				Currency: p.Currency, Amount: p.Amount, Status: Completed, Balance: p.Balance, BalanceAsOf: at.Time,
				Symbol: p.Symbol, OrderCode: p.OrderCode, FundingTerms: terms, Created: at.Time, Updated: at.Time, Sequence: at.Sequence})
		}
	}
}
