package lake

import (
	"context"
	"fmt"
	"strings"

	"github.com/perpetua-exchange/perpetua/projections/dataset"
	"github.com/perpetua-exchange/perpetua/streams/archive"
	"github.com/perpetua-exchange/perpetua/streams/blob"
)

const booksSuffix = ".books.zst"

// booksKey returns the key of the saved books before a record.
func (f *Filler) booksKey(next int64) string {
	return f.booksFolder() + dataset.NameOf(f.cfg.Archive.Journal, next) + booksSuffix
}

func (f *Filler) booksFolder() string { return f.cfg.Prefix + "books/" }

// loadBooks makes f.books those before a range, if the journal has books. The range before has saved them. Otherwise, as in a catalog that an
// earlier build has filled, the archive is read from its first record on.
func (f *Filler) loadBooks(ctx context.Context, a *archive.Archive, s *archive.Sealed) error {
	if !dataset.HasBooks(f.cfg.Archive.Journal) || f.books != nil && f.books.Next() == s.First {
		return nil
	}
	f.books = nil
	books := dataset.NewBooks()
	if s.First > 0 {
		content, err := f.cfg.Archive.Store.Read(ctx, f.booksKey(s.First), maxFile)
		if err != nil && !blob.Missing(err) {
			return err
		}
		if err == nil {
			saved, err := dataset.LoadBooks(content)
			if err == nil && saved.Next() == s.First && saved.Position().Hash == a.Sealed()[s.Range-1].Base.Prev {
				f.books = saved
				return nil
			}
			f.log.Warn("the saved books are of no use: the archive is read from its first record on", "key", f.booksKey(s.First), "error", err)
		}
		for _, earlier := range a.Sealed()[:s.Range] {
			if err := f.read(ctx, a, &earlier, books.Add); err != nil {
				return fmt.Errorf("reading the books before record %d: %w", s.First, err)
			}
		}
	}
	f.books = books
	return nil
}

// saveBooks makes the books after the last range durable. It comes before the range is added, so the books before the next range of a
// catalog are always there.
func (f *Filler) saveBooks(ctx context.Context) error {
	if f.books == nil {
		return nil
	}
	content, err := f.books.Save()
	if err != nil {
		return err
	}
	return f.cfg.Archive.Store.Write(ctx, f.booksKey(f.books.Next()), content, writeWithin)
}

// sweepBooks deletes the saved books before a range that the catalog has. A filler that has not noticed may still look for them; it then
// reads the archive.
func (f *Filler) sweepBooks(ctx context.Context, s *archive.Sealed) error {
	prefix := f.booksFolder() + f.cfg.Archive.Journal + "-"
	found, err := f.cfg.Archive.Store.List(ctx, prefix)
	if err != nil {
		return err
	}
	var old []string
	for _, o := range found {
		if strings.HasSuffix(o.Key, booksSuffix) && o.Key < f.booksKey(s.Base.Sequence) || blob.Temporary(o.Key) && blob.Abandoned(o) {
			old = append(old, o.Key)
		}
	}
	return f.cfg.Archive.Store.Delete(ctx, old...)
}
