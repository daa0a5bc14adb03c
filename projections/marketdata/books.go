package marketdata

import (
	"context"
	"maps"
	"slices"

	"github.com/perpetua-exchange/perpetua/projections/dataset"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// recentBooks is the number of days for which books are kept. The books after the first day of a month are kept too: a lost day can then be
// made again without all records before it.
const recentBooks = 2

// saveBooks saves the books after a day, and deletes those that need not be kept.
func (s *Store) saveBooks(ctx context.Context, date string, books *dataset.Books) error {
	content, err := books.Save()
	if err != nil {
		return err
	}
	if err := s.bucket.Write(ctx, s.booksKey(date), content, writeWithin); err != nil {
		return err
	}
	saved, err := s.dates(ctx, booksFolder, booksSuffix)
	if err != nil {
		return err
	}
	dates := slices.Sorted(maps.Keys(saved))
	for _, date := range dates[:max(0, len(dates)-recentBooks)] {
		if date[len("2026-11-"):] != "01" {
			if err := s.bucket.Delete(ctx, s.booksKey(date)); err != nil {
				return err
			}
		}
	}
	return nil
}

// booksAfter returns the last saved books that are not later than a position, and new ones if there are none. ends has the hashes of the last
// records of days by the sequence after them: books of another log are not used.
func (s *Store) booksAfter(ctx context.Context, at record.Position, ends map[int64]record.Hash) (*dataset.Books, error) {
	saved, err := s.dates(ctx, booksFolder, booksSuffix)
	if err != nil {
		return nil, err
	}
	dates := slices.Sorted(maps.Keys(saved))
	slices.Reverse(dates)
	for _, date := range dates {
		content, err := s.bucket.Read(ctx, s.booksKey(date), maxBooks)
		if blob.Missing(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		books, err := dataset.LoadBooks(content)
		if err != nil || books.Next() > at.Sequence+1 {
			continue
		}
		if hash, ok := ends[books.Next()]; ok && hash == books.Position().Hash {
			return books, nil
		}
	}
	return dataset.NewBooks(), nil
}
