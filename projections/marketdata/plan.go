package marketdata

import (
	"context"

	"github.com/perpetua-exchange/perpetua/projections/dataset"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// plan says what to do next: to make the days from a record on.
type plan struct {
	first int64          // the first record of the first day to make
	until int64          // end after the day with the record before this one: the next day is published; -1 for no end
	books *dataset.Books // before the first record, or before an earlier one
	last  string         // date of the last published day, "" if there is none
}

// newPlan finds the first day that is missing or not whole, and the books before it. cut is the first date to keep, or "": earlier days may
// be missing. The last published day is kept at any age.
func newPlan(ctx context.Context, s *Store, cut string) (*plan, error) {
	days, err := s.Days(ctx)
	if err != nil {
		return nil, err
	}
	p, at, err := firstMissing(ctx, s, days, cut)
	if err != nil {
		return nil, err
	}
	ends := make(map[int64]record.Hash)
	for i := range days {
		ends[days[i].Next] = days[i].Hash
	}
	p.books, err = s.booksAfter(ctx, at, ends)
	return p, err
}

// firstMissing returns a plan without books, and the position before its first record.
func firstMissing(ctx context.Context, s *Store, days []Manifest, cut string) (*plan, record.Position, error) {
	sizes, err := s.sizes(ctx, "")
	if err != nil {
		return nil, record.Before, err
	}
	p, at := &plan{until: -1}, record.Before
	if len(days) > 0 {
		p.last = days[len(days)-1].Date
	}
	for i := range days {
		m := &days[i]
		begins := i == 0 && cut != "" // days before it may have been dropped
		switch {
		case m.First != at.Sequence+1 && !begins:
			p.until = m.First
			return p, at, nil
		case !s.whole(m, sizes) && (m.Date >= cut || m.Date == p.last):
			p.first, p.until = m.First, -1
			if i+1 < len(days) {
				p.until = m.Next
			}
			return p, record.Position{Offset: m.First - 1, Sequence: m.First - 1, Hash: m.Prev}, nil
		}
		at, p.first = m.end(), m.Next
	}
	return p, at, nil
}
