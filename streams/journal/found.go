package journal

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/domain/decide"
)

// askFor is how long whatever knows positions may take to answer.
const askFor = 5 * time.Second

// known gathers the positions that anything knows of the partition. complete says that everything answered.
func (o *Owner) known(ctx context.Context) (positions []Position, complete bool) {
	complete = true
	if !o.settled.IsBefore() {
		positions = append(positions, o.settled)
	}
	for _, k := range o.cfg.Known {
		ask, cancel := context.WithTimeout(ctx, askFor)
		more, err := k.Positions(ask, o.journal, o.cfg.Partition)
		cancel()
		if err != nil {
			o.log.Warn("asking for known positions of the journal", "error", err)
			complete = false
			continue
		}
		positions = append(positions, more...)
	}
	return positions, complete
}

// found appends a genesis to an empty partition, provided that nothing knows of a journal there: else the log was
// lost, and founding another would hide it. What could know of one and doesn't answer is waited for.
func (o *Owner) found(ctx context.Context, known []Position, complete bool) error {
	for attempt := 0; !complete; attempt++ {
		if err := pause(ctx, attempt); err != nil {
			return err
		}
		if end, err := o.cfg.Client.Tip(ctx, o.journal, o.cfg.Partition); err != nil || end > 0 {
			return err // another node knew more and was first
		}
		known, complete = o.known(ctx)
	}
	for _, p := range known {
		if !p.IsBefore() {
			return o.diverged(p, Before, "the log is empty")
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
	r := &Record{Time: now, Outcome: decide.Accepted,
		Command: decide.Recorded{ID: NewCommandID(now.Std()), Type: TypeGenesis, Actor: decide.Engine},
		Events: []decide.Event{&Genesis{Journal: o.journal, JournalID: id, Partition: o.cfg.Partition,
			Partitions: o.cfg.Partitions}}}
	value, err := AppendRecord(nil, r)
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
