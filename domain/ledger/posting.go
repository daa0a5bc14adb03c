// Package ledger holds the venue's double-entry accounts: what a posting is, and the balances of the venue's own
// accounts.
//
// Every movement of money is a set of postings whose amounts sum to exactly zero per currency. A posting stands
// either on a customer's account or on one of the venue's (Account). Amounts are signed: positive is credited to the
// account. Postings of customers are the rows of their transactions.
package ledger

import (
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// USDC is the settlement currency, and the only one that accounts are kept in.
const USDC = "USDC"

// Account is one of the venue's own accounts.
type Account string

// The venue's accounts.
const (
	External  Account = "external"  // the world outside: minus the sum of all that was paid in and not paid out
	Fees      Account = "fees"      // trading fees earned, rebates paid
	Insurance Account = "insurance" // the insurance fund
	Funding   Account = "funding"   // funding paid and not yet received; zero once an instant is posted by all
	Clearing  Account = "clearing"  // the other side of realised profit: minus the sum of all positions' costs
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
	Trade            Type = "trade" // closing profit or loss
	TradeFee         Type = "trade_fee"
	FundingPayment   Type = "funding"
	Settlement       Type = "settlement"
	Liquidation      Type = "liquidation"
	LiquidationFee   Type = "liquidation_fee"
	AutoDeleveraging Type = "auto_deleveraging"
	InsuranceFund    Type = "insurance"
)

// Status is where a movement stands. Only completed ones count in balances.
type Status string

// The statuses of a movement.
const (
	Pending   Status = "pending"
	Completed Status = "completed"
	Canceled  Status = "canceled"
)

// Posting is one completed entry in one account. Its amount is never zero.
type Posting struct {
	// Code is the transaction's code, on postings of customers only. With Type and CustomerCode it is the key of a
	// transactions row: a trade's row, its fee row and the trade share the code.
	Code scalar.ID `json:"code,omitzero"`
	// Account is the venue's account, or "" on a posting of a customer.
	Account Account `json:"account,omitzero"`
	// CustomerCode is the customer, or "" on a posting of the venue.
	CustomerCode string      `json:"customer_code,omitzero"`
	Type         Type        `json:"type"`
	Currency     string      `json:"currency"`
	Amount       fixed.Money `json:"amount"`
	// Balance is the account's balance after the posting.
	Balance   fixed.Money `json:"balance"`
	Symbol    string      `json:"symbol,omitzero"`
	OrderCode scalar.ID   `json:"order_code,omitzero"`
}

// Posted is implemented by every event that moves money. Whoever follows the journal finds postings by it, whatever the
// event, and needs no list of events.
type Posted interface {
	// Postings returns the movement's entries, in the order in which they were made. They are not to be changed.
	Postings() []Posting
	// BrokerOf returns the broker of a customer that one of the postings names.
	BrokerOf(customer string) string
}

// TransactionEvent is implemented by the events of deposits and withdrawals: whatever embeds a Transaction.
type TransactionEvent interface {
	// TransactionAfter returns the deposit or withdrawal after the record. It is not to be changed.
	TransactionAfter() *Transaction
}

// Transaction is a deposit or withdrawal in its full state. (The other rows of a customer's transactions are postings,
// which are completed from the start.)
type Transaction struct {
	Code         scalar.ID `json:"code"`
	CustomerCode string    `json:"customer_code"`
	Broker       string    `json:"broker"`
	Type         Type      `json:"type"`
	Currency     string    `json:"currency"`
	// Amount is signed: a withdrawal's is negative.
	Amount fixed.Money `json:"amount"`
	Status Status      `json:"status"`
	// Balance is the customer's balance after the record. The interfaces show it, with the record's time as
	// balance_as_of, once the transaction is completed.
	Balance fixed.Money `json:"balance"`
	// ReferenceID is the name given by whoever asked, or the code.
	ReferenceID string      `json:"reference_id"`
	Created     scalar.Time `json:"created"`
	Updated     scalar.Time `json:"updated"`
}

// TransactionAfter implements TransactionEvent.
func (t *Transaction) TransactionAfter() *Transaction { return t }

// Row returns the transaction as the record with the sequence left it.
func (t *Transaction) Row(sequence int64) *Row {
	row := &Row{Code: t.Code, CustomerCode: t.CustomerCode, Broker: t.Broker, Type: t.Type, Currency: t.Currency,
		Amount: t.Amount, Status: t.Status, ReferenceID: t.ReferenceID, Created: t.Created, Updated: t.Updated, Sequence: sequence}
	if t.Status == Completed {
		row.Balance, row.BalanceAsOf = t.Balance, t.Updated
	}
	return row
}

// BrokerOf implements Posted: the postings of a deposit or withdrawal name its own customer, and no other.
func (t *Transaction) BrokerOf(string) string { return t.Broker }
