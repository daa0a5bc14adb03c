package projections

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Statement is one query of a Read, with a function that collects its rows.
type Statement struct {
	SQL     string
	Args    []any
	Collect func(rows pgx.Rows) error
}

// Read runs the statements and reads the journal's checkpoint, in one snapshot and one round trip. It returns the
// sequence that the rows are as of, or -1 if no record of the journal was applied.
func Read(ctx context.Context, db DB, journal string, statements ...Statement) (asOf int64, err error) {
	return read(ctx, db, journal, "", statements...)
}

// read is Read with a statement that takes a lock, unless it is empty, before the snapshot.
func read(ctx context.Context, db DB, journal, lock string, statements ...Statement) (asOf int64, err error) {
	// In a pipeline, the explicit transaction gives all statements one snapshot. If a statement fails, the connection
	// stays inside the transaction, and the pool closes a connection that is returned in that state.
	b := &pgx.Batch{}
	b.Queue("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
	begin := 1
	if lock != "" {
		b.Queue(lock)
		begin++
	}
	b.Queue("SELECT sequence FROM checkpoints WHERE journal = $1 ORDER BY partition LIMIT 1", journal)
	for _, s := range statements {
		b.Queue(s.SQL, s.Args...)
	}
	b.Queue("COMMIT")
	results := db.SendBatch(ctx, b)
	defer func() {
		if closed := results.Close(); err == nil && closed != nil {
			err = fmt.Errorf("projections: reading %s: %w", journal, closed)
		}
	}()
	for range begin {
		if _, err = results.Exec(); err != nil {
			return -1, fmt.Errorf("projections: reading %s: %w", journal, err)
		}
	}
	asOf = -1
	if err = results.QueryRow().Scan(&asOf); err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return -1, fmt.Errorf("projections: reading the checkpoint of %s: %w", journal, err)
	}
	for _, s := range statements {
		rows, err := results.Query()
		if err == nil {
			err = s.Collect(rows)
		}
		if err != nil {
			return -1, fmt.Errorf("projections: reading %s: %w", journal, err)
		}
	}
	if _, err = results.Exec(); err != nil {
		return -1, fmt.Errorf("projections: reading %s: %w", journal, err)
	}
	return asOf, nil
}

// Where is a conjunction of conditions. The statement contains only the conditions of the request, so that each
// combination gets its own plan.
type Where struct {
	conditions []string
	args       []any
}

// And adds a condition. Each ? is replaced by the parameter for the next argument.
func (w *Where) And(condition string, args ...any) {
	w.conditions = append(w.conditions, w.bind(condition, args...))
}

// bind adds arguments, and returns the text with each ? replaced by the parameter for the next of them.
func (w *Where) bind(condition string, args ...any) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(condition, "?")
		b.WriteString(before)
		if !found {
			break
		}
		w.args = append(w.args, args[0])
		args = args[1:]
		b.WriteString("$" + strconv.Itoa(len(w.args)))
		condition = after
	}
	return b.String()
}

// AndText adds "column = value" unless the value is empty.
func (w *Where) AndText(column, value string) {
	if value != "" {
		w.And(column+" = ?", value)
	}
}

// AndAnyOf adds "column is one of values" unless values is empty.
func AndAnyOf[S ~string](w *Where, column string, values []S) {
	if len(values) == 0 {
		return
	}
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = string(v)
	}
	w.And(column+" = ANY(?)", texts)
}

func (w *Where) sql() string {
	if len(w.conditions) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(w.conditions, " AND ")
}

func (w *Where) clone() Where {
	return Where{append([]string(nil), w.conditions...), append([]any(nil), w.args...)}
}
