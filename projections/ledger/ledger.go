// Package ledger is the read model of money: the transactions and balances of customers, the postings and balances of
// the venue's own accounts, and positions.
//
// A transaction's place in every list is its first appearance. Deposits and withdrawals are transactions in their own
// right, and a withdrawal's row changes in place; the other rows are the customers' postings of trades and the like.
// Balances are those that the postings themselves state, so they can be held against the sum of the transactions.
package ledger

import (
	"github.com/jackc/pgx/v5"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/streams/journal"
)

// Projection keeps the tables transactions, venue_postings, balances, venue_balances and positions. Its statements
// look brokers up in the table customers, so the customers' projection must come before it.
type Projection struct{}

// Name returns "ledger".
func (Projection) Name() string { return "ledger" }

// Tables returns the tables of movements, balances and positions.
func (Projection) Tables() []string {
	return []string{"transactions", "venue_postings", "balances", "venue_balances", "positions"}
}

// Transaction is a row of a customer's transactions.
type Transaction struct {
	Code         decide.ID
	CustomerCode string
	Broker       string
	Type         ledger.Type
	Currency     string
	Amount       fixed.Money // signed
	Status       ledger.Status
	// Balance is the account's after the transaction, if that is completed; BalanceAsOf is when, else zero.
	Balance     fixed.Money
	BalanceAsOf decide.Time
	Symbol      string
	OrderCode   decide.ID
	// ReferenceID is set on deposits and withdrawals.
	ReferenceID string
	Created     decide.Time
	Updated     decide.Time
	// Sequence is that of the record that changed the row last.
	Sequence int64
}

// Of returns the transactions that an event makes or changes, in the order of their postings.
func Of(at decide.Stamp, event decide.Event) []Transaction {
	if t := transfer(event); t != nil {
		row := Transaction{Code: t.Code, CustomerCode: t.CustomerCode, Broker: t.Broker, Type: t.Type, Currency: t.Currency,
			Amount: t.Amount, Status: t.Status, ReferenceID: t.ReferenceID, Created: t.Created, Updated: t.Updated,
			Sequence: at.Sequence}
		if t.Status == ledger.Completed {
			row.Balance, row.BalanceAsOf = t.Balance, t.Updated
		}
		return []Transaction{row}
	}
	posted, ok := event.(ledger.Posted)
	if !ok {
		return nil
	}
	var rows []Transaction
	for _, p := range posted.Postings() {
		if p.CustomerCode == "" {
			continue
		}
		rows = append(rows, Transaction{Code: p.Code, CustomerCode: p.CustomerCode, Broker: brokerOf(event, p.CustomerCode),
			Type: p.Type, Currency: p.Currency, Amount: p.Amount, Status: ledger.Completed, Balance: p.Balance,
			BalanceAsOf: at.Time, Symbol: p.Symbol, OrderCode: p.OrderCode, Created: at.Time, Updated: at.Time,
			Sequence: at.Sequence})
	}
	return rows
}

// transfer returns the deposit or withdrawal that an event is about, or nil.
func transfer(event decide.Event) *ledger.Transaction {
	switch e := event.(type) {
	case *trading.DepositCompleted:
		return &e.Transaction
	case *trading.WithdrawalRequested:
		return &e.Transaction
	case *trading.WithdrawalCompleted:
		return &e.Transaction
	case *trading.WithdrawalCanceled:
		return &e.Transaction
	}
	return nil
}

// brokerOf returns a customer's broker if the event names it, or "": the statements then look it up.
func brokerOf(event decide.Event, customer string) string {
	switch e := event.(type) {
	case *trading.TradeExecuted:
		switch customer {
		case e.Taker.CustomerCode:
			return e.Taker.Broker
		case e.Maker.CustomerCode:
			return e.Maker.Broker
		}
	default:
		if t := transfer(event); t != nil {
			return t.Broker
		}
	}
	return ""
}

// place is where and when something changed.
type place struct {
	sequence int64
	time     decide.Time
}

type (
	transactionRow = projections.Row[Transaction]
	postingRow     struct {
		projections.Row[ledger.Posting]
		time decide.Time
	}
	balanceKey struct {
		owner, currency string
	}
	balanceRow struct {
		balanceKey
		broker  string
		balance fixed.Money
		place
	}
	positionKey struct {
		customer, symbol string
	}
	positionRow struct {
		trading.PositionHeld
		broker string
		place
	}
)

// rows are what a batch of entries leaves.
type rows struct {
	transfers projections.Latest[decide.ID, transactionRow] // rows that may change
	completed []transactionRow                              // rows that never do
	venue     []postingRow
	customers projections.Latest[balanceKey, balanceRow]
	accounts  projections.Latest[balanceKey, balanceRow]
	positions projections.Latest[positionKey, positionRow]
}

// Project queues the rows of every movement of money in the entries, and what they leave of balances and positions.
func (Projection) Project(entries []journal.Entry, batch *pgx.Batch) {
	var r rows
	for _, e := range entries {
		r.add(e)
	}
	r.queue(batch)
}

// add adds one record. Ordinals count the record's transactions, and its postings of the venue, each from 0.
func (r *rows) add(e journal.Entry) {
	at := e.Stamp()
	key := projections.Key{Sequence: at.Sequence}
	venue := key
	for _, event := range e.Record.Events {
		movable := transfer(event) != nil
		for _, t := range Of(at, event) {
			row := transactionRow{Key: key, Value: t}
			key.Ordinal++
			if !movable {
				r.completed = append(r.completed, row)
			} else if old, again := r.transfers.Put(t.Code, row); again {
				row.Key = old.Key
				r.transfers.Put(t.Code, row)
			}
		}
		if posted, ok := event.(ledger.Posted); ok {
			r.post(at, event, posted.Postings(), &venue)
		}
		if trade, ok := event.(*trading.TradeExecuted); ok {
			for _, p := range trade.Positions {
				r.positions.Put(positionKey{p.CustomerCode, p.Symbol},
					positionRow{p, brokerOf(event, p.CustomerCode), place{at.Sequence, at.Time}})
			}
		}
	}
}

func (r *rows) post(at decide.Stamp, event decide.Event, postings []ledger.Posting, venue *projections.Key) {
	for _, p := range postings {
		row := balanceRow{balance: p.Balance, place: place{at.Sequence, at.Time}}
		if p.CustomerCode != "" {
			row.balanceKey, row.broker = balanceKey{p.CustomerCode, p.Currency}, brokerOf(event, p.CustomerCode)
			r.customers.Put(row.balanceKey, row)
			continue
		}
		row.balanceKey = balanceKey{string(p.Account), p.Currency}
		r.accounts.Put(row.balanceKey, row)
		r.venue = append(r.venue, postingRow{projections.Row[ledger.Posting]{Key: *venue, Value: p}, at.Time})
		venue.Ordinal++
	}
}
