package journal

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// askFor is the timeout for asking one source of known positions.
const askFor = 5 * time.Second

// known collects the known positions of the partition from all sources. silent are the sources that did not answer.
func (o *Owner) known(ctx context.Context) (positions []record.Position, silent []Known) {
	if !o.acknowledged.IsBefore() {
		positions = append(positions, o.acknowledged)
	}
	for _, k := range o.cfg.Known {
		more, err := o.positions(ctx, k)
		if err != nil {
			o.log.Warn("asking for known positions of the journal", "error", err)
			silent = append(silent, k)
			continue
		}
		positions = append(positions, more...)
	}
	return positions, silent
}

func (o *Owner) positions(ctx context.Context, k Known) ([]record.Position, error) {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	return k.Positions(ctx, o.journal, o.cfg.Partition)
}

// vouched returns the known positions of a log that is not empty. It waits until one of these confirms the log: a
// source that knows a position, which replay then compares with the log; the answers of all sources that none is known;
// or OwnerConfig.Vouched. Without confirmation the log may have lost its end. A taken record on top of the rest would
// hide that, and the acknowledged records would be lost for good. So vouched waits for sources that do not answer, as
// appendGenesis does.
func (o *Owner) vouched(ctx context.Context) (known []record.Position, silent []Known, err error) {
	for attempt := 0; ; attempt++ {
		known, silent = o.known(ctx)
		if len(silent) == 0 || o.cfg.Vouched != nil && o.cfg.Vouched() ||
			slices.ContainsFunc(known, func(p record.Position) bool { return !p.IsBefore() }) {
			return known, silent, nil
		}
		if attempt == 0 {
			o.alarm("unvouched", "no term is taken: nothing that answers knows a position of the log to hold it against", "silent", len(silent))
		}
		if err := pause(ctx, attempt); err != nil {
			return nil, nil, err
		}
	}
}

// appendGenesis appends a genesis to an empty partition, unless a source knows a position of the journal: then the log
// was lost, and a second genesis would hide that. It waits for sources that do not answer.
func (o *Owner) appendGenesis(ctx context.Context) error {
	known, silent := o.known(ctx)
	for attempt := 0; len(silent) > 0; attempt++ {
		if err := pause(ctx, attempt); err != nil {
			return err
		}
		if end, err := o.cfg.Client.Tip(ctx, o.journal, o.cfg.Partition); err != nil || end > 0 {
			return err // another node got its answers sooner and was first
		}
		known, silent = o.known(ctx)
	}
	for _, p := range known {
		if !p.IsBefore() {
			return o.diverged(p, record.Before, "the log is empty")
		}
	}
	start, end, err := o.cfg.Client.bounds(ctx, o.journal, o.cfg.Partition)
	if err != nil {
		return err
	}
	if start != 0 || end != 0 {
		return nil // another node was first
	}
	w, err := o.cfg.Client.writer()
	if err != nil {
		return err
	}
	defer w.Close()
	now := o.clock.now().time
	id := newJournalID()
	r := &record.Record{Time: now, Outcome: decide.Accepted,
		Command: decide.Recorded{ID: record.NewCommandID(now.Std()), Type: record.TypeGenesis, Actor: decide.Engine},
		Events: []decide.Event{&record.Genesis{Journal: o.journal, JournalID: id, Partition: o.cfg.Partition,
			Partitions: o.cfg.Partitions}}}
	value, err := record.Encode(nil, r)
	if err != nil {
		return err
	}
	appended := make(chan error, 1)
	w.Produce(context.Background(), o.kafkaRecord(id, r, value), func(_ *kgo.Record, err error) { appended <- err })
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-appended:
		if err != nil {
			return fmt.Errorf("journal: appending the genesis: %w", err)
		}
	}
	o.log.Info("founded a journal", "journal_id", id)
	return nil
}

// newJournalID returns a random UUID of version 4.
func newJournalID() scalar.ID {
	var id scalar.ID
	_, _ = rand.Read(id[:])
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return id
}
