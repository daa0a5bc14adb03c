package lake

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/perpetua-exchange/perpetua/projections/dataset"
	"github.com/perpetua-exchange/perpetua/streams/archive"
	"github.com/perpetua-exchange/perpetua/streams/blob"
)

const (
	booksSuffix = ".books.zst"
	// booksTries is how often in a row the books may fail before a range is added without them.
	booksTries = 5
)

// errPassed reports that the catalog already has the range to add.
var errPassed = errors.New("lake: another node has added the range")

// booksKey returns the key of the saved books before a record.
func (f *Filler) booksKey(next int64) string {
	return f.booksFolder() + dataset.NameOf(f.cfg.Archive.Journal, next) + booksSuffix
}

func (f *Filler) booksFolder() string { return f.cfg.Prefix + "books/" }

// needBooks is loadBooks, except that books which fail again and again do not keep the other tables from getting a range. The caller
// reads the range itself next, which fails too if the bucket does.
func (f *Filler) needBooks(ctx context.Context, a *archive.Archive, s *archive.Sealed) error {
	err := f.loadBooks(ctx, a, s)
	if err == nil || ctx.Err() != nil || errors.Is(err, errPassed) {
		f.booksFailed = 0
		return err
	}
	if f.booksFailed++; f.booksFailed < booksTries {
		return err
	}
	f.log.Error("the books before a range are unknown: it has no rows in the table books", "range", s.Range, "error", err)
	return nil
}

// loadBooks makes f.books those before a range, if the journal has books. The range before has saved them. Otherwise, as in a catalog that an
// earlier build has filled, the archive is read from the last saved books on, or from its first record on. The error is errPassed if the
// catalog gets the range in the meantime.
func (f *Filler) loadBooks(ctx context.Context, a *archive.Archive, s *archive.Sealed) error {
	if !dataset.HasBooks(f.cfg.Archive.Journal) || f.books != nil && f.books.Next() == s.First {
		return nil
	}
	books, err := f.lastBooks(ctx, a, s)
	f.books = nil
	if err != nil {
		return err
	}
	if books.Next() < s.First {
		f.log.Info("reading the archive for the table books", "from", books.Next(), "to", s.First-1)
	}
	for _, earlier := range a.Sealed()[:s.Range] {
		if earlier.First < books.Next() {
			continue
		}
		have, err := f.cfg.Catalog.Last(ctx, f.cfg.Archive.Journal, f.cfg.Archive.Partition)
		if err != nil {
			return err
		}
		if have != nil && have.Number >= s.Range {
			return errPassed
		}
		if err := f.read(ctx, a, &earlier, books.Add); err != nil {
			return fmt.Errorf("reading the books before record %d: %w", s.First, err)
		}
		if books.Next() < s.First && (earlier.Range+1)%f.cfg.SaveEvery == 0 {
			f.saveBooks(ctx, books)
			f.log.Info("reading the archive for the table books", "from", books.Next(), "to", s.First-1)
		}
	}
	f.books = books
	return nil
}

// lastBooks returns the last books that this filler or the bucket has, not later than a range.
func (f *Filler) lastBooks(ctx context.Context, a *archive.Archive, s *archive.Sealed) (*dataset.Books, error) {
	keys, _, err := f.savedBooks(ctx)
	if err != nil {
		return nil, err
	}
	books := dataset.NewBooks()
	if f.books != nil && f.books.Next() < s.First {
		books = f.books
	}
	for _, key := range slices.Backward(keys) {
		if key > f.booksKey(s.First) {
			continue
		}
		if key <= f.booksKey(books.Next()) {
			break
		}
		content, err := f.cfg.Archive.Store.Read(ctx, key, maxFile)
		if blob.Missing(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		saved, err := dataset.LoadBooks(content)
		if err == nil && key == f.booksKey(saved.Next()) && slices.ContainsFunc(a.Sealed()[:s.Range], func(r archive.Sealed) bool {
			return r.Base.Sequence == saved.Next() && r.Base.Prev == saved.Position().Hash
		}) {
			return saved, nil
		}
		f.log.Warn("saved books are of no use", "key", key, "error", err)
	}
	return books, nil
}

// savedBooks returns the keys of the saved books of the journal in their order, and those that killed writers have left.
func (f *Filler) savedBooks(ctx context.Context) (keys, abandoned []string, err error) {
	found, err := f.cfg.Archive.Store.List(ctx, f.booksFolder()+f.cfg.Archive.Journal+"-")
	for _, o := range found {
		switch {
		case strings.HasSuffix(o.Key, booksSuffix):
			keys = append(keys, o.Key)
		case blob.Abandoned(o):
			abandoned = append(abandoned, o.Key)
		}
	}
	slices.Sort(keys)
	return keys, abandoned, err
}

// saveBooks makes books durable. A failure costs only time: the archive has the records.
func (f *Filler) saveBooks(ctx context.Context, b *dataset.Books) {
	content, err := b.Save()
	if err == nil {
		err = f.cfg.Archive.Store.Write(ctx, f.booksKey(b.Next()), content, writeWithin)
	}
	if err != nil && ctx.Err() == nil {
		f.log.Warn("the books are not saved", "next", b.Next(), "error", err)
	}
}

// sweepBooks deletes saved books, except the last ones before the records that follow a range which the catalog has. These may be
// older than the range, if an earlier build has added it. The filler continues after a failure.
func (f *Filler) sweepBooks(ctx context.Context, s *archive.Sealed) {
	keys, old, err := f.savedBooks(ctx)
	keys = slices.DeleteFunc(keys, func(key string) bool { return key > f.booksKey(s.Base.Sequence) })
	if len(keys) > 1 {
		old = append(old, keys[:len(keys)-1]...)
	}
	if err == nil {
		err = f.cfg.Archive.Store.Delete(ctx, old...)
	}
	if err != nil && ctx.Err() == nil {
		f.log.Warn("earlier saved books are not deleted", "error", err)
	}
}
