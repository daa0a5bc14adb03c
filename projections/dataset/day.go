package dataset

import (
	"crypto/sha256"
	"fmt"
	"io"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/parquet-go/parquet-go"

	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// PublicVersion is the version of the tables of a Day. It rises when a column is added, removed, or means something else.
const PublicVersion = 1

// publicTradeRow is a trade as everybody may see it. Ordinal is the index among the trades of the record, as in the public interface.
type publicTradeRow struct {
	Origin
	Code   scalar.ID         `parquet:"code,uuid,id(4)"`
	Symbol string            `parquet:"symbol,dict,id(5)"`
	Action order.Action      `parquet:"action,dict,id(6)"` // the taker's
	Price  number            `parquet:"price,decimal(18:38),id(7)"`
	Amount number            `parquet:"amount,decimal(18:38),id(8)"`
	Type   trading.TradeType `parquet:"type,dict,id(9)"`
}

func publicTradeRows(m *maker, e *record.Entry, add func(publicTradeRow)) {
	ordinal := 0
	for _, event := range e.Record.Events {
		executed, ok := event.(*trading.TradeExecuted)
		if !ok {
			continue
		}
		t := executed.Public(e.Stamp(), ordinal)
		add(publicTradeRow{originOf(e, int64(ordinal)), t.Code, t.Symbol, t.Action, m.decimal(t.Price), m.decimal(t.Amount), t.Type})
		ordinal++
	}
}

// publicTables returns the tables of a Day. Their rows have members of events with the disclosure class public, and the levels of the books
// as the public interface shows them.
func publicTables() []table {
	schema := parquet.NewSchema(booksTable, parquet.SchemaOf(new(PriceLevel)))
	return []table{
		tableOfVersion(PublicVersion, "trading", "trades", publicTradeRows),
		tableOfVersion(PublicVersion, "trading", "funding_rates", fundingRateRows),
		tableOfVersion(PublicVersion, "trading", "prices", priceRows),
		{booksTable, "trading", sha256.Sum256([]byte(schema.String())), columnsOf(schema), func(w io.Writer, books *Books) rowWriter {
			books.unsettle() // a reader of one day needs the books that rest from the day before
			return &bookWriter[PriceLevel]{books: books, to: newGenericWriter[PriceLevel](w, booksTable, PublicVersion), form: func(row bookRow) PriceLevel { return row.PriceLevel }}
		}},
	}
}

// PublicTables returns the names of the tables of a Day.
func PublicTables() (names []string) {
	for _, t := range publicTables() {
		names = append(names, t.name)
	}
	return names
}

// DateOf returns the UTC day of a time, such as 2026-11-26.
func DateOf(at scalar.Time) string { return at.Std().Format(time.DateOnly) }

// dayHeader is among the metadata of a file. It has no hash of a record: a reader who knows most of a record could test guesses about the
// rest with it.
type dayHeader struct {
	Version int    `json:"version"`
	Table   string `json:"table"`
	Date    string `json:"date"`
	First   int64  `json:"first_sequence"`
	Last    int64  `json:"last_sequence"`
}

// Day makes the files of public market data of one UTC day of the log's time: one file for each of PublicTables, also if it has no rows.
// The bytes follow from the books before the day and from its records alone. The caller passes every record of the day to Add, and then
// calls Close.
type Day struct {
	date        string
	books       *Books
	tables      []table
	writers     []rowWriter
	rows        map[string]int64
	first, next int64
}

// NewDay starts the files of the day of the record e. Books are those before e, and Add adds the records to them. create returns the
// writer of a table's file.
func NewDay(e *record.Entry, books *Books, create func(table string) (io.Writer, error)) (*Day, error) {
	first := e.Record.Sequence
	if books.Next() != first {
		return nil, fmt.Errorf("dataset: the books before record %d are not those before the day of record %d", books.Next(), first)
	}
	d := &Day{date: DateOf(e.Record.Time), books: books, tables: publicTables(), rows: make(map[string]int64), first: first, next: first}
	for _, t := range d.tables {
		to, err := create(t.name)
		if err != nil {
			return nil, err
		}
		d.writers = append(d.writers, t.create(to, books))
	}
	return d, nil
}

// Add writes the rows of the next record. After an error, the day and the books are of no use.
func (d *Day) Add(e *record.Entry) error {
	if date := DateOf(e.Record.Time); e.Record.Sequence != d.next || date != d.date {
		return fmt.Errorf("dataset: record %d of %s was added to the day %s, after record %d", e.Record.Sequence, date, d.date, d.next-1)
	}
	for i, w := range d.writers {
		n, err := w.add(e)
		if err != nil {
			return fmt.Errorf("dataset: table %s of %s: %w", d.tables[i].name, d.date, err)
		}
		d.rows[d.tables[i].name] += n
	}
	d.next++
	return nil
}

// Close writes what is left of the files.
func (d *Day) Close() error {
	for i, w := range d.writers {
		text, err := json.Marshal(&dayHeader{PublicVersion, d.tables[i].name, d.date, d.first, d.next - 1})
		if err != nil {
			return err
		}
		n, err := w.close(headerKey, string(text))
		if err != nil {
			return fmt.Errorf("dataset: table %s of %s: %w", d.tables[i].name, d.date, err)
		}
		d.rows[d.tables[i].name] += n
	}
	return nil
}

// Date returns the day, such as 2026-11-26.
func (d *Day) Date() string { return d.date }

// Rows returns the number of rows of a table. It is complete after Close.
func (d *Day) Rows(table string) int64 { return d.rows[table] }

// Span returns the sequences of the first record and after the last one.
func (d *Day) Span() (first, next int64) { return d.first, d.next }
