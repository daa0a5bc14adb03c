// Package statements reads the statement of a customer's account over a period, from the views for analysts: the balance
// before the period, each movement in it, and the balance at its end.
//
// Periods are half open: a movement at From is in the period, one at To is not. A withdrawal counts when it is completed. The
// statement of a period that is over never changes.
package statements

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections/column"
)

// ErrNoCustomer says that no customer has the code.
var ErrNoCustomer = errors.New("statements: there is no such customer")

// NotOverError says that the rows have not reached the end of the period, so more movements may come.
type NotOverError struct {
	To      scalar.Time // the end of the period
	Reached scalar.Time // the time of the last record that the rows contain
}

// Error implements error.
func (e *NotOverError) Error() string {
	return fmt.Sprintf("statements: the period ends at %v, and the tables have reached %v", e.To, e.Reached)
}

// Period says which statement to read.
type Period struct {
	CustomerCode string
	From, To     scalar.Time
}

// Head is the part of a statement before its lines.
type Head struct {
	Period
	// Before is the sequence of the last record of the trading journal before From, and Last that of the last one before To.
	// -1 means none.
	Before, Last int64
	Balances     []Balance // by currency
}

// Balance is the balance in a currency before and after the lines.
type Balance struct {
	Currency         string
	Opening, Closing fixed.Money
}

// Line is a movement.
type Line struct {
	Time        scalar.Time
	Sequence    int64 // of the record that made the movement
	Ordinal     int64 // orders the lines of a record
	Type        ledger.Type
	Symbol      string // empty for deposits and withdrawals
	Amount      fixed.Money
	Balance     fixed.Money // after the movement
	Currency    string
	ReferenceID string // of deposits and withdrawals
	Code        string
	OrderCode   string // empty without an order
}

// DB is a database that Read can use.
type DB interface {
	BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error)
}

// Read calls head once and then line for each movement, in the order in which they were made. All is as of one snapshot. Read
// checks that each balance is the one before plus the amount, and that the last one is the closing balance.
func Read(ctx context.Context, db DB, p Period, head func(*Head) error, line func(*Line) error) error {
	err := pgx.BeginTxFunc(ctx, db, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		h, err := readHead(ctx, tx, p)
		if err != nil {
			return err
		}
		if err := head(h); err != nil {
			return err
		}
		return readLines(ctx, tx, h, line)
	})
	var notOver *NotOverError
	if err != nil && !errors.Is(err, ErrNoCustomer) && !errors.As(err, &notOver) {
		return fmt.Errorf("statements: reading that of %s: %w", p.CustomerCode, err)
	}
	return err
}

func readHead(ctx context.Context, tx pgx.Tx, p Period) (*Head, error) {
	h := &Head{Period: p, Balances: []Balance{}}
	from, to := column.Timestamp(p.From), column.Timestamp(p.To)
	var known bool
	if err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM customers WHERE customer_code = $1)", p.CustomerCode).Scan(&known); err != nil {
		return nil, err
	}
	if !known {
		return nil, ErrNoCustomer
	}
	var reached scalar.Time
	if err := tx.QueryRow(ctx, `SELECT (SELECT time FROM analytics.bounds),
		analytics.position_at('trading', $1::timestamptz - interval '1 microsecond'),
		analytics.position_at('trading', $2::timestamptz - interval '1 microsecond')`, from, to).Scan(column.IntoTime(&reached), &h.Before, &h.Last); err != nil {
		return nil, err
	}
	if reached < p.To {
		return nil, &NotOverError{p.To, reached}
	}
	const last = `COALESCE((SELECT l.balance FROM analytics.statement_lines l WHERE l.customer_code = b.customer_code AND l.currency = b.currency
		AND l.sequence <= %s ORDER BY l.sequence DESC, l.ordinal DESC LIMIT 1), 0)::text`
	rows, err := tx.Query(ctx, "SELECT b.currency, "+fmt.Sprintf(last, "$2")+", "+fmt.Sprintf(last, "$3")+
		" FROM balances b WHERE b.customer_code = $1 ORDER BY 1", p.CustomerCode, h.Before, h.Last)
	if err != nil {
		return nil, err
	}
	var b Balance
	_, err = pgx.ForEachRow(rows, []any{&b.Currency, column.IntoMoney(&b.Opening), column.IntoMoney(&b.Closing)}, func() error {
		h.Balances = append(h.Balances, b)
		return nil
	})
	return h, err
}

// readLines calls line for each movement of the period.
func readLines(ctx context.Context, tx pgx.Tx, h *Head, line func(*Line) error) error {
	balances := make(map[string]fixed.Money)
	for _, b := range h.Balances {
		balances[b.Currency] = b.Opening
	}
	rows, err := tx.Query(ctx, `SELECT time, sequence, ordinal::bigint, type, COALESCE(symbol, ''), amount::text, balance::text, currency,
		COALESCE(reference_id, ''), code::text, COALESCE(order_code::text, '')
		FROM analytics.statement_lines WHERE customer_code = $1 AND sequence > $2 AND sequence <= $3 ORDER BY sequence, ordinal`,
		h.CustomerCode, h.Before, h.Last)
	if err != nil {
		return err
	}
	var l Line
	into := []any{column.IntoTime(&l.Time), &l.Sequence, &l.Ordinal, column.IntoText(&l.Type), &l.Symbol, column.IntoMoney(&l.Amount),
		column.IntoMoney(&l.Balance), &l.Currency, &l.ReferenceID, &l.Code, &l.OrderCode}
	if _, err := pgx.ForEachRow(rows, into, func() error {
		if sum, ok := balances[l.Currency].Plus(l.Amount); !ok || sum != l.Balance {
			return fmt.Errorf("the balance after the record %d is %s, not %s plus %s", l.Sequence, l.Balance, balances[l.Currency], l.Amount)
		}
		balances[l.Currency] = l.Balance
		return line(&l)
	}); err != nil {
		return err
	}
	for _, b := range h.Balances {
		if balances[b.Currency] != b.Closing {
			return fmt.Errorf("the lines end with the balance %s %s, not %s", balances[b.Currency], b.Currency, b.Closing)
		}
	}
	return nil
}
