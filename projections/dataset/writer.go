package dataset

import (
	"fmt"
	"maps"
	"slices"

	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Config says what to write and where.
type Config struct {
	Dir     string // the folder of the dataset
	Journal string
	Range   int64 // records of a file
	// From is the first record to write, rounded down to the beginning of a range. A folder with earlier files still begins with its
	// first file. If From is negative, a folder without files begins with record 0.
	From int64
}

// Writer adds the rows of a journal to a dataset. The caller passes every record after After to Add, and then calls Finish or Abandon.
// Two writers MUST NOT use a folder at the same time, because they would remove each other's unfinished files.
type Writer struct {
	cfg    Config
	tables []table
	files  map[string]map[int64]header // of the folder, by table and first record
	known  map[int64]record.Hash       // hashes of the records that these files end with and follow

	books *Books // before the next record, or before an earlier one, from which on they need the records; nil without the table of books

	next int64   // sequence of the next record to write
	open []*file // one for each table, or none between two ranges

	sum Summary
}

// Summary counts what a Writer has done.
type Summary struct {
	Records int64 // that were added
	Rows    int64 // of these records
	Files   int64 // that were written or replaced
	Next    int64 // sequence after the last record in the files; 0 if there are none
}

// EmptyError reports that the log has no record from Config.From on.
type EmptyError struct {
	Journal string
	From    int64 // the first record of the range
}

// Error names the record.
func (e *EmptyError) Error() string {
	return fmt.Sprintf("the journal %s ends before record %d: write from an earlier record", e.Journal, e.From)
}

// DivergedError reports that the log is not the one from which the files were written, or ends before them.
type DivergedError struct {
	Dir, Journal string
	Sequence     int64 // of a record in the files
}

// Error names the folder and the record.
func (e *DivergedError) Error() string {
	return fmt.Sprintf("%s: the files in %s go to record %d of the journal %s, which this log lacks or has with another content; an archive may lack the newest records",
		record.CodeDiverged, e.Dir, e.Sequence, e.Journal)
}

// NewWriter reads which files the folder has. It creates nothing.
func NewWriter(cfg Config) (*Writer, error) {
	w := &Writer{cfg: cfg, tables: tablesOf(cfg.Journal), files: make(map[string]map[int64]header), known: make(map[int64]record.Hash)}
	if len(w.tables) == 0 {
		return nil, fmt.Errorf("dataset: the journal %s has no tables", cfg.Journal)
	}
	if cfg.Range < 1 {
		return nil, fmt.Errorf("dataset: files of %d records", cfg.Range)
	}
	for _, t := range w.tables {
		all, err := headers(&cfg, t)
		if err != nil {
			return nil, err
		}
		w.files[t.name] = all
		for _, h := range all {
			if !w.learn(h.First-1, h.Prev) || !w.learn(h.Next-1, h.Hash) {
				return nil, &FileError{cfg.path(t.name, h.First), "was written from another log than other files"}
			}
		}
	}
	w.next = w.begins()
	if w.next > 0 && len(w.files[booksTable]) == 0 {
		w.tables = withoutBooks(w.tables)
	}
	for w.isFull(w.next) {
		w.next += cfg.Range
	}
	return w, w.loadBooks()
}

// learn adds the hash of a record to the known ones. It reports false if another hash is known.
func (w *Writer) learn(sequence int64, hash record.Hash) bool {
	known, ok := w.known[sequence]
	w.known[sequence] = hash
	return !ok || known == hash
}

// begins returns the first record of the dataset after the run.
func (w *Writer) begins() int64 {
	var firsts []int64
	for _, all := range w.files {
		firsts = slices.AppendSeq(firsts, maps.Keys(all))
	}
	if w.cfg.From >= 0 {
		firsts = append(firsts, w.cfg.From-w.cfg.From%w.cfg.Range)
	}
	if len(firsts) == 0 {
		return 0
	}
	return slices.Min(firsts)
}

// isFull reports whether all tables have a full file with the range from a record on.
func (w *Writer) isFull(first int64) bool {
	for _, t := range w.tables {
		if h, ok := w.files[t.name][first]; !ok || !h.full() {
			return false
		}
	}
	return true
}

// After returns the position of the last record before those that the caller must add. If known is false, only its sequence is
// known. Its offset is a guess.
func (w *Writer) After() (at record.Position, known bool) {
	if w.next == 0 {
		return record.Before, true
	}
	if w.catchesUp() {
		return w.books.Position(), true
	}
	hash, known := w.known[w.next-1]
	return record.Position{Offset: w.next - 1, Sequence: w.next - 1, Hash: hash}, known
}

// Add writes the rows of the next record. After an error, the caller calls Abandon.
func (w *Writer) Add(e *record.Entry) error {
	next := w.next
	if w.catchesUp() {
		next = w.books.Next()
	}
	if e.Record.Sequence != next {
		return fmt.Errorf("dataset: record %d of the journal %s was added, and %d is the next one", e.Record.Sequence, w.cfg.Journal, next)
	}
	if hash, ok := w.known[next]; ok && hash != e.Position.Hash {
		return &DivergedError{w.cfg.Dir, w.cfg.Journal, next}
	}
	if next < w.next {
		return w.catchUp(e)
	}
	if len(w.open) == 0 {
		if err := w.begin(e); err != nil {
			return err
		}
	}
	for _, f := range w.open {
		n, err := f.add(e)
		if err != nil {
			return fmt.Errorf("%s: %w", f.path, err)
		}
		w.sum.Rows += n
	}
	w.sum.Records++
	w.next++
	if w.next%w.cfg.Range > 0 {
		return nil
	}
	if err := w.publish(); err != nil {
		return err
	}
	return w.saveBooks()
}

// begin creates the files of the range that a record begins.
func (w *Writer) begin(e *record.Entry) error {
	for _, t := range w.tables {
		if err := removeUnfinished(&w.cfg, t); err != nil {
			return err
		}
		f, err := createFile(&w.cfg, t, e, w.books)
		if err != nil {
			return err
		}
		w.open = append(w.open, f)
	}
	return nil
}

// publish finishes and syncs the open files, and then gives them their names. A file of the same records is replaced, since it may be damaged.
func (w *Writer) publish() error {
	for _, f := range w.open {
		rows, err := f.finish()
		if err != nil {
			return fmt.Errorf("%s: %w", f.path, err)
		}
		w.sum.Rows += rows
	}
	for _, f := range w.open {
		if err := f.publish(); err != nil {
			return err
		}
		w.sum.Files++
	}
	w.open = nil
	return nil
}

// Finish writes the beginning of the last range, after the caller has added all records of the log. If the folder has later records, the
// error is a *DivergedError, and the files of that range stay. It is an *EmptyError if the log has no record to write to a new folder.
func (w *Writer) Finish() (Summary, error) {
	if _, known := w.After(); !known && w.sum.Records == 0 {
		return w.sum, &EmptyError{w.cfg.Journal, w.next}
	}
	if w.catchesUp() {
		return w.sum, &DivergedError{w.cfg.Dir, w.cfg.Journal, w.next - 1}
	}
	for sequence := range w.known {
		if sequence >= w.next {
			return w.sum, &DivergedError{w.cfg.Dir, w.cfg.Journal, sequence}
		}
	}
	w.sum.Next = w.next
	err := w.publish()
	return w.sum, err
}

// Abandon removes unfinished files. It does nothing after Finish.
func (w *Writer) Abandon() {
	for _, f := range w.open {
		f.discard()
	}
	w.open = nil
}
