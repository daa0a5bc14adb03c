package wholelog

import (
	"context"

	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

var _ journal.Bases = Archives{}

// Bases implements journal.Bases: a log is only trimmed at the end of a full range.
func (h Archives) Bases(ctx context.Context, name string, partition int32) (all []record.Base, err error) {
	a, err := h.open(ctx, name, partition)
	if err != nil {
		return nil, err
	}
	for _, s := range a.Sealed() {
		all = append(all, s.Base)
	}
	return all, nil
}
