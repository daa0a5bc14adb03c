// Package ledger is the read model of money: the transactions and balances of customers, the postings and balances of
// the venue's own accounts, and positions.
//
// A transaction is listed at the position where it first appears. A deposit or withdrawal is one transaction, and the
// row of a withdrawal is updated. All other rows are customers' postings, for example of trades. Balances are those that
// the postings state, so they can be compared with the sums of the transactions.
package ledger

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Projection maintains the tables transactions, venue_postings, balances, venue_balances and positions, and the earlier
// versions of customers' balances and positions.
var Projection = projections.NewProjection("ledger", project, transactions.Name, venuePostings.Name, balances.Name,
	venueBalances.Name, positions.Name, balanceHistory.Name(), positionHistory.Name())

type (
	balanceKey struct {
		owner, currency string
	}
	positionKey struct {
		customer, symbol string
	}
	// transfer is a deposit or withdrawal after the entries.
	transfer struct {
		transactionRow
		made bool // one of the entries created it
	}
)

// changes collects the rows that a batch of entries creates and changes.
type changes struct {
	transactions projections.Adder[Transaction]
	venue        projections.Adder[venuePosting]
	transfers    projections.Latest[scalar.ID, transfer]
	customers    projections.Versioned[balanceKey, Balance]
	accounts     projections.Latest[balanceKey, balanceRow]
	positions    projections.Versioned[positionKey, Position]
}

// project adds a row for each movement of money in the entries, and the resulting balances and positions.
func project(entries []record.Entry, batch *projections.Batch) {
	r := changes{transactions: transactions.Copy(batch), venue: venuePostings.Copy(batch)}
	for _, e := range entries {
		r.add(e)
	}
	var changed []transactionRow
	for _, t := range r.transfers.Rows() {
		if t.made {
			r.transactions.Add(&t.transactionRow)
		} else {
			changed = append(changed, t.transactionRow)
		}
	}
	transactions.Update(batch, changed)
	r.customers.Close(batch, balanceHistory)
	balances.Upsert(batch, r.customers.Rows())
	venueBalances.Upsert(batch, r.accounts.Rows())
	r.positions.Close(batch, positionHistory)
	positions.Upsert(batch, r.positions.Rows())
}

// add adds one record. Ordinals count the record's transactions and, separately, its postings to the venue's accounts,
// both from 0.
func (r *changes) add(e record.Entry) {
	at := e.Stamp()
	key := projections.Key{Sequence: at.Sequence}
	venue := key
	for i, event := range e.Record.Events {
		_, transferred := event.(ledger.TransactionEvent)
		ledger.Rows(at, event, func(t *Transaction) {
			row := transactionRow{Key: key, Value: *t}
			key.Ordinal++
			if !transferred {
				r.transactions.Add(&row)
				return
			}
			// The event creates the transaction if the code is derived from the position of the event.
			known, again := r.transfers.Slot(t.Code)
			if again {
				row.Key = known.Key
			} else {
				known.made = t.Code == at.Derive(i)
			}
			known.transactionRow = row
		})
		if posted, ok := event.(ledger.Posted); ok {
			r.post(at, posted, &venue)
		}
		if changed, ok := event.(trading.PositionEvent); ok {
			for _, p := range changed.PositionsAfter() {
				r.positions.Put(positionKey{p.CustomerCode, p.Symbol}, at.Sequence,
					positionRow{Value: Position{p, changed.BrokerOf(p.CustomerCode), at.Time, at.Sequence}})
			}
		}
	}
}

func (r *changes) post(at decide.Stamp, posted ledger.Posted, venue *projections.Key) {
	postings := posted.Postings()
	for i := range postings {
		p := &postings[i]
		after := Balance{Account: p.Account, CustomerCode: p.CustomerCode, Currency: p.Currency, Balance: p.Balance,
			Updated: at.Time, Sequence: at.Sequence}
		if p.CustomerCode != "" {
			after.Broker = posted.BrokerOf(p.CustomerCode)
			r.customers.Put(balanceKey{p.CustomerCode, p.Currency}, at.Sequence, balanceRow{Value: after})
			continue
		}
		r.accounts.Put(balanceKey{string(p.Account), p.Currency}, balanceRow{Value: after})
		r.venue.Add(&venueRow{Key: *venue, Value: venuePosting{*p, at.Time}})
		venue.Ordinal++
	}
}
