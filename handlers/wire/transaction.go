package wire

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
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
	Timestamp   scalar.Time         `json:"timestamp"`
	Sequence    int64               `json:"sequence"`
}

// NewTransaction shows a deposit or withdrawal as the record with the sequence left it.
func NewTransaction(t *ledger.Transaction, sequence int64) Transaction {
	out := Transaction{TransactionHead{t.Code, t.CustomerCode}, t.Type, TransactionRest{Currency: t.Currency,
		Amount: t.Amount, Status: t.Status, Timestamp: t.Updated, Sequence: sequence}}
	if t.Status == ledger.Completed {
		out.Balance, out.BalanceAsOf = &t.Balance, t.Updated
	}
	return out
}

// Message shows the row on a channel.
func (t Transaction) Message(channel string) *BalanceMessage {
	return &BalanceMessage{channel, Update, t.TransactionHead, t.Type, t.TransactionRest}
}

// NewPosting shows a posting to a customer's account, which completes with the record that holds it.
func NewPosting(p *ledger.Posting, at decide.Stamp) Transaction {
	return Transaction{TransactionHead{p.Code, p.CustomerCode}, p.Type, TransactionRest{Currency: p.Currency,
		Amount: p.Amount, Status: ledger.Completed, Balance: &p.Balance, BalanceAsOf: at.Time, Symbol: NullIfZero(p.Symbol),
		OrderCode: NullIfZero(p.OrderCode), Timestamp: at.Time, Sequence: at.Sequence}}
}
