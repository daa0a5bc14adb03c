package marketdata

import (
	"bufio"
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"os"

	"github.com/perpetua-exchange/perpetua/projections/dataset"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// day is a day in the making. Its files are temporary ones on this machine until the day is over.
type day struct {
	*dataset.Day
	files []*temporary
	prev  record.Hash
	hash  record.Hash // of the last record
}

// newDay starts the day of a record. The caller must call discard.
func newDay(e *record.Entry, books *dataset.Books) (_ *day, err error) {
	d := &day{prev: e.Record.Prev}
	defer func() {
		if err != nil {
			d.discard()
		}
	}()
	d.Day, err = dataset.NewDay(e, books, func(table string) (io.Writer, error) {
		f, err := newTemporary(table)
		if err != nil {
			return nil, err
		}
		d.files = append(d.files, f)
		return f, nil
	})
	return d, err
}

func (d *day) add(e *record.Entry) error {
	d.hash = e.Position.Hash
	return d.Add(e)
}

// manifest completes the files and describes them.
func (d *day) manifest() (*Manifest, error) {
	if err := d.Close(); err != nil {
		return nil, err
	}
	first, next := d.Span()
	m := &Manifest{Version: dataset.PublicVersion, Date: d.Date(), First: first, Next: next, Prev: d.prev, Hash: d.hash}
	for _, f := range d.files {
		if err := f.buffer.Flush(); err != nil {
			return nil, err
		}
		m.Files = append(m.Files, File{Table: f.table, Bytes: f.bytes, SHA256: record.Hash(f.sum.Sum(nil)), Rows: d.Rows(f.table)})
	}
	return m, nil
}

// upload writes the files to the bucket.
func (d *day) upload(ctx context.Context, s *Store, m *Manifest) error {
	for i, f := range d.files {
		if _, err := f.os.Seek(0, io.SeekStart); err != nil {
			return err
		}
		if err := s.putFile(ctx, m.Date, &m.Files[i], f.os); err != nil {
			return err
		}
	}
	return nil
}

func (d *day) discard() {
	for _, f := range d.files {
		f.discard()
	}
	d.files = nil
}

// temporary is a temporary file, without a name where the system can do that.
type temporary struct {
	table  string
	os     *os.File
	named  bool
	buffer *bufio.Writer
	sum    hash.Hash
	bytes  int64
}

func newTemporary(table string) (*temporary, error) {
	f, err := os.CreateTemp("", "perpetua-"+table+"-*"+suffix)
	if err != nil {
		return nil, fmt.Errorf("marketdata: a temporary file: %w", err)
	}
	named := os.Remove(f.Name()) != nil // without a name, the file ends with the process, also if that is killed
	return &temporary{table: table, os: f, named: named, buffer: bufio.NewWriterSize(f, 1<<16), sum: sha256.New()}, nil
}

// Write implements io.Writer.
func (t *temporary) Write(b []byte) (int, error) {
	n, err := t.buffer.Write(b)
	t.sum.Write(b[:n])
	t.bytes += int64(n)
	return n, err
}

func (t *temporary) discard() {
	_ = t.os.Close()
	if t.named {
		_ = os.Remove(t.os.Name())
	}
}
