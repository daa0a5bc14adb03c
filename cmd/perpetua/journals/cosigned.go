package journals

import (
	"context"

	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/streams/transparency"
)

// cosigned is a trim.Cosigned. It reads the cosigned checkpoint from Postgres and verifies it under the policy of the venue's witnesses.
// A log that no witness cosigns, such as one that the policy does not name, has none.
func (t Trimming) cosigned(ctx context.Context, journal string, partition int32, quorum int) (int64, error) {
	id, founded, err := t.Client.JournalID(ctx, journal)
	if err != nil || !founded {
		return 0, err
	}
	origin := transparency.Origin{Host: t.TLogHost, Journal: journal, Partition: partition, ID: id}
	c, err := projections.CosignedTrees{Pool: t.Rows}.Cosigned(ctx, origin)
	if err != nil {
		return 0, err
	}
	return t.Witnesses.Covers(origin, c, quorum)
}
