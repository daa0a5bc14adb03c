package marketdata

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perpetua-exchange/perpetua/projections/dataset"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// run makes the days of one plan.
type run struct {
	maker *Maker
	store *Store
	*plan
	day *day // nil between two days, and for a day that is not kept
	// date is the day of the last record from the plan's first one on, or "".
	date string
}

// read reads records until the plan is done or no longer fits.
func (r *run) read(ctx context.Context, from Source) error {
	defer from.Close()
	check := time.Now().Add(r.maker.cfg.CheckEvery)
	for {
		entries, err := r.poll(ctx, from, check)
		if err != nil {
			return err
		}
		began := time.Now()
		for i := range entries {
			if err = r.add(ctx, &entries[i]); err != nil {
				break
			}
		}
		r.maker.works(began)
		if err != nil {
			return err
		}
		if len(entries) > 0 {
			last := &entries[len(entries)-1]
			r.maker.update(func(s *Status) { s.Sequence, s.Reading = last.Position.Sequence, dataset.DateOf(last.Record.Time) })
		}
		if time.Now().After(check) {
			if err := r.check(ctx); errors.Is(err, errAgain) || ctx.Err() != nil {
				return err
			} else if err != nil { // the day in the making need not be read again for it
				r.maker.failed(err)
			}
			check = time.Now().Add(r.maker.cfg.CheckEvery)
		}
	}
}

// poll is Source.Poll, but ends without records at the time of the next check.
func (r *run) poll(ctx context.Context, from Source, check time.Time) ([]record.Entry, error) {
	within, cancel := context.WithDeadline(ctx, check)
	defer cancel()
	entries, err := from.Poll(within)
	if err != nil && within.Err() != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return nil, nil
	}
	return entries, err
}

// check drops old days, and returns errAgain if published days are missing that this run does not make.
func (r *run) check(ctx context.Context) error {
	if err := r.maker.dropOld(ctx, r.store); err != nil {
		return err
	}
	days, err := r.store.Days(ctx)
	if err != nil {
		return err
	}
	p, _, err := firstMissing(ctx, r.store, days, r.maker.cut())
	if err != nil {
		return err
	}
	making := r.first
	if r.day != nil {
		making, _ = r.day.Span()
	}
	if p.first < making {
		return errAgain
	}
	return nil
}

// add adds the next record.
func (r *run) add(ctx context.Context, e *record.Entry) error {
	if e.Record.Sequence != r.books.Next() {
		return fmt.Errorf("marketdata: record %d came, and %d is the next one", e.Record.Sequence, r.books.Next())
	}
	if e.Record.Sequence < r.first {
		return r.books.Add(e)
	}
	if date := dataset.DateOf(e.Record.Time); date != r.date {
		if err := r.endDay(ctx); err != nil {
			return err
		}
		if e.Record.Sequence == r.until {
			return errAgain
		}
		if err := r.beginDay(e, date); err != nil {
			return err
		}
	}
	if r.day == nil {
		return r.books.Add(e)
	}
	return r.day.add(e)
}

// beginDay begins the day of a record, unless the day is too old to keep. The last published day is made again at any age.
func (r *run) beginDay(e *record.Entry, date string) (err error) {
	r.date = date
	if date >= r.maker.cut() || date == r.last {
		r.day, err = newDay(e, r.books)
	}
	return err
}

// endDay publishes the day in the making, if there is one. The manifest comes last: if the process is killed before, the next run makes the
// day again. A published day has all files, and the books to continue with. A bucket that does not answer is waited for.
func (r *run) endDay(ctx context.Context) error {
	if r.day == nil {
		return nil
	}
	began := time.Now()
	m, err := r.day.manifest()
	if err != nil {
		return err
	}
	if err := r.maker.persist(ctx, func() error { return r.publish(ctx, m) }); err != nil {
		return err
	}
	bytes := int64(0)
	for i := range m.Files {
		bytes += m.Files[i].Bytes
	}
	r.maker.log.Info("made the daily files of market data", "date", m.Date, "records", m.Next-m.First, "bytes", bytes, "took", time.Since(began))
	r.maker.update(func(s *Status) { s.Day = max(s.Day, m.Date) })
	r.discard()
	return nil
}

// publish writes the day in the making to the bucket. It may be called again after an error: to read a day's records again takes long.
func (r *run) publish(ctx context.Context, m *Manifest) error {
	if err := r.day.upload(ctx, r.store, m); err != nil {
		return err
	}
	if err := r.store.saveBooks(ctx, m.Date, r.books); err != nil {
		return err
	}
	published, err := r.store.putDay(ctx, m)
	if err != nil {
		return err
	}
	return r.store.sweep(ctx, published)
}

func (r *run) discard() {
	if r.day != nil {
		r.day.discard()
		r.day = nil
	}
}
