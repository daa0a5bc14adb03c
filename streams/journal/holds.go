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

// Known is something outside of the log that remembers positions of it: a projection's checkpoints, its anchors, the
// snapshots, the witnesses.
type Known interface {
	// Positions returns the positions known of a partition, none if nothing is known.
	Positions(ctx context.Context, journal string, partition int32) ([]record.Position, error)
}

// Holds returns nil if a partition's log holds the positions, wherever they were last seen, and a *record.DivergedError that names
// one which it does not hold. It tries until the brokers answer.
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

// HoldsKnown holds a partition's log against every position that is known of it, as an owner does before it takes a term:
// who reads the log only, and would make something of it that an owner trusts, calls it first. Its error is a
// *record.DivergedError for a position that the log does not hold, or says who could not be asked, or is the context's. It ends
// also where the log has lost its end.
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

// certain is how often in a row the brokers must say where the log lies before it is believed that a position is not in
// it: one that has lost the partition, and does not know it yet, answers with an end that is long past.
const certain = 4

// lookup finds where a log holds positions.
type lookup struct {
	client    *Client
	rules     decide.Rules
	partition int32
	left      []record.Position     // to be found
	at        map[record.Hash]int64 // the offsets of those that were
	doubts    int                   // how often in a row some were not found
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

// try looks for the positions that are left. It returns a *record.DivergedError once it is certain that the log does not hold one
// of them, and an error that is not final if it is to be called again.
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

// scan follows the chain from genesis to where it says what the log holds instead of the positions that are left. That
// takes its time, and nothing less would prove that they are not there: any record may be one to skip.
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
