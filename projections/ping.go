package projections

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Ping opens one connection to the database at url. Its error is one line, with the address and without the password.
func Ping(ctx context.Context, url string) error {
	c, err := pgx.ParseConfig(url)
	if err != nil {
		return fmt.Errorf("the database URL: %w", err)
	}
	connection, err := pgx.ConnectConfig(ctx, c)
	if err != nil {
		return &unreachableError{fmt.Sprintf("%s:%d", c.Host, c.Port), err}
	}
	return connection.Close(ctx)
}

// PostgresTime returns the time of Postgres's clock.
func PostgresTime(ctx context.Context, db Querier) (t time.Time, err error) {
	if err = db.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&t); err != nil {
		return t, fmt.Errorf("asking Postgres for the time: %w", err)
	}
	return t, nil
}

// unreachableError means that the connection to Postgres failed.
type unreachableError struct {
	address string
	cause   error
}

// Error returns one line with the last cause. pgx writes a line for each attempt.
func (e *unreachableError) Error() string {
	lines := strings.Split(strings.TrimSpace(e.cause.Error()), "\n")
	return "Postgres at " + e.address + " cannot be used: " + strings.TrimSpace(lines[len(lines)-1])
}

func (e *unreachableError) Unwrap() error { return e.cause }
