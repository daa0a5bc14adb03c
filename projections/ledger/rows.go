package ledger

import (
	_ "embed"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections"
	c "github.com/perpetua-exchange/perpetua/projections/column"
)

//go:embed copy_transactions.sql
var copyTransactions string

//go:embed copy_venue_postings.sql
var copyVenuePostings string

//go:embed update_transactions.sql
var updateTransactions string

//go:embed upsert_balances.sql
var upsertBalances string

//go:embed upsert_venue_balances.sql
var upsertVenueBalances string

//go:embed upsert_positions.sql
var upsertPositions string

// queue adds the transfers, and queues one statement for each table that has something to change.
func (r *rows) queue(batch *projections.Batch) {
	var changed []transactionRow
	for _, t := range r.transfers.Rows() {
		if t.made {
			t.encode(r.transactions)
		} else {
			changed = append(changed, t)
		}
	}
	if len(changed) > 0 {
		batch.Change(len(changed), updateTransactions, c.Args(changed, changedColumns()...)...)
	}
	if b := r.customers.Rows(); len(b) > 0 {
		batch.Queue(upsertBalances, c.Args(b, append(balanceColumns(), c.NullText(func(r *balanceRow) string { return r.broker }))...)...)
	}
	if b := r.accounts.Rows(); len(b) > 0 {
		batch.Queue(upsertVenueBalances, c.Args(b, balanceColumns()...)...)
	}
	if p := r.positions.Rows(); len(p) > 0 {
		batch.Queue(upsertPositions, c.Args(p, positionColumns()...)...)
	}
}

// balanceAfter is the text of the account's balance after a transaction, "" while it is not completed.
func balanceAfter(r *transactionRow) string {
	if r.Value.Status != ledger.Completed {
		return ""
	}
	return r.Value.Balance.String()
}

// changedColumns are those of update_transactions.sql: what changes of a withdrawal.
func changedColumns() []c.Of[transactionRow] {
	return []c.Of[transactionRow]{
		c.ID(func(r *transactionRow) scalar.ID { return r.Value.Code }),
		c.Money(func(r *transactionRow) fixed.Money { return r.Value.Amount }),
		c.Text(func(r *transactionRow) string { return string(r.Value.Status) }),
		c.NullText(balanceAfter),
		c.Time(func(r *transactionRow) scalar.Time { return r.Value.Updated }),
		c.Int(func(r *transactionRow) int64 { return r.Value.Sequence }),
	}
}

// encode adds the columns of copy_transactions.sql.
func (r *transactionRow) encode(to *c.Rows) {
	t := &r.Value
	to.Begin(16)
	to.Int(r.Key.Sequence)
	to.Small(r.Key.Ordinal)
	to.ID(t.Code)
	to.Text(t.CustomerCode)
	to.Text(t.Broker)
	to.Text(string(t.Type))
	to.Text(t.Currency)
	to.Money(t.Amount)
	to.Text(string(t.Status))
	if t.Status == ledger.Completed {
		to.Money(t.Balance)
	} else {
		to.Null()
	}
	to.NullText(t.Symbol)
	to.ID(t.OrderCode)
	to.NullText(t.ReferenceID)
	to.Time(t.Created)
	to.Time(t.Updated)
	to.Int(t.Sequence)
}

// encodePosting adds the columns of copy_venue_postings.sql.
func encodePosting(to *c.Rows, key projections.Key, p *ledger.Posting, at scalar.Time) {
	to.Begin(10)
	to.Int(key.Sequence)
	to.Small(key.Ordinal)
	to.Text(string(p.Account))
	to.Text(string(p.Type))
	to.Text(p.Currency)
	to.Money(p.Amount)
	to.Money(p.Balance)
	to.NullText(p.Symbol)
	to.ID(p.OrderCode)
	to.Time(at)
}

func balanceColumns() []c.Of[balanceRow] {
	return []c.Of[balanceRow]{
		c.Text(func(r *balanceRow) string { return r.owner }),
		c.Text(func(r *balanceRow) string { return r.currency }),
		c.Money(func(r *balanceRow) fixed.Money { return r.balance }),
		c.Time(func(r *balanceRow) scalar.Time { return r.time }),
		c.Int(func(r *balanceRow) int64 { return r.sequence }),
	}
}

func positionColumns() []c.Of[positionRow] {
	return []c.Of[positionRow]{
		c.Text(func(r *positionRow) string { return r.CustomerCode }),
		c.Text(func(r *positionRow) string { return r.Symbol }),
		c.NullText(func(r *positionRow) string { return r.broker }),
		c.Decimal(func(r *positionRow) fixed.Decimal { return r.Amount }),
		c.Money(func(r *positionRow) fixed.Money { return r.Cost }),
		c.NullDecimal(func(r *positionRow) fixed.Decimal { return r.EntryPrice }),
		c.Time(func(r *positionRow) scalar.Time { return r.time }),
		c.Int(func(r *positionRow) int64 { return r.sequence }),
	}
}
