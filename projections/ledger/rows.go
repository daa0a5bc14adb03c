package ledger

import (
	_ "embed"

	"github.com/jackc/pgx/v5"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	c "github.com/perpetua-exchange/perpetua/projections/column"
)

//go:embed insert_transactions.sql
var insertTransactions string

//go:embed insert_venue_postings.sql
var insertVenuePostings string

//go:embed upsert_balances.sql
var upsertBalances string

//go:embed upsert_venue_balances.sql
var upsertVenueBalances string

//go:embed upsert_positions.sql
var upsertPositions string

// queue queues one statement for each table that has something to change.
func (r *rows) queue(batch *pgx.Batch) {
	// Transfers and the rest go in together: a row can only meet one of its own kind.
	if all := append(r.transfers.Rows(), r.completed...); len(all) > 0 {
		batch.Queue(insertTransactions, c.Args(all, transactionColumns()...)...)
	}
	if len(r.venue) > 0 {
		batch.Queue(insertVenuePostings, c.Args(r.venue, postingColumns()...)...)
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

func transactionColumns() []c.Of[transactionRow] {
	return []c.Of[transactionRow]{
		c.Int(func(r *transactionRow) int64 { return r.Key.Sequence }),
		c.Small(func(r *transactionRow) int64 { return r.Key.Ordinal }),
		c.ID(func(r *transactionRow) decide.ID { return r.Value.Code }),
		c.Text(func(r *transactionRow) string { return r.Value.CustomerCode }),
		c.NullText(func(r *transactionRow) string { return r.Value.Broker }),
		c.Text(func(r *transactionRow) string { return string(r.Value.Type) }),
		c.Text(func(r *transactionRow) string { return r.Value.Currency }),
		c.Money(func(r *transactionRow) fixed.Money { return r.Value.Amount }),
		c.Text(func(r *transactionRow) string { return string(r.Value.Status) }),
		c.NullText(func(r *transactionRow) string {
			if r.Value.Status != ledger.Completed {
				return ""
			}
			return r.Value.Balance.String()
		}),
		c.NullText(func(r *transactionRow) string { return r.Value.Symbol }),
		c.ID(func(r *transactionRow) decide.ID { return r.Value.OrderCode }),
		c.NullText(func(r *transactionRow) string { return r.Value.ReferenceID }),
		c.Time(func(r *transactionRow) decide.Time { return r.Value.Created }),
		c.Time(func(r *transactionRow) decide.Time { return r.Value.Updated }),
		c.Int(func(r *transactionRow) int64 { return r.Value.Sequence }),
	}
}

func postingColumns() []c.Of[postingRow] {
	return []c.Of[postingRow]{
		c.Int(func(r *postingRow) int64 { return r.Key.Sequence }),
		c.Small(func(r *postingRow) int64 { return r.Key.Ordinal }),
		c.Text(func(r *postingRow) string { return string(r.Value.Account) }),
		c.Text(func(r *postingRow) string { return string(r.Value.Type) }),
		c.Text(func(r *postingRow) string { return r.Value.Currency }),
		c.Money(func(r *postingRow) fixed.Money { return r.Value.Amount }),
		c.Money(func(r *postingRow) fixed.Money { return r.Value.Balance }),
		c.NullText(func(r *postingRow) string { return r.Value.Symbol }),
		c.ID(func(r *postingRow) decide.ID { return r.Value.OrderCode }),
		c.Time(func(r *postingRow) decide.Time { return r.time }),
	}
}

func balanceColumns() []c.Of[balanceRow] {
	return []c.Of[balanceRow]{
		c.Text(func(r *balanceRow) string { return r.owner }),
		c.Text(func(r *balanceRow) string { return r.currency }),
		c.Money(func(r *balanceRow) fixed.Money { return r.balance }),
		c.Time(func(r *balanceRow) decide.Time { return r.time }),
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
		c.Time(func(r *positionRow) decide.Time { return r.time }),
		c.Int(func(r *positionRow) int64 { return r.sequence }),
	}
}
