package projections

import (
	"strings"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections/column"
)

// Scope limits a list to the rows that the caller may see. An empty field limits nothing: an operator's scope has no
// broker.
type Scope struct {
	Broker       string
	CustomerCode string
}

// In returns the list of the rows in a scope. The table must have the columns broker and customer_code.
func (t *Table[T]) In(s Scope) List[T] {
	l := List[T]{Table: t, eachBroker: s == Scope{}}
	l.Where.AndText("broker", s.Broker)
	l.Where.AndText("customer_code", s.CustomerCode)
	return l
}

// During limits the list to rows of records within the span.
func (l *List[T]) During(s Span) { s.in(&l.Where, l.Table.Journal, l.Table.Keys[0]) }

// OfOrder limits the list to rows of an order, unless the code is zero. They lie between the record that created the
// order and the one that last changed it. The table must have the column order_code.
func (l *List[T]) OfOrder(code scalar.ID) {
	if code.IsZero() {
		return
	}
	sequence, of := l.Table.Keys[0], column.UUID(code)
	l.Where.And("order_code = ?", of)
	l.Where.And(sequence+" >= (SELECT o.created_sequence FROM orders o WHERE o.code = ?)", of)
	l.Where.And(sequence+" <= (SELECT o.sequence FROM orders o WHERE o.code = ?)", of)
}

// OldestFirst is the order of the keys, for unpaged lists.
func (t *Table[T]) OldestFirst() string { return strings.Join(t.Keys, ", ") }

// NewestFirst is the opposite order.
func (t *Table[T]) NewestFirst() string { return strings.Join(t.Keys, " DESC, ") + " DESC" }
