// Package ledger defines double-entry bookkeeping for the venue: postings, the venue's own accounts, and the rows of
// customers' transactions.
//
// Every movement of money is a set of postings with amounts that sum to exactly zero per currency. A posting is either
// to a customer's account or to one of the venue's (Account). Amounts are signed and in units of 10⁻⁸ USDC; a positive
// amount is a credit to the account. A customer's postings, and the deposits and withdrawals, are the rows of the
// customer's transactions.
package ledger

import (
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// USDC is the settlement currency, and the currency of all accounts.
const USDC = "USDC"

// Account is one of the venue's own accounts.
type Account string

// The venue's accounts.
const (
	External  Account = "external"  // the outside world: minus the sum of deposits less withdrawals, plus the costs of imported positions
	Fees      Account = "fees"      // trading fees earned less rebates paid
	Insurance Account = "insurance" // the insurance fund
	Funding   Account = "funding"   // funding paid and not yet received; zero when all positions have posted an instant
	Clearing  Account = "clearing"  // the counterpart of realized profits: minus the sum of the costs of all positions
	Rounding  Account = "rounding"  // remainders of rounding
)

// Accounts lists the venue's accounts.
func Accounts() []Account {
	return []Account{External, Fees, Insurance, Funding, Clearing, Rounding}
}

// Type is the kind of a movement.
type Type string

// The kinds of movement.
const (
	Deposit          Type = "deposit"
	Withdrawal       Type = "withdrawal"
	Transfer         Type = "transfer"
	Trade            Type = "trade" // profit or loss of a closed position
	TradeFee         Type = "trade_fee"
	FundingPayment   Type = "funding"
	Settlement       Type = "settlement"
	Liquidation      Type = "liquidation"
	LiquidationFee   Type = "liquidation_fee"
	AutoDeleveraging Type = "auto_deleveraging"
	InsuranceFund    Type = "insurance"
)

// Status is the stage of a movement. Only completed movements count in balances.
type Status string

// The statuses of a movement.
const (
	Pending   Status = "pending"
	Completed Status = "completed"
	Canceled  Status = "canceled"
)

// Posting is a completed entry in one account. Its amount is never zero.
type Posting struct {
	// Code is the transaction's code; only customers' postings have one. With Type and CustomerCode it is the key of a
	// transactions row: a trade, its row and its fee row share the code.
	Code scalar.ID `json:"code,omitzero"`
	// Account is the venue's account, or "" for a customer's posting.
	Account Account `json:"account,omitzero"`
	// CustomerCode is the customer, or "" for a posting to the venue's account.
	CustomerCode string      `json:"customer_code,omitzero"`
	Type         Type        `json:"type"`
	Currency     string      `json:"currency"`
	Amount       fixed.Money `json:"amount"`
	// Balance is the account's balance after the posting.
	Balance   fixed.Money `json:"balance"`
	Symbol    string      `json:"symbol,omitzero"`
	OrderCode scalar.ID   `json:"order_code,omitzero"`
}

// Posted is implemented by every event that moves money. Readers of the journal find postings through it, so they need
// no list of events.
type Posted interface {
	// Postings returns the entries in the order in which they were made. The caller MUST NOT change them.
	Postings() []Posting
	// BrokerOf returns the broker of a customer that one of the postings names.
	BrokerOf(customer string) string
}

// TransactionEvent is implemented by the events of deposits and withdrawals, which embed a Transaction.
type TransactionEvent interface {
	// TransactionAfter returns the deposit or withdrawal after the record. The caller MUST NOT change it.
	TransactionAfter() *Transaction
}

// Transaction is the full state of a deposit or withdrawal. (The other rows of a customer's transactions are postings,
// which are always completed.)
type Transaction struct {
	Code         scalar.ID `json:"code"`
	CustomerCode string    `json:"customer_code"`
	Broker       string    `json:"broker"`
	Type         Type      `json:"type"`
	Currency     string    `json:"currency"`
	// Amount is signed: withdrawals are negative.
	Amount fixed.Money `json:"amount"`
	Status Status      `json:"status"`
	// Balance is the customer's balance after the record. The interfaces show it, with the record's time as
	// balance_as_of, once the transaction is completed.
	Balance fixed.Money `json:"balance"`
	// ReferenceID is the name that the requester gave, or the code.
	ReferenceID string      `json:"reference_id"`
	Created     scalar.Time `json:"created"`
	Updated     scalar.Time `json:"updated"`
}

// TransactionAfter implements TransactionEvent.
func (t *Transaction) TransactionAfter() *Transaction { return t }

// Row returns the row of the transaction after the record with the sequence.
func (t *Transaction) Row(sequence int64) *Row {
	row := &Row{Code: t.Code, CustomerCode: t.CustomerCode, Broker: t.Broker, Type: t.Type, Currency: t.Currency,
		Amount: t.Amount, Status: t.Status, ReferenceID: t.ReferenceID, Created: t.Created, Updated: t.Updated, Sequence: sequence}
	if t.Status == Completed {
		row.Balance, row.BalanceAsOf = t.Balance, t.Updated
	}
	return row
}

// BrokerOf implements Posted. The postings of a deposit or withdrawal name only the transaction's own customer.
func (t *Transaction) BrokerOf(string) string { return t.Broker }
