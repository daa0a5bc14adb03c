package wire

import (
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Transaction is a row of a customer's ledger as REST shows it.
type Transaction struct {
	TransactionHead
	Type ledger.Type `json:"type"`
	TransactionRest
}

// BalanceMessage is a row of a customer's ledger on the channel balance-changes.
type BalanceMessage struct {
	Channel string `json:"channel"`
	Kind    string `json:"type"` // of the message
	TransactionHead
	Type ledger.Type `json:"transaction_type"`
	TransactionRest
}

// TransactionHead is what both forms of a row begin with.
type TransactionHead struct {
	ID           scalar.ID `json:"id"` // the row's own; a trade's rows share its code
	Code         scalar.ID `json:"code"`
	CustomerCode string    `json:"customer_code"`
}

// TransactionRest is what both forms of a row hold after its type.
type TransactionRest struct {
	Currency    string              `json:"currency"`
	Amount      fixed.Money         `json:"amount"`
	Status      ledger.Status       `json:"status"`
	Balance     *fixed.Money        `json:"balance,omitzero"` // of completed rows only, as is the next
	BalanceAsOf scalar.Time         `json:"balance_as_of,omitzero"`
	Symbol      Nullable[string]    `json:"symbol"`
	OrderCode   Nullable[scalar.ID] `json:"order_code"`
	// Of funding rows only: what the amount follows from.
	FundingRate    fixed.Decimal `json:"funding_rate,omitzero"`
	PositionAmount fixed.Decimal `json:"position_amount,omitzero"`
	MarkPrice      fixed.Decimal `json:"mark_price,omitzero"`
	ReferenceID    string        `json:"reference_id,omitzero"` // of deposits and withdrawals only
	Timestamp      scalar.Time   `json:"timestamp"`
	Sequence       int64         `json:"sequence"`
}

// NewTransaction shows a row.
func NewTransaction(r *ledger.Row) Transaction {
	out := Transaction{TransactionHead{r.ID(), r.Code, r.CustomerCode}, r.Type, TransactionRest{Currency: r.Currency, Amount: r.Amount,
		FundingRate: r.FundingRate, PositionAmount: r.PositionAmount, MarkPrice: r.MarkPrice,
		Status: r.Status, Symbol: NullIfZero(r.Symbol), OrderCode: NullIfZero(r.OrderCode), ReferenceID: r.ReferenceID, Timestamp: r.Updated, Sequence: r.Sequence}}
	if r.Status == ledger.Completed {
		out.Balance, out.BalanceAsOf = &r.Balance, r.BalanceAsOf
	}
	return out
}

// Message shows the row on a channel.
func (t Transaction) Message(channel string) *BalanceMessage {
	return &BalanceMessage{channel, Update, t.TransactionHead, t.Type, t.TransactionRest}
}
