package wire

import (
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Transaction is the REST form of a row of a customer's ledger.
type Transaction struct {
	TransactionHead
	Type ledger.Type `json:"type"`
	TransactionRest
}

// BalanceMessage is a row of a customer's ledger on the balance-changes channel.
type BalanceMessage struct {
	Channel string `json:"channel"`
	Kind    string `json:"type"` // the message type, always "update"
	TransactionHead
	Type ledger.Type `json:"transaction_type"`
	TransactionRest
}

// TransactionHead holds the leading members, which both forms of a row share.
type TransactionHead struct {
	ID           scalar.ID `json:"id"` // unique to the row; Code is shared by all rows of a trade
	Code         scalar.ID `json:"code"`
	CustomerCode string    `json:"customer_code"`
}

// TransactionRest holds the members after the type, which both forms of a row share.
type TransactionRest struct {
	Currency    string              `json:"currency"`
	Amount      fixed.Money         `json:"amount"`
	Status      ledger.Status       `json:"status"`
	Balance     *fixed.Money        `json:"balance,omitzero"` // balance and balance_as_of: completed rows only
	BalanceAsOf scalar.Time         `json:"balance_as_of,omitzero"`
	Symbol      Nullable[string]    `json:"symbol"`
	OrderCode   Nullable[scalar.ID] `json:"order_code"`
	// Funding rows only: the inputs of the amount.
	FundingRate    fixed.Decimal `json:"funding_rate,omitzero"`
	PositionAmount fixed.Decimal `json:"position_amount,omitzero"`
	MarkPrice      fixed.Decimal `json:"mark_price,omitzero"`
	ReferenceID    string        `json:"reference_id,omitzero"` // deposits and withdrawals only
	Timestamp      scalar.Time   `json:"timestamp"`
	Sequence       int64         `json:"sequence"`
}

// NewTransaction converts a row to its REST form.
func NewTransaction(r *ledger.Row) Transaction {
	out := Transaction{TransactionHead{r.ID(), r.Code, r.CustomerCode}, r.Type, TransactionRest{Currency: r.Currency, Amount: r.Amount,
		FundingRate: r.FundingRate, PositionAmount: r.PositionAmount, MarkPrice: r.MarkPrice,
		Status: r.Status, Symbol: NullIfZero(r.Symbol), OrderCode: NullIfZero(r.OrderCode), ReferenceID: r.ReferenceID, Timestamp: r.Updated, Sequence: r.Sequence}}
	if r.Status == ledger.Completed {
		out.Balance, out.BalanceAsOf = &r.Balance, r.BalanceAsOf
	}
	return out
}

// Message returns the row as a message on a channel.
func (t Transaction) Message(channel string) *BalanceMessage {
	return &BalanceMessage{channel, Update, t.TransactionHead, t.Type, t.TransactionRest}
}
