package projections

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// DB is a pool or a connection on which queries run.
type DB interface {
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// Key is the position of a row in a list that grows with the log: the sequence of the record that created the row, and
// the index of the row within that record. A key never changes, so cursors made from it stay valid.
type Key struct {
	Sequence int64
	Ordinal  int64
}

// Compare orders keys by sequence, then ordinal.
func (k Key) Compare(o Key) int {
	if k.Sequence != o.Sequence {
		return int(min(max(k.Sequence-o.Sequence, -1), 1))
	}
	return int(min(max(k.Ordinal-o.Ordinal, -1), 1))
}

// String returns "sequence.ordinal", the content of a cursor.
func (k Key) String() string {
	return strconv.FormatInt(k.Sequence, 10) + "." + strconv.FormatInt(k.Ordinal, 10)
}

// ParseKey parses the output of String. It rejects values that no row's key can have.
func ParseKey(s string) (Key, error) {
	a, b, _ := strings.Cut(s, ".")
	sequence, err := strconv.ParseInt(a, 10, 64)
	ordinal, err2 := strconv.ParseInt(b, 10, 64)
	k := Key{sequence, ordinal}
	// Ordinals of rows are PostgreSQL integers. A query with a larger ordinal would fail.
	handedOut := sequence >= 0 && ordinal >= 0 && ordinal <= math.MaxInt32
	if err != nil || err2 != nil || !handedOut || k.String() != s {
		return Key{}, fmt.Errorf("%q is not a key", s)
	}
	return k, nil
}

// Page selects a part of a list. After and Before are exclusive and may both be given. "After" means later in the
// direction of the sort. With Before alone, the page ends immediately before that key. A BeforeTime other than zero
// replaces Before: the page ends before the records of that time.
type Page struct {
	Size       int
	After      *Key
	Before     *Key
	BeforeTime scalar.Time
	Descending bool
}

// backwards reports whether the rows of the page are selected from its end.
func (p *Page) backwards() bool { return p.After == nil && (p.Before != nil || !p.BeforeTime.IsZero()) }

// Row is a row of a paged list with its key.
type Row[T any] struct {
	Key   Key
	Value T
}

// Paged is one page. Its rows are in the direction of the sort.
type Paged[T any] struct {
	Rows        []Row[T]
	HasNext     bool // more rows follow the last one, in the same snapshot
	HasPrevious bool // more rows precede the first one
	AsOf        int64
}

// Values returns the rows without their keys. The result is never nil.
func (p Paged[T]) Values() []T {
	values := make([]T, len(p.Rows))
	for i, r := range p.Rows {
		values[i] = r.Value
	}
	return values
}

// Converted returns the page with each value converted.
func Converted[T, U any](p Paged[T], value func(*T) U) Paged[U] {
	rows := make([]Row[U], len(p.Rows))
	for i := range p.Rows {
		rows[i] = Row[U]{p.Rows[i].Key, value(&p.Rows[i].Value)}
	}
	return Paged[U]{Rows: rows, HasNext: p.HasNext, HasPrevious: p.HasPrevious, AsOf: p.AsOf}
}

// Start returns the key of the first row, or ok false for an empty page.
func (p Paged[T]) Start() (k Key, ok bool) {
	if len(p.Rows) == 0 {
		return Key{}, false
	}
	return p.Rows[0].Key, true
}

// End returns the key of the last row, or ok false for an empty page.
func (p Paged[T]) End() (k Key, ok bool) {
	if len(p.Rows) == 0 {
		return Key{}, false
	}
	return p.Rows[len(p.Rows)-1].Key, true
}

// List is a query over one table. Where must contain at least the condition that limits the list to the rows that the
// caller may see.
type List[T any] struct {
	Table *Table[T]
	Where Where
	Order string // SQL, for unpaged lists
	Limit int    // for unpaged lists; 0 means no limit
	// from replaces the table by a query in parentheses with the same columns. Its parameters are those of Where.
	from string
	// eachBroker makes a paged list over all brokers use an index that begins with the broker. The query selects a page
	// of rows from each broker, and the first rows of these form the page. This is fast because brokers are few.
	eachBroker bool
}

// query is a List without its type parameter. Its methods are compiled once, those of List for each table.
type query struct {
	table, journal string
	keys           []string
	selected       string
	where          Where
	order          string
	limit          int
	from           string
	eachBroker     bool
}

func (l *List[T]) query() query {
	t := l.Table
	return query{t.Name, t.Journal, t.Keys, t.selected(), l.Where, l.Order, l.Limit, l.from, l.eachBroker}
}

// sql returns a query for the list's rows, without an order. A query in place of the table is named like the table.
func (q *query) sql() string {
	return "SELECT " + q.selected + " FROM " + q.from + q.table + q.where.sql()
}

// brokers selects the brokers that have customers, each with one lookup in the index of customers.
const brokers = `(WITH RECURSIVE each_broker (each_code) AS (
		SELECT min(n.broker) FROM customers n
		UNION ALL
		SELECT (SELECT min(n.broker) FROM customers n WHERE n.broker > each_broker.each_code) FROM each_broker WHERE each_broker.each_code IS NOT NULL
	) SELECT each_code FROM each_broker WHERE each_code IS NOT NULL) each_broker`

// nearest returns the clause that selects the first n rows in the order of the keys.
func (q *query) nearest(where Where, direction string, n int) string {
	end := " ORDER BY " + strings.Join(q.keys, direction+", ") + direction + " LIMIT " + strconv.Itoa(n)
	if !q.eachBroker {
		return " FROM " + q.table + where.sql() + end
	}
	where = where.clone()
	where.And("broker = each_broker.each_code")
	return " FROM " + brokers + ", LATERAL (SELECT * FROM " + q.table + where.sql() + end + ") " + q.table + end
}

// collect reads the result of a query over the table.
func (t *Table[T]) collect(rows pgx.Rows, out *[]Row[T]) (err error) {
	*out, err = pgx.CollectRows(rows, t.scan)
	return err
}

// into returns a function that reads the values of a query's result. They are never nil.
func (t *Table[T]) into(out *[]T) func(pgx.Rows) error {
	return func(r pgx.Rows) error {
		var rows []Row[T]
		err := t.collect(r, &rows)
		*out = Paged[T]{Rows: rows}.Values()
		return err
	}
}

// All returns the rows in the given order, at most Limit, and the sequence that they are as of.
func (l List[T]) All(ctx context.Context, db DB) (rows []T, asOf int64, err error) {
	asOf, err = Read(ctx, db, l.Table.Journal, l.Statement(&rows))
	return rows, asOf, err
}

// Statement returns the query of All, for a Read with several statements. It sets *into, never to nil.
func (l List[T]) Statement(into *[]T) Statement { return l.query().statement(l.Table.into(into)) }

func (q query) statement(collect func(pgx.Rows) error) Statement {
	sql := q.sql()
	if q.order != "" {
		sql += " ORDER BY " + q.order
	}
	if q.limit > 0 {
		sql += " LIMIT " + strconv.Itoa(q.limit)
	}
	return Statement{sql, q.where.args, collect}
}

// Numbered skips offset rows and returns up to size of the following ones, and the total number of rows.
func (l List[T]) Numbered(ctx context.Context, db DB, size, offset int) (out []T, total int, asOf int64, err error) {
	asOf, err = Read(ctx, db, l.Table.Journal, l.Numbers(size, offset, &out, &total)...)
	return out, total, asOf, err
}

// Numbers returns the queries of Numbered, for a Read with several statements. They set *into, never to nil.
func (l List[T]) Numbers(size, offset int, into *[]T, total *int) []Statement {
	return l.query().numbers(size, offset, l.Table.into(into), total)
}

func (q query) numbers(size, offset int, collect func(pgx.Rows) error, total *int) []Statement {
	args := append(q.where.clone().args, size, offset)
	sql := fmt.Sprintf("%s ORDER BY %s LIMIT $%d OFFSET $%d", q.sql(), q.order, len(args)-1, len(args))
	return []Statement{{sql, args, collect}, {"SELECT count(*) FROM " + q.from + q.table + q.where.sql(), q.where.args, func(r pgx.Rows) (err error) {
		*total, err = pgx.CollectExactlyOneRow(r, pgx.RowTo[int])
		return err
	}}}
}

// One returns the first row in the given order, and whether a row exists.
func (l List[T]) One(ctx context.Context, db DB) (v T, found bool, asOf int64, err error) {
	l.Limit = 1
	rows, asOf, err := l.All(ctx, db)
	if err != nil || len(rows) == 0 {
		return v, false, asOf, err
	}
	return rows[0], true, asOf, nil
}

// Page returns one page of the list in the order of the keys. The same snapshot shows whether rows precede and follow
// it.
func (l List[T]) Page(ctx context.Context, db DB, p Page) (Paged[T], error) {
	var rows []Row[T]
	behind, ahead, asOf, err := l.query().page(ctx, db, &p, func(r pgx.Rows) error { return l.Table.collect(r, &rows) })
	if err != nil {
		return Paged[T]{}, err
	}
	more := len(rows) > p.Size
	if more {
		rows = rows[:p.Size]
	}
	if p.backwards() {
		slices.Reverse(rows)
		return Paged[T]{Rows: rows, HasNext: ahead, HasPrevious: more, AsOf: asOf}, nil
	}
	return Paged[T]{Rows: rows, HasNext: more || ahead, HasPrevious: behind, AsOf: asOf}, nil
}

// page reads the rows of a page, and one more. It reads a page that is selected backwards from its end. behind is true if rows
// precede After, ahead if rows follow Before.
func (q query) page(ctx context.Context, db DB, p *Page, collect func(pgx.Rows) error) (behind, ahead bool, asOf int64, err error) {
	forward, away := ">", "<="
	if p.Descending {
		forward, away = "<", ">="
	}
	where := q.where.clone()
	var beyond []Statement // queries for rows on the other side of a cursor
	exists := func(operator string, compare standing, into *bool) {
		w := q.where.clone()
		compare(&w, operator)
		// Select the nearest row in the order of the index. With a query for any row, such as EXISTS, the planner may
		// choose a sequential scan.
		order := " ASC"
		if strings.HasPrefix(operator, "<") {
			order = " DESC"
		}
		beyond = append(beyond, Statement{"SELECT count(*) > 0 FROM (SELECT" + q.nearest(w, order, 1) + ") nearest", w.args, func(rows pgx.Rows) (err error) {
			*into, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[bool])
			return err
		}})
	}
	if p.After != nil {
		after := q.toKey(*p.After)
		after(&where, forward)
		exists(away, after, &behind)
	}
	if before := q.end(p); before != nil {
		before(&where, opposite(forward))
		exists(opposite(away), before, &ahead)
	}
	direction := " ASC"
	if p.Descending != p.backwards() {
		direction = " DESC"
	}
	sql := "SELECT " + q.selected + q.nearest(where, direction, p.Size+1)
	asOf, err = Read(ctx, db, q.journal, append([]Statement{{sql, where.args, collect}}, beyond...)...)
	return behind, ahead, asOf, err
}

// standing adds a condition that compares a row with a position by an operator: <, <=, > or >=.
type standing func(w *Where, operator string)

// end returns the comparison with the end of the page, or nil if the page has none.
func (q *query) end(p *Page) standing {
	switch {
	case p.Before != nil:
		return q.toKey(*p.Before)
	case !p.BeforeTime.IsZero():
		return q.toTime(p.BeforeTime)
	}
	return nil
}

// toKey compares the row's key with k.
func (q *query) toKey(k Key) standing {
	return func(w *Where, operator string) {
		if len(q.keys) == 1 {
			w.And(q.keys[0]+" "+operator+" ?", k.Sequence)
			return
		}
		w.And("("+strings.Join(q.keys, ", ")+") "+operator+" (?, ?)", k.Sequence, k.Ordinal)
	}
}

// toTime compares the time of the row's record with t.
func (q *query) toTime(t scalar.Time) standing {
	return func(w *Where, operator string) {
		bound := t
		if operator == ">" || operator == "<=" { // the next microsecond is the first time later than t
			bound++
		}
		sequences := Span{From: bound}
		if strings.HasPrefix(operator, "<") {
			sequences = Span{To: bound}
		}
		sequences.in(w, q.journal, q.keys[0])
	}
}

func opposite(operator string) string {
	return strings.NewReplacer("<", ">", ">", "<").Replace(operator)
}
