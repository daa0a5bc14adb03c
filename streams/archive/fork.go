package archive

import (
	"context"
	"errors"
	"fmt"

	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Position returns the position of the last valid record of a tail. It is record.Before for a nil tail, and for one that only has records
// that readers skip.
func (t *Tail) Position() record.Position {
	if t == nil || t.Records == 0 {
		return record.Before
	}
	at := t.Base.Before()
	at.Offset = t.LastOffset
	return at
}

// Holds returns an error unless the log of a source holds the last record of the tail. from returns a source of the records after a
// position. If the log has another record there, or ends before it, the error wraps a *record.DivergedError. A log that was trimmed
// after that record is not compared.
func (w *Writer) Holds(ctx context.Context, from func(at record.Position) Source) error {
	t := w.archive.tail
	at := t.Position()
	if at.IsBefore() {
		return nil
	}
	source := from(at)
	defer source.Close()
	_, err := source.Locate(ctx)
	var diverged *record.DivergedError
	var trimmed *record.TrimmedError
	switch {
	case errors.As(err, &diverged):
		return fmt.Errorf("archive: %s has a record that the log does not hold, and stays as it is: %w", w.archive.cfg.tailKey(), err)
	case errors.As(err, &trimmed):
		return nil
	}
	return err
}

// agree returns an error unless a tail holds the same valid records as the current range of the writer, as far as both have them. A tail
// of another range is not compared: the manifests are.
func (w *Writer) agree(ctx context.Context, t *Tail) error {
	p := w.current
	if t == nil || t.Range != p.Range {
		return nil
	}
	common := min(t.Records, p.Records)
	switch {
	case t.Start != p.Start, common == t.Records && common > 0 && p.hashes[common-1] != t.Base.Prev:
		return w.forked(ctx, t)
	case common == t.Records || common == 0:
		return nil
	}
	at, err := w.differs(ctx, t)
	if err == nil && at >= 0 {
		err = w.fork(t, at)
	}
	return err
}

// forked returns the error of a tail that holds other records than the current range. It reads the tail to name the first of them.
func (w *Writer) forked(ctx context.Context, t *Tail) error {
	at := w.current.First
	if t.Start == w.current.Start {
		var err error
		if at, err = w.differs(ctx, t); err != nil || at < 0 {
			at = t.Base.Sequence - 1
		}
	}
	return w.fork(t, at)
}

// fork returns the error for a tail that has another record than the log at a sequence.
func (w *Writer) fork(t *Tail, at int64) error {
	return &Error{Key: w.archive.cfg.tailKey(), Sequence: at, Damage: Forked, Err: &record.DivergedError{Journal: w.log.journal, Partition: w.log.partition,
		Have: t.Position(), Found: w.Position(), Reason: fmt.Sprintf("the log has another record %d", at)}}
}

// differs returns the sequence of the first valid record in which a tail and the current range differ, or -1.
func (w *Writer) differs(ctx context.Context, t *Tail) (int64, error) {
	o, err := readObject(ctx, &w.archive.cfg, &t.Manifest)
	if err != nil {
		return -1, err
	}
	d, err := w.archive.decoders()
	if err != nil {
		return -1, err
	}
	p := w.current
	for n := range o.chunks {
		v, err := o.chunk(d, n)
		if err != nil {
			return -1, err
		}
		d.columns.Free(v.values)
		for i, s := range v.sequences {
			if s >= p.First && s < p.First+p.Records && v.hashes[i] != p.hashes[s-p.First] {
				return s, nil
			}
		}
	}
	return -1, nil
}
