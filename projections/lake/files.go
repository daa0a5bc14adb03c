package lake

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perpetua-exchange/perpetua/projections/dataset"
	"github.com/perpetua-exchange/perpetua/streams/archive"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

const (
	writeWithin = 5 * time.Minute
	maxFile     = 4 << 30
)

// add writes the files of a range and adds them to the catalog.
func (f *Filler) add(ctx context.Context, a *archive.Archive, s *archive.Sealed) error {
	began := time.Now()
	made, err := f.files(ctx, a, s)
	if errors.Is(err, errPassed) {
		return nil
	}
	if err != nil {
		f.books = nil
		return fmt.Errorf("lake: range %d of %s: %w", s.Range, f.cfg.Archive.Journal, err)
	}
	var all []DataFile
	size, rows := 0, int64(0)
	for _, file := range made {
		d := DataFile{file, pathOf(&file)}
		if err := f.write(ctx, &d); err != nil {
			return err
		}
		all, size, rows = append(all, d), size+len(d.Content), rows+d.Rows
	}
	if f.books != nil { // before the range is added, so a filler that is killed finds the books before the next range
		f.saveBooks(ctx, f.books)
	}
	r := Range{f.cfg.Archive.Journal, f.cfg.Archive.Partition, s.Range, s.Base.Sequence, s.Base.Prev, s.Signed}
	added, err := f.cfg.Catalog.Add(ctx, r, all)
	if err != nil {
		return err
	}
	if added {
		f.log.Info("added a range to the DuckLake catalog", "range", s.Range, "sequence", r.Next-1, "rows", rows, "bytes", size, "took", time.Since(began))
	}
	return f.sweep(ctx, s)
}

// files makes the files of a range from the records in the archive, and verifies that they lead to the end in the manifest.
func (f *Filler) files(ctx context.Context, a *archive.Archive, s *archive.Sealed) ([]dataset.File, error) {
	if err := f.needBooks(ctx, a, s); err != nil {
		return nil, err
	}
	to, err := dataset.NewRange(f.cfg.Archive.Journal, s.First, s.Base.Sequence-s.First, f.books)
	if err != nil {
		return nil, err
	}
	if err := f.read(ctx, a, s, to.Add); err != nil {
		return nil, err
	}
	return to.Files()
}

// read passes the records of a range to add, and then verifies that they lead to the end in the manifest.
func (f *Filler) read(ctx context.Context, a *archive.Archive, s *archive.Sealed, add func(*record.Entry) error) error {
	cfg := &f.cfg.Archive
	chain := record.NewChain(f.cfg.Rules, cfg.Partition, record.Before)
	if s.Range > 0 {
		chain.StartAt(a.Sealed()[s.Range-1].Base)
	}
	for r, err := range a.Records(ctx, cfg.Journal, s.First, s.Base.Sequence) {
		if err != nil {
			return err
		}
		e, ok, err := chain.Admit(r.Offset, r.Value)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		if err := add(&e); err != nil {
			return err
		}
	}
	if at := chain.Position(); at.Sequence != s.Base.Sequence-1 || at.Hash != s.Base.Prev {
		return fmt.Errorf("the archive ends with record %d (%v), and its manifest with %d (%v)", at.Sequence, at.Hash, s.Base.Sequence-1, s.Base.Prev)
	}
	return nil
}

const suffix = ".parquet"

// pathOf returns the path below the table's folder. It contains a hash of the content: another build may compress
// the same rows to other bytes, and the catalog names the size of each file.
func pathOf(f *dataset.File) string {
	return f.Name + endOf(sha256.Sum256(f.Content))
}

// endOf returns the end of the name of a file, which depends on the SHA-256 of the content.
func endOf(sum [sha256.Size]byte) string { return "-" + hex.EncodeToString(sum[:8]) + suffix }

// folder returns the prefix of the keys of a table's files.
func (f *Filler) folder(table string) string { return f.cfg.Prefix + "main/" + table + "/" }

// write makes a file durable. If an earlier attempt has left one, it is replaced unless it is whole.
func (f *Filler) write(ctx context.Context, d *DataFile) error {
	key, store := f.folder(d.Table)+d.Path, f.cfg.Archive.Store
	created, err := store.Create(ctx, key, d.Content, writeWithin)
	if err != nil || created {
		return err
	}
	there, err := store.Read(ctx, key, maxFile)
	if err == nil && bytes.Equal(there, d.Content) {
		return nil
	}
	if err != nil && !blob.Missing(err) {
		return err
	}
	return store.Write(ctx, key, d.Content, writeWithin)
}

// sweep deletes the files of a range that the catalog does not name, which another build has written and not added. The
// catalog has the range, so it will name none of them.
func (f *Filler) sweep(ctx context.Context, s *archive.Sealed) error {
	for _, t := range dataset.Tables(f.cfg.Archive.Journal) {
		name := dataset.NameOf(f.cfg.Archive.Journal, s.First) + "-"
		found, err := f.cfg.Archive.Store.List(ctx, f.folder(t.Name)+name)
		if err != nil {
			return err
		}
		named, err := f.cfg.Catalog.Paths(ctx, t.Name, name)
		if err != nil {
			return err
		}
		var orphans []string
		for _, o := range found {
			path := strings.TrimPrefix(o.Key, f.folder(t.Name))
			if !slices.Contains(named, path) && (!blob.Temporary(o.Key) || blob.Abandoned(o)) {
				orphans = append(orphans, o.Key)
			}
		}
		if err := f.cfg.Archive.Store.Delete(ctx, orphans...); err != nil {
			return err
		}
	}
	f.sweepBooks(ctx, s)
	return nil
}
