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

// DB is what queries need of a pool or a connection.
type DB interface {
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// Key is the place of a row in a list that grows with the log: the sequence of the record that made the row, and its
// place among the rows of that record. It never changes, so a cursor made of it stays good for ever.
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

// String returns "sequence.ordinal", the form that a cursor wraps.
func (k Key) String() string {
	return strconv.FormatInt(k.Sequence, 10) + "." + strconv.FormatInt(k.Ordinal, 10)
}

// ParseKey reads what String returns for the key of a row that may be.
func ParseKey(s string) (Key, error) {
	a, b, _ := strings.Cut(s, ".")
	sequence, err := strconv.ParseInt(a, 10, 64)
	ordinal, err2 := strconv.ParseInt(b, 10, 64)
	k := Key{sequence, ordinal}
	// Of rows, ordinals are PostgreSQL integers: a query for another one would fail.
	handedOut := sequence >= 0 && ordinal >= 0 && ordinal <= math.MaxInt32
	if err != nil || err2 != nil || !handedOut || k.String() != s {
		return Key{}, fmt.Errorf("%q is not a key", s)
	}
	return k, nil
}

// Page says which part of a list is wanted. After and Before are exclusive and may both be given; "after" means
// further on in the direction of the sort. With Before alone the page is the one that ends right before it. BeforeTime,
// unless it is zero, stands in place of Before: the page ends before the records of that time.
type Page struct {
	Size       int
	After      *Key
	Before     *Key
	BeforeTime scalar.Time
	Descending bool
}

// backwards reports whether the page is read from its end.
func (p *Page) backwards() bool { return p.After == nil && (p.Before != nil || !p.BeforeTime.IsZero()) }

// Row is a row of a paged list with its key.
type Row[T any] struct {
	Key   Key
	Value T
}

// Paged is one page, in the direction of the sort.
type Paged[T any] struct {
	Rows        []Row[T]
	HasNext     bool // there are rows after the last one, as of the same snapshot
	HasPrevious bool // there are rows before the first one
	AsOf        int64
}

// Values returns the rows without their keys, never nil.
func (p Paged[T]) Values() []T {
	values := make([]T, len(p.Rows))
	for i, r := range p.Rows {
		values[i] = r.Value
	}
	return values
}

// Converted returns the page with each row's value made into another.
func Converted[T, U any](p Paged[T], value func(*T) U) Paged[U] {
	rows := make([]Row[U], len(p.Rows))
	for i := range p.Rows {
		rows[i] = Row[U]{p.Rows[i].Key, value(&p.Rows[i].Value)}
	}
	return Paged[U]{Rows: rows, HasNext: p.HasNext, HasPrevious: p.HasPrevious, AsOf: p.AsOf}
}

// Start and End return the keys of the first and last row, or ok false for an empty page.
func (p Paged[T]) Start() (k Key, ok bool) {
	if len(p.Rows) == 0 {
		return Key{}, false
	}
	return p.Rows[0].Key, true
}

// End returns the key of the last row.
func (p Paged[T]) End() (k Key, ok bool) {
	if len(p.Rows) == 0 {
		return Key{}, false
	}
	return p.Rows[len(p.Rows)-1].Key, true
}

// List is a query over one table: which of its rows, and in which order. Where must hold at least the condition that
// confines the list to what the caller may see.
type List[T any] struct {
	Table *Table[T]
	Where Where
	Order string // for a bounded list
	Limit int    // for a bounded list; 0 means none
	// EachBroker has a paged list of everybody's rows read from an index that begins with the broker: so many rows of each
	// broker, of which the page are the first. Brokers are few.
	EachBroker bool
}

// sql selects the list's rows, without an order.
func (l *List[T]) sql(where *Where) string {
	return "SELECT " + l.Table.selected() + " FROM " + l.Table.Name + where.sql()
}

// brokers are the brokers that have customers, each found by one look into the index of customers.
const brokers = `(WITH RECURSIVE each_broker (each_code) AS (
		SELECT min(n.broker) FROM customers n
		UNION ALL
		SELECT (SELECT min(n.broker) FROM customers n WHERE n.broker > each_broker.each_code) FROM each_broker WHERE each_broker.each_code IS NOT NULL
	) SELECT each_code FROM each_broker WHERE each_code IS NOT NULL) each_broker`

// nearest is the clause that names the first rows in the order of the keys.
func (l *List[T]) nearest(where Where, direction string, n int) string {
	end := " ORDER BY " + strings.Join(l.Table.Keys, direction+", ") + direction + " LIMIT " + strconv.Itoa(n)
	if !l.EachBroker {
		return " FROM " + l.Table.Name + where.sql() + end
	}
	where = where.clone()
	where.And("broker = each_broker.each_code")
	return " FROM " + brokers + ", LATERAL (SELECT * FROM " + l.Table.Name + where.sql() + end + ") " + l.Table.Name + end
}

// collect reads what a query over the table selected.
func (l *List[T]) collect(rows pgx.Rows, out *[]Row[T]) (err error) {
	*out, err = pgx.CollectRows(rows, l.Table.scan)
	return err
}

// All returns every row, at most Limit, in the given order, and the sequence that the rows are as of.
func (l List[T]) All(ctx context.Context, db DB) (rows []T, asOf int64, err error) {
	asOf, err = Read(ctx, db, l.Table.Journal, l.Statement(&rows))
	return rows, asOf, err
}

// Statement is the query of All, for a Read of several. It sets the rows, never to nil.
func (l List[T]) Statement(into *[]T) Statement {
	sql := l.sql(&l.Where)
	if l.Order != "" {
		sql += " ORDER BY " + l.Order
	}
	if l.Limit > 0 {
		sql += " LIMIT " + strconv.Itoa(l.Limit)
	}
	return Statement{sql, l.Where.args, func(r pgx.Rows) error {
		var rows []Row[T]
		err := l.collect(r, &rows)
		*into = Paged[T]{Rows: rows}.Values()
		return err
	}}
}

// Numbered returns the rows of one numbered page and how many rows the list has in all.
func (l List[T]) Numbered(ctx context.Context, db DB, size, offset int) (out []T, total int, asOf int64, err error) {
	args := append(l.Where.clone().args, size, offset)
	sql := fmt.Sprintf("%s ORDER BY %s LIMIT $%d OFFSET $%d", l.sql(&l.Where), l.Order, len(args)-1, len(args))
	var rows []Row[T]
	asOf, err = Read(ctx, db, l.Table.Journal, Statement{sql, args, func(r pgx.Rows) error { return l.collect(r, &rows) }},
		Statement{"SELECT count(*) FROM " + l.Table.Name + l.Where.sql(), l.Where.args, func(r pgx.Rows) (err error) {
			total, err = pgx.CollectExactlyOneRow(r, pgx.RowTo[int])
			return err
		}})
	return Paged[T]{Rows: rows}.Values(), total, asOf, err
}

// One returns the first row in the given order and whether there is one.
func (l List[T]) One(ctx context.Context, db DB) (v T, found bool, asOf int64, err error) {
	l.Limit = 1
	rows, asOf, err := l.All(ctx, db)
	if err != nil || len(rows) == 0 {
		return v, false, asOf, err
	}
	return rows[0], true, asOf, nil
}

// Page returns one page of the list in the order of its keys. Whether there are rows before and after it is read in
// the same snapshot, never guessed.
func (l List[T]) Page(ctx context.Context, db DB, p Page) (Paged[T], error) {
	backwards := p.backwards()
	forward, away := ">", "<="
	if p.Descending {
		forward, away = "<", ">="
	}
	where := l.Where.clone()
	var beyond []Statement // what tells whether there are rows on the far side of a cursor
	var behind, ahead bool
	exists := func(operator string, compare standing, into *bool) {
		w := l.Where.clone()
		compare(&w, operator)
		// It is the nearest that is looked for, in the index's order: where any would do, as in EXISTS, the planner may
		// choose to read the table until one comes.
		order := " ASC"
		if strings.HasPrefix(operator, "<") {
			order = " DESC"
		}
		beyond = append(beyond, Statement{"SELECT count(*) > 0 FROM (SELECT" + l.nearest(w, order, 1) + ") nearest", w.args, func(rows pgx.Rows) (err error) {
			*into, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[bool])
			return err
		}})
	}
	if p.After != nil {
		after := l.toKey(*p.After)
		after(&where, forward)
		exists(away, after, &behind)
	}
	if before := l.end(&p); before != nil {
		before(&where, opposite(forward))
		exists(opposite(away), before, &ahead)
	}
	direction := " ASC"
	if p.Descending != backwards {
		direction = " DESC"
	}
	sql := "SELECT " + l.Table.selected() + l.nearest(where, direction, p.Size+1)
	var rows []Row[T]
	read := Statement{sql, where.args, func(r pgx.Rows) error { return l.collect(r, &rows) }}
	asOf, err := Read(ctx, db, l.Table.Journal, append([]Statement{read}, beyond...)...)
	if err != nil {
		return Paged[T]{}, err
	}
	more := len(rows) > p.Size
	if more {
		rows = rows[:p.Size]
	}
	if backwards {
		slices.Reverse(rows)
		return Paged[T]{Rows: rows, HasNext: ahead, HasPrevious: more, AsOf: asOf}, nil
	}
	return Paged[T]{Rows: rows, HasNext: more || ahead, HasPrevious: behind, AsOf: asOf}, nil
}

// standing adds how a row stands to a place: <, <=, > or >=.
type standing func(w *Where, operator string)

// end returns how a row stands to what the page ends before, nil where it goes on as far as there are rows.
func (l List[T]) end(p *Page) standing {
	switch {
	case p.Before != nil:
		return l.toKey(*p.Before)
	case !p.BeforeTime.IsZero():
		return l.toTime(p.BeforeTime)
	}
	return nil
}

// toKey compares the row's key.
func (l List[T]) toKey(k Key) standing {
	return func(w *Where, operator string) {
		if len(l.Table.Keys) == 1 {
			w.And(l.Table.Keys[0]+" "+operator+" ?", k.Sequence)
			return
		}
		w.And("("+strings.Join(l.Table.Keys, ", ")+") "+operator+" (?, ?)", k.Sequence, k.Ordinal)
	}
}

// toTime compares the time of the row's record.
func (l List[T]) toTime(t scalar.Time) standing {
	return func(w *Where, operator string) {
		bound := t
		if operator == ">" || operator == "<=" { // later than t is from the next microsecond on
			bound++
		}
		sequences := Span{From: bound}
		if strings.HasPrefix(operator, "<") {
			sequences = Span{To: bound}
		}
		sequences.In(w, l.Table.Journal, l.Table.Keys[0])
	}
}

func opposite(operator string) string {
	return strings.NewReplacer("<", ">", ">", "<").Replace(operator)
}
