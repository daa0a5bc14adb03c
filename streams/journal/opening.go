package journal

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/term"
)

// open replays the journal to its end and has a term record appended. It returns when that is valid.
func (o *Owner) open(ctx context.Context, t *termIO) error {
	clocks := make(chan term.ReferenceClock, 1)
	t.reads.Go(func() { clocks <- o.askClock(ctx) }) // concurrent with the replay
	reference := sync.OnceValue(func() term.ReferenceClock { return <-clocks })
	if err := o.ensureGenesis(ctx, reference); err != nil {
		return err
	}
	known, silent, err := o.knownPositions(ctx)
	if err != nil {
		return err
	}
	// Read the end after the known positions: the process that stored a position had read the log up to it, so the log
	// reaches at least that far now, or has lost its end.
	end, err := o.cfg.Client.Tip(ctx, o.journal, o.cfg.Partition)
	if err != nil {
		return err
	}
	if err := o.replay(ctx, t, end, known); err != nil {
		return err
	}
	if _, err := o.step(term.SetClock{Reference: reference()}); err != nil {
		return err
	}
	t.follow(silent)
	if _, err := o.step(term.Take{}); err != nil {
		return err
	}
	return o.awaitTermRecord(ctx, t)
}

// replay replays the journal up to an end offset and checks that it holds every known position.
func (o *Owner) replay(ctx context.Context, t *termIO, end int64, known []record.Position) error {
	seed, err := o.startReplay(ctx, t)
	if err != nil {
		return err
	}
	plan, err := o.step(term.Begin{Seed: seed, Known: known, End: end})
	if err != nil {
		return err
	}
	if plan.Scan != nil {
		if err := o.scanSeedPrefix(ctx, *plan.Scan); err != nil {
			return err
		}
	}
	if err := o.cfg.Client.Holds(ctx, o.cfg.Rules, o.cfg.Partition, plan.Hold...); err != nil {
		return err
	}
	err = t.reader.to(ctx, end, func(entries []record.Entry) error {
		_, err := o.step(term.Replayed{Entries: entries})
		return err
	})
	if err != nil {
		return err
	}
	_, err = o.step(term.ReplayEnded{})
	var short *term.ShortReplayError
	if errors.As(err, &short) {
		// Either the log has lost its end, or a broker that has just lost the partition reported an older end: check again.
		if err := o.cfg.Client.Holds(ctx, o.cfg.Rules, o.cfg.Partition, short.Missing...); err != nil {
			return err
		}
	}
	return err
}

// startReplay makes the reader of the replay, and returns the seed at which it starts; nil for the genesis.
func (o *Owner) startReplay(ctx context.Context, t *termIO) (*record.Seed, error) {
	var loaded *record.Seed
	if o.cfg.Seed != nil {
		var err error
		if loaded, err = o.cfg.Seed(ctx); err != nil {
			return nil, fmt.Errorf("journal: loading a snapshot: %w", err)
		}
	}
	from := record.Before
	if loaded != nil {
		from = loaded.Position
	}
	t.reader = NewReader(o.cfg.Client, o.cfg.Rules, o.cfg.Partition, from)
	if from.IsBefore() {
		begins, lacks, err := o.cfg.Client.Beginning(ctx, o.journal, o.cfg.Partition)
		if err == nil && !begins.IsBefore() { // not final: the snapshots may only be away
			err = fmt.Errorf("journal: the log begins at record %d, no snapshot at or after record %d can be loaded, and the records before are not at hand: %w",
				begins.Sequence+1, begins.Sequence, lacks)
		}
		return nil, err
	}
	t.reader.chain.SetTerm(loaded.Term)
	// Verify the seed's position first. If the log does not hold it, nothing after it would ever arrive. And if no
	// records follow the seed, the replay would not verify it, nor identify the log.
	if err := t.reader.holds(ctx); err != nil {
		return nil, err
	}
	seed := *loaded
	seed.Position, seed.Journal = t.reader.Position(), t.reader.chain.ID()
	return &seed, nil
}

// scanSeedPrefix reads the records that the snapshot already covers. A carried request may have been recorded there, and so
// may another node's term.
func (o *Owner) scanSeedPrefix(ctx context.Context, s term.Scan) error {
	r := NewReader(o.cfg.Client, o.cfg.Rules, o.cfg.Partition, s.From)
	// Neither is in records that were trimmed: a trim leaves two days, and a request is carried for seconds.
	r.OrBase(s.Through + 1)
	defer r.Close()
	err := r.to(ctx, s.To, func(entries []record.Entry) error {
		_, err := o.step(term.Scanned{Entries: entries})
		return err
	})
	if err == nil && r.Position().Sequence < s.Through {
		err = fmt.Errorf("journal: the log ended at %v, before record %d, which it held", r.Position(), s.Through)
	}
	return err
}

// awaitTermRecord reads until the machine has found its term record valid.
func (o *Owner) awaitTermRecord(ctx context.Context, t *termIO) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for o.phase() == term.Taking {
		var in term.Input
		var ended error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.acks.ready:
			in = t.acknowledged()
		case b := <-t.tail:
			in, ended = term.Read{Entries: b.entries, Next: b.next}, b.err
		case <-timer.C:
			in = term.Tick{}
		}
		if ended != nil {
			return ended
		}
		plan, err := o.step(in)
		if err != nil {
			return err
		}
		timer.Reset(plan.WakeAt - o.clock.Elapsed())
	}
	return nil
}
