package readmodels

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/perpetua-exchange/perpetua/projections"
)

//go:embed invariants.sql
var invariants string

// Broken checks the invariants among the rows, which do not depend on the log: no record is missing, every record's
// postings sum to zero, balances are the sums of transactions and orders the sums of trades, positions net to zero and
// clearing mirrors their costs; lists have the counted lengths, attempts have receipts, deliveries have notices, and
// erased owners have no ciphertext. It returns the violations. It reads every row.
func Broken(ctx context.Context, db projections.Querier) ([]string, error) {
	rows, err := db.Query(ctx, invariants)
	if err != nil {
		return nil, fmt.Errorf("checking the read models: %w", err)
	}
	broken, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (string, error) {
		var what, found string
		err := row.Scan(&what, &found)
		return what + ": " + found, err
	})
	if err != nil {
		return nil, fmt.Errorf("checking the read models: %w", err)
	}
	return broken, nil
}
