// Package wholelog reads the records before the base of a trimmed log from its archive. Readers of package journal take them from
// Archives, and copies of whole logs from Log.
//
// The records are verified twice: by the archive against its manifests, and by the reader, which follows the chain from its own
// position through the archive up to the hash that the first record of the topic names. So an archive of another history, or
// with a gap, is an error and never a shorter log.
package wholelog

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/streams/archive"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Archives are the archives of a venue. It implements journal.History.
type Archives struct {
	// Config returns the archive of a partition. Its error counts as that of a bucket that does not answer, unless it is
	// journal.ErrHistory.
	Config func(ctx context.Context, journal string, partition int32) (archive.Config, error)
	// Once makes every error of the bucket one after which readers do not ask again, for commands that report it.
	Once bool
}

var _ journal.History = Archives{}

func (h Archives) open(ctx context.Context, name string, partition int32) (*archive.Archive, error) {
	cfg, err := h.Config(ctx, name, partition)
	if err != nil {
		return nil, h.failed(ctx, err)
	}
	a, err := archive.OpenRanges(ctx, cfg)
	return a, h.failed(ctx, err)
}

// failed makes an error of a damaged archive one after which readers do not ask again.
func (h Archives) failed(ctx context.Context, err error) error {
	var wrong *archive.Error
	if errors.As(err, &wrong) || h.Once && err != nil && ctx.Err() == nil {
		return fmt.Errorf("%w: %w", journal.ErrHistory, err)
	}
	return err
}

// Records implements journal.History.
func (h Archives) Records(ctx context.Context, name string, partition int32, from, to int64) iter.Seq2[*kgo.Record, error] {
	return func(yield func(*kgo.Record, error) bool) {
		a, err := h.open(ctx, name, partition)
		if err != nil {
			yield(nil, err)
			return
		}
		for r, err := range a.Records(ctx, name, from, to) {
			if !yield(r, h.failed(ctx, err)) || err != nil {
				return
			}
		}
	}
}

// Stored implements journal.History.
func (h Archives) Stored(ctx context.Context, name string, partition int32, from, to int64) iter.Seq2[journal.Stored, error] {
	return func(yield func(journal.Stored, error) bool) {
		a, err := h.open(ctx, name, partition)
		if err != nil {
			yield(journal.Stored{}, err)
			return
		}
		for r, err := range a.Stored(ctx, from, to) {
			if !yield(r, h.failed(ctx, err)) || err != nil {
				return
			}
		}
	}
}

// Holds implements journal.History. It reads the manifests and not the objects.
func (h Archives) Holds(ctx context.Context, b record.Base) error {
	a, err := h.open(ctx, b.Journal, b.Partition)
	if err != nil {
		return err
	}
	return Reaches(a, b)
}

// Reaches returns journal.ErrHistory if an archive ends before a base or is that of another log.
func Reaches(a *archive.Archive, b record.Base) error {
	end := End(a)
	if end == nil {
		return fmt.Errorf("%w: the archive of %s/%d is empty", journal.ErrHistory, b.Journal, b.Partition)
	}
	for _, s := range a.Sealed() {
		if why := s.Base.Contradicts(b); s.Base.Sequence == b.Sequence && why != "" {
			return fmt.Errorf("%w: the manifest %s contradicts the base of the log: %s", journal.ErrHistory, s.Key, why)
		}
	}
	if end.JournalID != b.JournalID {
		return fmt.Errorf("%w: the archive is of the journal %v, and the log of %v", journal.ErrHistory, end.JournalID, b.JournalID)
	}
	if end.Sequence < b.Sequence {
		return fmt.Errorf("%w: the archive of %s/%d ends before record %d, and the log begins at record %d", journal.ErrHistory, b.Journal, b.Partition, end.Sequence, b.Sequence)
	}
	return nil
}

// End returns the base of a log that continues after an archive with its tail, or nil if the archive is empty.
func End(a *archive.Archive) *record.Base {
	if t := a.Tail(); t != nil {
		return &t.Base
	}
	return a.Base()
}
