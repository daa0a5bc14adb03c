package dataset

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/parquet-go/parquet-go"

	"github.com/perpetua-exchange/perpetua/streams/base"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// headerKey is the key of the header among the metadata of a file.
const headerKey = "perpetua"

// header names the records and the columns of a file.
type header struct {
	Version int         `json:"version"`
	Journal string      `json:"journal"`
	Table   string      `json:"table"`
	Schema  record.Hash `json:"schema"` // hash of the columns
	Range   int64       `json:"range"`  // records of a full file
	First   int64       `json:"first"`  // sequence of the first record
	Next    int64       `json:"next"`   // sequence after the last record
	Prev    record.Hash `json:"prev"`   // hash of the record before the first
	Hash    record.Hash `json:"hash"`   // hash of the last record
}

// full reports whether the file never changes.
func (h *header) full() bool { return h.Next == h.First+h.Range }

// FileError reports a file that is not one of the dataset to write.
type FileError struct {
	Path   string
	Reason string
}

// Error names the file.
func (e *FileError) Error() string {
	return fmt.Sprintf("%s %s: write to another folder, or delete the file to have it written again", e.Path, e.Reason)
}

// readHeader reads the header of a file.
func readHeader(path string) (h header, err error) {
	f, err := os.Open(path)
	if err != nil {
		return h, err
	}
	defer f.Close()
	about, err := f.Stat()
	if err != nil {
		return h, err
	}
	p, err := parquet.OpenFile(f, about.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return h, &FileError{path, fmt.Sprintf("is not a whole Parquet file (%v)", err)}
	}
	text, ok := p.Lookup(headerKey)
	if !ok || json.Unmarshal([]byte(text), &h) != nil {
		return h, &FileError{path, "was not written by this program"}
	}
	return h, nil
}

// The parts of the names of files.
const (
	suffix     = ".parquet"
	unfinished = ".tmp"
)

// NameOf returns the name of the files of a range, without suffix.
func NameOf(journal string, first int64) string { return fmt.Sprintf("%s-%012d", journal, first) }

// path returns the path of a table's file with a range of records.
func (c *Config) path(table string, first int64) string {
	return filepath.Join(c.Dir, table, NameOf(c.Journal, first)+suffix)
}

// part is a file in the making: the rows of a table from a range of records.
type part struct {
	header
	rows rowWriter
}

// newPart starts to write a part of a range of size records, which begins with the record of e.
func newPart(t table, size int64, e *record.Entry, to io.Writer, books *Books) part {
	r := e.Record
	return part{header{Version: Version, Journal: t.journal, Table: t.name, Schema: t.schema, Range: size,
		First: r.Sequence, Next: r.Sequence, Prev: r.Prev, Hash: r.Prev}, t.create(to, books)}
}

// add writes the rows of a record and returns their number.
func (p *part) add(e *record.Entry) (int64, error) {
	n, err := p.rows.add(e)
	p.Next, p.Hash = e.Record.Sequence+1, e.Position.Hash
	return n, err
}

// close writes the rest of the part, with its header. It returns the number of rows that it has written.
func (p *part) close() (int64, error) {
	text, err := json.Marshal(&p.header)
	if err != nil {
		return 0, err
	}
	return p.rows.close(headerKey, string(text))
}

// file is a part that is being written to a folder under a hidden name.
type file struct {
	part
	path string
	os   *os.File
}

// createFile starts to write a file of the range that begins with the record of e.
func createFile(c *Config, t table, e *record.Entry, books *Books) (*file, error) {
	f := &file{path: c.path(t.name, e.Record.Sequence)}
	if err := base.MakeFolder(filepath.Dir(f.path)); err != nil {
		return nil, err
	}
	var err error
	if f.os, err = os.Create(filepath.Join(filepath.Dir(f.path), "."+filepath.Base(f.path)+unfinished)); err != nil {
		return nil, err
	}
	f.part = newPart(t, c.Range, e, f.os, books)
	return f, nil
}

// finish writes the rest of the file and syncs it. It returns the number of rows that it has written.
func (f *file) finish() (int64, error) {
	rows, err := f.close()
	if err == nil {
		err = f.os.Sync()
	}
	return rows, errors.Join(err, f.os.Close())
}

// publish gives a finished file its name.
func (f *file) publish() error {
	if err := os.Rename(f.os.Name(), f.path); err != nil {
		return err
	}
	folder, err := os.Open(filepath.Dir(f.path))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// discard removes an unfinished file.
func (f *file) discard() {
	_ = f.os.Close()
	_ = os.Remove(f.os.Name())
}

// list returns the names of a table's files of a journal, with something before and after them.
func (c *Config) list(t table, before, after string) (names []string, err error) {
	all, err := os.ReadDir(filepath.Join(c.Dir, t.name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, entry := range all {
		if strings.HasPrefix(entry.Name(), before+c.Journal+"-") && strings.HasSuffix(entry.Name(), suffix+after) {
			names = append(names, entry.Name())
		}
	}
	return names, err
}

// removeUnfinished removes a table's files that an interrupted run has not finished.
func removeUnfinished(c *Config, t table) error {
	names, err := c.list(t, ".", unfinished)
	for _, name := range names {
		if failed := os.Remove(filepath.Join(c.Dir, t.name, name)); failed != nil && !errors.Is(failed, fs.ErrNotExist) {
			err = errors.Join(err, failed)
		}
	}
	return err
}

// headers reads the headers of a table's files, by their first record.
func headers(c *Config, t table) (map[int64]header, error) {
	names, err := c.list(t, "", "")
	if err != nil {
		return nil, err
	}
	all := make(map[int64]header)
	for _, name := range names {
		path := filepath.Join(c.Dir, t.name, name)
		h, err := readHeader(path)
		if err != nil {
			return nil, err
		}
		if err := c.check(t, path, &h); err != nil {
			return nil, err
		}
		all[h.First] = h
	}
	return all, nil
}

// check returns an error unless a header is that of a file of the dataset.
func (c *Config) check(t table, path string, h *header) error {
	switch {
	case h.Version != Version:
		return &FileError{path, fmt.Sprintf("has version %d of the tables, and this build writes version %d", h.Version, Version)}
	case h.Table == t.name && h.Schema != t.schema:
		return &FileError{path, "has other columns than this build writes"}
	case h.Range != c.Range:
		return &FileError{path, fmt.Sprintf("is one of files with %d records, and not with %d", h.Range, c.Range)}
	case h.Journal != c.Journal, h.Table != t.name, path != c.path(t.name, h.First), h.First < 0, h.First%h.Range != 0,
		h.Next <= h.First, h.Next > h.First+h.Range:
		return &FileError{path, "has another name than its content"}
	}
	return nil
}
