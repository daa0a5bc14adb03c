package dataset

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/perpetua-exchange/perpetua/streams/record"
)

// File is a whole Parquet file of one table, with the rows of a full range.
type File struct {
	Table   string
	Name    string // of all files with this range, without suffix
	Rows    int64
	Footer  int64 // bytes of the metadata at the end of the file
	Columns []Stats
	Content []byte // the bytes that Writer writes for this range
}

// Range makes the files of one range in memory. The caller passes every record of the range to Add, and then calls Files.
type Range struct {
	tables []table
	size   int64
	first  int64
	next   int64
	books  *Books
	parts  []part
	to     []*bytes.Buffer
	rows   []int64 // by part
}

// NewRange starts the files of a journal for a range of size records, the first of which has the sequence first. Books are those before
// that record, and Add adds the records to them; without books, the range has no table of books.
func NewRange(journal string, first, size int64, books *Books) (*Range, error) {
	r := &Range{tables: tablesOf(journal), size: size, first: first, next: first, books: books}
	if books == nil {
		r.tables = withoutBooks(r.tables)
	} else if books.Next() != first {
		return nil, fmt.Errorf("dataset: the books before record %d are not those before the range of record %d", books.Next(), first)
	}
	if len(r.tables) == 0 {
		return nil, fmt.Errorf("dataset: the journal %s has no tables", journal)
	}
	if size < 1 || first < 0 || first%size != 0 {
		return nil, fmt.Errorf("dataset: no range of %d records begins with record %d", size, first)
	}
	return r, nil
}

// Add writes the rows of the next record.
func (r *Range) Add(e *record.Entry) error {
	if e.Record.Sequence != r.next || r.next == r.first+r.size {
		return fmt.Errorf("dataset: record %d was added to the range of record %d, after record %d", e.Record.Sequence, r.first, r.next-1)
	}
	if len(r.parts) == 0 {
		for _, t := range r.tables {
			to := new(bytes.Buffer)
			r.parts, r.to, r.rows = append(r.parts, newPart(t, r.size, e, to, r.books)), append(r.to, to), append(r.rows, 0)
		}
	}
	for i := range r.parts {
		n, err := r.parts[i].add(e)
		if err != nil {
			return fmt.Errorf("dataset: table %s: %w", r.tables[i].name, err)
		}
		r.rows[i] += n
	}
	r.next++
	return nil
}

// Files returns the files of the tables that have rows. It reads them back to compute the statistics, so each of them is readable.
func (r *Range) Files() (all []File, err error) {
	if r.next != r.first+r.size {
		return nil, fmt.Errorf("dataset: the range of record %d lacks records from %d on", r.first, r.next)
	}
	for i := range r.parts {
		n, err := r.parts[i].close()
		if err != nil {
			return nil, err
		}
		r.rows[i] += n
		if r.rows[i] == 0 {
			continue
		}
		f := File{Table: r.tables[i].name, Name: NameOf(r.tables[i].journal, r.first), Rows: r.rows[i], Content: r.to[i].Bytes()}
		if f.Columns, err = statsOf(f.Content, r.tables[i].columns, f.Rows); err != nil {
			return nil, fmt.Errorf("dataset: table %s: %w", f.Table, err)
		}
		if f.Footer, err = footer(f.Content); err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}

// footer returns the bytes of a file's metadata. Their number is followed by four more bytes, which end the file.
func footer(content []byte) (int64, error) {
	const end = 8
	if len(content) < end {
		return 0, errors.New("dataset: a file without metadata")
	}
	return int64(binary.LittleEndian.Uint32(content[len(content)-end:])), nil
}
