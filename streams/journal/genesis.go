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
	"github.com/perpetua-exchange/perpetua/streams/term"
)

// ensureGenesis appends the genesis record if the partition is empty. It returns an error if the clock is off: the genesis
// has the log's first time, and no later record may have an earlier one.
func (o *Owner) ensureGenesis(ctx context.Context, reference func() term.ReferenceClock) error {
	end, err := o.cfg.Client.Tip(ctx, o.journal, o.cfg.Partition)
	if err != nil || end > 0 {
		return err
	}
	if err := o.checkClock(0, reference()); err != nil {
		return err
	}
	return o.foundJournal(ctx)
}

// askFor is the timeout for asking one source of known positions.
const askFor = 5 * time.Second

// askKnown collects the known positions of the partition from all sources. silent are the sources that did not answer.
func (o *Owner) askKnown(ctx context.Context) (positions []record.Position, silent []Known) {
	o.mu.Lock()
	acknowledged := o.machine.Acknowledged()
	o.mu.Unlock()
	if !acknowledged.IsBefore() {
		positions = append(positions, acknowledged)
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
	return o.cfg.Client.positions(ctx, k, o.journal, o.cfg.Partition)
}

// knownPositions returns the known positions of a log that is not empty. It waits until one of these confirms the log: a
// source that knows a position, which replay then compares with the log; the answers of all sources that none is known;
// or OwnerConfig.LogVerified. Without confirmation the log may have lost its end. A taken record on top of the rest would
// hide that, and the acknowledged records would be lost for good. So knownPositions waits for sources that do not answer, as
// foundJournal does.
func (o *Owner) knownPositions(ctx context.Context) (known []record.Position, silent []Known, err error) {
	for attempt := 0; ; attempt++ {
		known, silent = o.askKnown(ctx)
		if len(silent) == 0 || o.cfg.LogVerified != nil && o.cfg.LogVerified() ||
			slices.ContainsFunc(known, func(p record.Position) bool { return !p.IsBefore() }) {
			// The base does not confirm the log: a log that has lost its end still begins at the same record.
			b, _, err := o.cfg.Client.Base(ctx, o.journal, o.cfg.Partition)
			if b != nil {
				known = append(known, b.Before())
			}
			return known, silent, err
		}
		if attempt == 0 {
			o.alarm("unvouched", "no term is taken: nothing that answers knows a position of the log to hold it against", "silent", len(silent))
		}
		if err := pause(ctx, attempt); err != nil {
			return nil, nil, err
		}
	}
}

// foundJournal appends a genesis to an empty partition, unless a source knows a position of the journal: then the log
// was lost, and a second genesis would hide that. So it does for a journal with a base. It waits for sources that do not
// answer.
func (o *Owner) foundJournal(ctx context.Context) error {
	known, silent := o.askKnown(ctx)
	b, silentBase, err := o.cfg.Client.Base(ctx, o.journal, o.cfg.Partition)
	for attempt := 0; len(silent) > 0 || silentBase != nil; attempt++ {
		if silentBase != nil {
			o.log.Warn("asking for the base of the journal", "error", silentBase)
		}
		if err := pause(ctx, attempt); err != nil {
			return err
		}
		if end, err := o.cfg.Client.Tip(ctx, o.journal, o.cfg.Partition); err != nil || end > 0 {
			return err // another node got its answers sooner and was first
		}
		known, silent = o.askKnown(ctx)
		b, silentBase, err = o.cfg.Client.Base(ctx, o.journal, o.cfg.Partition)
	}
	if err != nil {
		return err
	}
	if b != nil {
		known = append(known, b.Before())
	}
	for _, p := range known {
		if !p.IsBefore() {
			return &record.DivergedError{Journal: o.journal, Partition: o.cfg.Partition, Have: p, Found: record.Before, Reason: "the log is empty"}
		}
	}
	start, end, err := o.cfg.Client.Bounds(ctx, o.journal, o.cfg.Partition)
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
	now := o.time()
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
