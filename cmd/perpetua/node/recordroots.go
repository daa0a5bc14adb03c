package node

import (
	"context"
	"fmt"
	"io/fs"

	"github.com/perpetua-exchange/perpetua/handlers/web/asof"
	"github.com/perpetua-exchange/perpetua/streams/commitment"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// treeLogs are the transparency logs of a node, one for each journal.
type treeLogs []*transparencyLog

var _ asof.Roots = treeLogs(nil)

// of returns the log of a journal partition, or fs.ErrNotExist if there is no such partition.
func (all treeLogs) of(name string, partition int32) (*transparencyLog, error) {
	for _, l := range all {
		if l.Name() == name && partition == 0 {
			return l, nil
		}
	}
	return nil, fmt.Errorf("%s/%d is no journal: %w", name, partition, fs.ErrNotExist)
}

// Has implements asof.Roots. Another node may sign the log.
func (all treeLogs) Has(ctx context.Context, of record.LogPosition, root commitment.Hash) (bool, error) {
	l, err := all.of(of.Journal, of.Partition)
	if err != nil {
		return false, err
	}
	reader, _, err := l.published(ctx)
	if err != nil {
		return false, err
	}
	return reader.Has(ctx, of.Sequence, root)
}
