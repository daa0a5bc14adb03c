package wholelog

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"

	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/transfer"
)

// Extend appends the records of the archive after a position with which a run of Restore or an earlier Extend ended. It reads
// nothing before that position. It returns the position of the archive's last valid record, and a *ConflictError if the archive
// does not lead there from the position: then the topic may have got records, all of which readers skip. With any other error, the
// topic holds the archive up to end, or an unknown part of it if end is record.Before: then Run compares them.
func (r Restore) Extend(ctx context.Context, from record.Position) (end record.Position, err error) {
	if err := r.Archive.TailDamage(); err != nil {
		return from, err
	}
	want := End(r.Archive)
	switch {
	case want == nil || want.Sequence <= from.Sequence:
		return from, fmt.Errorf("the archive of %s no longer holds record %d", r.Rules.Journal(), from.Sequence)
	case want.Sequence == from.Sequence+1 && want.Prev != from.Hash:
		return from, &ConflictError{Journal: r.Rules.Journal(), Sequence: from.Sequence, Reason: "the archive ends with another record"}
	case want.Sequence == from.Sequence+1:
		return from, nil
	}
	name := r.Rules.Journal()
	_, topicEnd, err := r.Client.Bounds(ctx, name, 0)
	if err != nil {
		return from, err
	}
	to, err := transfer.AppendAt(r.Client, name, "the topic", topicEnd)
	if err != nil {
		return from, err
	}
	end = from
	for message, err := range r.Archive.Records(ctx, r.Client.Topic(name), from.Sequence+1, math.MaxInt64) {
		if err == nil {
			err = to.Append(ctx, message)
		}
		if err != nil {
			return record.Before, errors.Join(err, to.Close(ctx))
		}
		if prev, sequence, ok := record.PrevOf(message.Value); ok && prev == end.Hash && sequence == end.Sequence+1 {
			end = record.Position{Offset: message.Offset, Sequence: sequence, Hash: sha256.Sum256(message.Value)}
		}
	}
	if err := to.Close(ctx); err != nil {
		return record.Before, err
	}
	if end.Sequence != want.Sequence-1 || end.Hash != want.Prev {
		return from, &ConflictError{Journal: name, Sequence: end.Sequence + 1, Appended: to.Sent(),
			Reason: "the archive does not lead from the record before to its last manifest"}
	}
	return end, nil
}
