package dataset

import (
	"crypto/sha256"
	"io"
	"slices"
	"strconv"

	"github.com/parquet-go/parquet-go"

	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Version is the version of the tables. It rises when a column is added, removed, or means something else. A folder has files of one version,
// and gets those of a new table.
const Version = 2

// groupRows is the highest number of rows of a row group, which is the unit that readers skip, and that a writer has in memory.
const groupRows = 1 << 17

// table is a kind of rows of one journal.
type table struct {
	name, journal string
	schema        record.Hash // of the names, types, and field ids of the columns
	columns       []Column
	create        func(w io.Writer, books *Books) rowWriter // books is of no use to tables without a state
}

// rowWriter writes the rows of one file.
type rowWriter interface {
	// add writes the rows of a record and returns their number.
	add(e *record.Entry) (int64, error)
	// close writes what is left, and the footer with a key and its value. It returns the number of rows that it has written.
	close(key, value string) (int64, error)
}

// tables returns all tables.
func tables() []table {
	return []table{
		tableOf("trading", "orders", orderRows),
		tableOf("trading", "trades", tradeRows),
		tableOf("trading", "postings", postingRows),
		tableOf("trading", "funding", fundingRows),
		tableOf("trading", "funding_rates", fundingRateRows),
		tableOf("trading", "liquidations", liquidationRows),
		tableOf("trading", "positions", positionRows),
		tableOf("trading", "prices", priceRows),
		tableOfBooks(),
		tableOf("onboarding", "triggers", triggerRows),
		tableOf("onboarding", "responses", responseRows),
	}
}

// HasBooks reports whether a journal has the table of books, which needs the books before its first record.
func HasBooks(journal string) bool {
	return slices.ContainsFunc(tablesOf(journal), func(t table) bool { return t.name == booksTable })
}

// withoutBooks removes the table of books. The rows of every other table follow from a record alone.
func withoutBooks(all []table) []table {
	return slices.DeleteFunc(all, func(t table) bool { return t.name == booksTable })
}

// tablesOf returns the tables of a journal.
func tablesOf(journal string) []table {
	return slices.DeleteFunc(tables(), func(t table) bool { return t.journal != journal })
}

// Journals returns the names of the journals that have tables.
func Journals() (names []string) {
	for _, t := range tables() {
		if !slices.Contains(names, t.journal) {
			names = append(names, t.journal)
		}
	}
	return names
}

// tableOf returns a table. rows passes the rows of a record to add.
func tableOf[T any](journal, name string, rows func(m *maker, e *record.Entry, add func(T))) table {
	return tableOfVersion(Version, journal, name, rows)
}

// tableOfVersion is tableOf for a table that has its own version.
func tableOfVersion[T any](version int, journal, name string, rows func(m *maker, e *record.Entry, add func(T))) table {
	schema := parquet.NewSchema(name, parquet.SchemaOf(new(T)))
	return table{name, journal, sha256.Sum256([]byte(schema.String())), columnsOf(schema), func(w io.Writer, _ *Books) rowWriter {
		return &typedWriter[T]{rows: rows, to: newGenericWriter[T](w, name, version)}
	}}
}

// newGenericWriter starts a file with rows of one type.
func newGenericWriter[T any](w io.Writer, name string, version int) *parquet.GenericWriter[T] {
	schema := parquet.NewSchema(name, parquet.SchemaOf(new(T)))
	options := []parquet.WriterOption{schema, parquet.Compression(&parquet.Zstd), parquet.MaxRowsPerRowGroup(groupRows),
		parquet.CreatedBy("perpetua", strconv.Itoa(version), "")}
	for _, c := range columnsOf(schema) {
		if c.Type == decimalType {
			// The library would write bounds of numbers as if they had no sign, and a reader may skip rows by them.
			options = append(options, parquet.SkipPageBounds(c.Name))
		}
	}
	return parquet.NewGenericWriter[T](w, options...)
}

// typedWriter writes rows of one type.
type typedWriter[T any] struct {
	rows   func(m *maker, e *record.Entry, add func(T))
	to     *parquet.GenericWriter[T]
	buffer []T // rows of the current record
}

// add passes the rows to the writer one by one. In a batch, the writer may write the zero value of an optional column and not NULL:
// https://github.com/parquet-go/parquet-go/issues/154.
func (w *typedWriter[T]) add(e *record.Entry) (int64, error) {
	m := maker{sequence: e.Record.Sequence}
	w.buffer = w.buffer[:0]
	w.rows(&m, e, func(row T) { w.buffer = append(w.buffer, row) })
	if m.err != nil {
		return 0, m.err
	}
	for i := range w.buffer {
		if _, err := w.to.Write(w.buffer[i : i+1]); err != nil {
			return 0, err
		}
	}
	return int64(len(w.buffer)), nil
}

func (w *typedWriter[T]) close(key, value string) (int64, error) {
	w.to.SetKeyValueMetadata(key, value)
	return 0, w.to.Close()
}
