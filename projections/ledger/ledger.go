// Package ledger is the read model of money: the transactions and balances of customers, the postings and balances of
// the venue's own accounts, and positions.
//
// A transaction's place in every list is its first appearance. Deposits and withdrawals are transactions in their own
// right, and a withdrawal's row changes in place; the other rows are the customers' postings of trades and the like.
// Balances are those that the postings themselves state, so they can be held against the sum of the transactions.
package ledger

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/projections"
	c "github.com/perpetua-exchange/perpetua/projections/column"
	"github.com/perpetua-exchange/perpetua/streams/journal"
)

// Projection keeps the tables transactions, venue_postings, balances, venue_balances and positions. Where an event does
// not name a customer's broker its statements look it up in the table customers, so the customers' projection must come
// before it.
type Projection struct{}

// Name returns "ledger".
func (Projection) Name() string { return "ledger" }

// Tables returns the tables of movements, balances and positions.
func (Projection) Tables() []string {
	return []string{"transactions", "venue_postings", "balances", "venue_balances", "positions"}
}

// Transaction is a row of a customer's transactions.
type Transaction struct {
	Code         scalar.ID
	CustomerCode string
	Broker       string
	Type         ledger.Type
	Currency     string
	Amount       fixed.Money // signed
	Status       ledger.Status
	// Balance is the account's after the transaction, if that is completed; BalanceAsOf is when, else zero.
	Balance     fixed.Money
	BalanceAsOf scalar.Time
	Symbol      string
	OrderCode   scalar.ID
	// ReferenceID is set on deposits and withdrawals.
	ReferenceID string
	Created     scalar.Time
	Updated     scalar.Time
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
	time     scalar.Time
}

type (
	transactionRow struct {
		projections.Row[Transaction]
		made bool // by one of the entries
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
	transactions *c.Rows
	venue        *c.Rows
	unnamed      []transactionRow                              // whose broker must be looked up
	transfers    projections.Latest[scalar.ID, transactionRow] // deposits and withdrawals
	customers    projections.Latest[balanceKey, balanceRow]
	accounts     projections.Latest[balanceKey, balanceRow]
	positions    projections.Latest[positionKey, positionRow]
}

// Project adds the rows of every movement of money in the entries, and what they leave of balances and positions.
func (Projection) Project(entries []journal.Entry, batch *projections.Batch) {
	r := rows{transactions: batch.Copy(copyTransactions), venue: batch.Copy(copyVenuePostings)}
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
	for i, event := range e.Record.Events {
		movable := transfer(event) != nil
		for _, t := range Of(at, event) {
			row := transactionRow{Row: projections.Row[Transaction]{Key: key, Value: t}}
			key.Ordinal++
			switch {
			case movable:
				// It is made where its code is the one that the journal gives to that place.
				known, again := r.transfers.Slot(t.Code)
				if again {
					row.Key, row.made = known.Key, known.made
				} else {
					row.made = t.Code == at.Derive(i)
				}
				*known = row
			case t.Broker == "":
				r.unnamed = append(r.unnamed, row)
			default:
				row.encode(r.transactions)
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
	for i := range postings {
		p := &postings[i]
		row := balanceRow{balance: p.Balance, place: place{at.Sequence, at.Time}}
		if p.CustomerCode != "" {
			row.balanceKey, row.broker = balanceKey{p.CustomerCode, p.Currency}, brokerOf(event, p.CustomerCode)
			r.customers.Put(row.balanceKey, row)
			continue
		}
		row.balanceKey = balanceKey{string(p.Account), p.Currency}
		r.accounts.Put(row.balanceKey, row)
		encodePosting(r.venue, *venue, p, at.Time)
		venue.Ordinal++
	}
}
