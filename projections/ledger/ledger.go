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
type Transaction = ledger.Row

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
		_, transfer := event.(ledger.TransactionEvent)
		ledger.Rows(at, event, func(t *Transaction) {
			row := transactionRow{Row: projections.Row[Transaction]{Key: key, Value: *t}}
			key.Ordinal++
			if !transfer {
				row.encode(r.transactions)
				return
			}
			// It is made where its code is the one that the journal gives to that place.
			known, again := r.transfers.Slot(t.Code)
			if again {
				row.Key, row.made = known.Key, known.made
			} else {
				row.made = t.Code == at.Derive(i)
			}
			*known = row
		})
		if posted, ok := event.(ledger.Posted); ok {
			r.post(at, posted, &venue)
		}
		if changed, ok := event.(trading.PositionEvent); ok {
			for _, p := range changed.PositionsAfter() {
				r.positions.Put(positionKey{p.CustomerCode, p.Symbol},
					positionRow{p, changed.BrokerOf(p.CustomerCode), place{at.Sequence, at.Time}})
			}
		}
	}
}

func (r *rows) post(at decide.Stamp, posted ledger.Posted, venue *projections.Key) {
	postings := posted.Postings()
	for i := range postings {
		p := &postings[i]
		row := balanceRow{balance: p.Balance, place: place{at.Sequence, at.Time}}
		if p.CustomerCode != "" {
			row.balanceKey, row.broker = balanceKey{p.CustomerCode, p.Currency}, posted.BrokerOf(p.CustomerCode)
			r.customers.Put(row.balanceKey, row)
			continue
		}
		row.balanceKey = balanceKey{string(p.Account), p.Currency}
		r.accounts.Put(row.balanceKey, row)
		encodePosting(r.venue, *venue, p, at.Time)
		venue.Ordinal++
	}
}
