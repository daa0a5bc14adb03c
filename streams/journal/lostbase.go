package journal

import (
	"context"
	"errors"
	"fmt"

	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// Bases is a History that can tell where a log may have been trimmed.
type Bases interface {
	// Bases returns every base at which the log may begin, by sequence. Its errors are those of History.Records.
	Bases(ctx context.Context, journal string, partition int32) ([]record.Base, error)
}

// find looks for a base that every source has lost, in the history. It takes the lowest one whose record the topic holds: the record
// names the hash of the one before it, as the base does. So a trimmed log is found again, and never a new one begun. The error is
// final if the history does not have the base. The caller holds the lock.
func (k *known) find(ctx context.Context, c *Client, p submit.Shard, s *span) error {
	lost := func(why string) error {
		return &record.BaseError{Journal: p.Journal, Partition: p.Partition, Reason: fmt.Sprintf(
			"the log begins at offset %d, and its base is lost: %s%s", s.start, k.asks(c), why)}
	}
	h, ok := c.cfg.History.(Bases)
	if !ok {
		return lost("")
	}
	all, err := h.Bases(ctx, p.Journal, p.Partition)
	switch {
	case errors.Is(err, ErrHistory):
		return lost(", and none in the archive: " + err.Error())
	case err != nil:
		return fmt.Errorf("journal: %s/%d begins at offset %d, its base is lost, and the archive that may have it does not answer: %w",
			p.Journal, p.Partition, s.start, err)
	}
	l, err := c.locator(ctx, p.Journal, p.Partition)
	if err != nil {
		return err
	}
	begins, err := l.beginning(ctx, s.start, s.end)
	if err != nil {
		return err
	}
	if begins.Record == nil {
		return lost(", and the topic begins with no record")
	}
	lowest, _ := record.SequenceOf(begins.Value)
	for _, b := range all {
		if b.Sequence < lowest { // the topic does not hold its record, and looking for that would read all of it
			continue
		}
		first, err := l.firstAfter(ctx, b.Before(), s.start, s.end)
		if err != nil {
			return err
		}
		if first != nil {
			k.found.Base, k.found.Source, k.first = &b, "the archive", -1
			return nil
		}
	}
	return lost(", and the topic continues no range of the archive")
}
