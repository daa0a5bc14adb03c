package dataset

import (
	"crypto/sha256"
	"io"

	"github.com/parquet-go/parquet-go"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// booksTable is the name of the table of books. Its rows depend on the records before them; those of other tables do not.
const booksTable = "books"

// PriceLevel is a price level of a book at the end of a second, as the public interface shows it. Sequence is the last record of the
// second in the range.
type PriceLevel struct {
	Origin
	Second scalar.Time `parquet:"second,timestamp(microsecond),delta,id(4)"`
	Symbol string      `parquet:"symbol,dict,id(5)"`
	Side   string      `parquet:"side,dict,id(6)"`
	Level  int64       `parquet:"level,id(7)"`
	Price  number      `parquet:"price,optional,decimal(18:38),id(8)"`
	Amount number      `parquet:"amount,decimal(18:38),id(9)"`
}

// bookRow is a price level and the number of orders there.
type bookRow struct {
	PriceLevel
	Orders int64 `parquet:"orders,id(10)"`
}

// tableOfBooks returns the table of books. Its writers add the records to the books.
func tableOfBooks() table {
	schema := parquet.NewSchema(booksTable, parquet.SchemaOf(new(bookRow)))
	return table{booksTable, "trading", sha256.Sum256([]byte(schema.String())), columnsOf(schema), func(w io.Writer, books *Books) rowWriter {
		books.settle()
		return &bookWriter[bookRow]{books: books, to: newGenericWriter[bookRow](w, booksTable, Version), form: func(row bookRow) bookRow { return row }}
	}}
}

// bookWriter writes the rows of a range, in the form of T. A second ends before the first record of a later one, and with the range: the
// rows of a file follow from the books before the range and its records alone.
type bookWriter[T any] struct {
	books *Books
	to    *parquet.GenericWriter[T]
	form  func(bookRow) T
	last  *Origin // the last record; nil before the first
}

func (w *bookWriter[T]) add(e *record.Entry) (rows int64, err error) {
	at := originOf(e, 0)
	if w.last != nil && secondOf(w.last.Time) != secondOf(at.Time) {
		if rows, err = w.endSecond(); err != nil {
			return rows, err
		}
	}
	w.last = &at
	return rows, w.books.Add(e)
}

func (w *bookWriter[T]) close(key, value string) (rows int64, err error) {
	if w.last != nil {
		if rows, err = w.endSecond(); err != nil {
			return rows, err
		}
	}
	w.to.SetKeyValueMetadata(key, value)
	return rows, w.to.Close()
}

// endSecond writes the books that have changed in the second of the last record, and returns the number of rows.
func (w *bookWriter[T]) endSecond() (rows int64, err error) {
	row := bookRow{PriceLevel: PriceLevel{Origin: *w.last, Second: secondOf(w.last.Time)}}
	write := func(side string, levels []level) {
		if len(levels) == 0 { // so that a reader sees that nothing rests there any more
			levels = []level{{}}
		}
		for i, l := range levels {
			row.Side, row.Level, row.Price, row.Amount, row.Orders = side, int64(i)+1, l.price.Bytes(), l.amount.Bytes(), l.orders
			if err == nil {
				_, err = w.to.Write([]T{w.form(row)})
			}
			row.Ordinal++
		}
	}
	w.books.changed(func(symbol string, now best) {
		row.Symbol = symbol
		write("bid", now.bids)
		write("ask", now.asks)
	})
	return row.Ordinal, err
}

// secondOf returns the beginning of the second of a time.
func secondOf(at scalar.Time) scalar.Time { return at - at%scalar.Second }
