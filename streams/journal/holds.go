package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Known is a source of positions outside of the log: a projection's checkpoints, its anchors, the snapshots, the
// witnesses.
type Known interface {
	// Positions returns the known positions of a partition, or none.
	Positions(ctx context.Context, journal string, partition int32) ([]record.Position, error)
}

// Holds returns nil if a partition's log holds the positions, at any offset, and otherwise a *record.DivergedError that
// names a missing one. It retries until the brokers answer.
func (c *Client) Holds(ctx context.Context, rules decide.Rules, partition int32, positions ...record.Position) error {
	k := c.lookup(rules, partition, positions...)
	for attempt := 0; ; attempt++ {
		err := k.try(ctx)
		if err == nil || record.Final(err) {
			return err
		}
		if paused := pause(ctx, attempt); paused != nil {
			return paused
		}
	}
}

// HoldsKnown checks that a partition's log holds every known position, as an owner does before it takes a term. A
// process that only reads the log, but derives data that an owner trusts, calls it first. The error is a
// *record.DivergedError for a position that the log does not hold, names the sources that could not be asked, or is the
// context's. HoldsKnown also returns if the log has lost its end.
func (c *Client) HoldsKnown(ctx context.Context, rules decide.Rules, partition int32, known ...Known) error {
	var all []record.Position
	var silent error
	for _, k := range known {
		positions, err := k.Positions(ctx, rules.Journal(), partition)
		if err != nil {
			silent = errors.Join(silent, err)
		}
		all = append(all, positions...)
	}
	if err := c.Holds(ctx, rules, partition, all...); err != nil {
		return err
	}
	if silent != nil {
		return fmt.Errorf("journal: what knows positions of %s/%d: %w", rules.Journal(), partition, silent)
	}
	return nil
}

// certain is how many times in a row the brokers must give the bounds of the log before a missing position is believed
// to be missing. A broker that has lost the partition and has not noticed yet answers with an obsolete end.
const certain = 4

// lookup finds the offsets of positions in a log.
type lookup struct {
	client    *Client
	rules     decide.Rules
	partition int32
	left      []record.Position     // not found yet
	at        map[record.Hash]int64 // the offsets of the positions found
	doubts    int                   // how many times in a row some were not found
}

func (c *Client) lookup(rules decide.Rules, partition int32, positions ...record.Position) *lookup {
	k := &lookup{client: c, rules: rules, partition: partition, at: make(map[record.Hash]int64)}
	for _, p := range positions {
		if !p.IsBefore() {
			k.left = append(k.left, p)
		}
	}
	slices.SortFunc(k.left, func(p, q record.Position) int { return cmp.Compare(p.Sequence, q.Sequence) })
	k.left = slices.CompactFunc(k.left, record.Position.Equal)
	return k
}

// try searches for the positions that are left. It returns a *record.DivergedError when it is certain that the log does
// not hold one of them. After an error that is not final, call it again.
func (k *lookup) try(ctx context.Context) error {
	if len(k.left) == 0 {
		return nil
	}
	name := k.rules.Journal()
	start, end, err := k.client.bounds(ctx, name, k.partition)
	if err != nil {
		return err
	}
	l, err := k.client.locator(ctx, name, k.partition)
	if err != nil {
		return err
	}
	var missing []record.Position
	for i, p := range k.left {
		offset, found, err := l.search(ctx, p, end)
		if err != nil {
			k.left = append(missing, k.left[i:]...)
			return err
		}
		if !found {
			missing = append(missing, p)
			continue
		}
		k.at[p.Hash] = offset
	}
	if k.left = missing; len(missing) == 0 {
		return nil
	}
	if k.doubts++; k.doubts < certain {
		return fmt.Errorf("journal: asking again, since %s/%d does not show %v between the offsets %d and %d", name, k.partition, missing[0], start, end)
	}
	return k.scan(ctx, start, end)
}

var errFound = errors.New("all positions are found")

// scan follows the chain from genesis to a record that contradicts one of the positions left, or to the end of the log.
// That is slow, but only a scan proves that a position is missing: a search may have met records that readers skip.
func (k *lookup) scan(ctx context.Context, start, end int64) error {
	if start > 0 {
		return k.diverged(k.left[0], record.Position{Offset: start, Sequence: -1}, fmt.Sprintf("the log begins at offset %d", start))
	}
	if last := k.left[len(k.left)-1]; last.Sequence >= end { // no record lies before the offset that is its sequence
		return k.diverged(last, record.Position{Offset: end - 1, Sequence: -1}, fmt.Sprintf("the log ends at offset %d", end))
	}
	r := NewReader(k.client, k.rules, k.partition, record.Before)
	defer r.Close()
	r.chain.DecodeFrom(math.MaxInt64)
	err := r.to(ctx, end, func(entries []record.Entry) error {
		for _, e := range entries {
			for k.left[0].Sequence == e.Position.Sequence {
				if !k.left[0].Equal(e.Position) {
					return k.diverged(k.left[0], e.Position, "another record has its sequence")
				}
				k.at[e.Position.Hash] = e.Position.Offset
				if k.left = k.left[1:]; len(k.left) == 0 {
					return errFound
				}
			}
		}
		return nil
	})
	switch {
	case errors.Is(err, errFound):
		return nil
	case err != nil:
		return err
	}
	return k.diverged(k.left[0], r.Position(), fmt.Sprintf("the log ends at offset %d", r.next))
}

func (k *lookup) diverged(have, found record.Position, reason string) error {
	return &record.DivergedError{Journal: k.rules.Journal(), Partition: k.partition, Have: have, Found: found, Reason: reason}
}
