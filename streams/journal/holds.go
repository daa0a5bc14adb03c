package journal

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
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

// OffsetOf returns the offset of the record of a position in the topic, which is not the hint of the position if the log was
// copied or restored. Its errors are those of Holds. Of a record that lies only in the archive it returns the hint.
func (c *Client) OffsetOf(ctx context.Context, rules decide.Rules, partition int32, p record.Position) (int64, error) {
	k := c.lookup(rules, partition, p)
	for attempt := 0; ; attempt++ {
		err := k.try(ctx)
		if err == nil || record.Final(err) {
			return k.at[p.Hash], err
		}
		if paused := pause(ctx, attempt); paused != nil {
			return 0, paused
		}
	}
}

// HoldsKnown checks that a partition's log holds every known position, as an owner does before it takes a term. A
// process that only reads the log, but derives data that an owner trusts, calls it first. The error is a
// *record.DivergedError for a position that the log does not hold, names the sources that could not be asked, or is the
// context's. HoldsKnown also returns if the log has lost its end.
func (c *Client) HoldsKnown(ctx context.Context, rules decide.Rules, partition int32, known ...Known) error {
	answers, errs := make([][]record.Position, len(known)), make([]error, len(known))
	var asked sync.WaitGroup
	for i, k := range known {
		asked.Go(func() { answers[i], errs[i] = c.positions(ctx, k, rules.Journal(), partition) })
	}
	asked.Wait()
	if err := c.Holds(ctx, rules, partition, slices.Concat(answers...)...); err != nil {
		return err
	}
	if silent := errors.Join(errs...); silent != nil {
		return fmt.Errorf("journal: what knows positions of %s/%d: %w", rules.Journal(), partition, silent)
	}
	return nil
}

// HoldsNewest is HoldsKnown for the newest position of each source alone, which vouches for the earlier ones. So it takes the same
// time for a long log. A source that does not answer within five seconds counts as one that could not be asked.
func (c *Client) HoldsNewest(ctx context.Context, rules decide.Rules, partition int32, known ...Known) error {
	newest := make([]Known, len(known))
	for i, k := range known {
		newest[i] = newestOf{k}
	}
	return c.HoldsKnown(ctx, rules, partition, newest...)
}

// newestOf reduces a source to its newest position.
type newestOf struct{ Known }

// Positions returns the newest position, or none.
func (n newestOf) Positions(ctx context.Context, journal string, partition int32) ([]record.Position, error) {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	all, err := n.Known.Positions(ctx, journal, partition)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return []record.Position{newestIn(all)}, nil
}

// newestIn returns the newest of some positions.
func newestIn(all []record.Position) record.Position {
	return slices.MaxFunc(all, func(a, b record.Position) int { return cmp.Compare(a.Sequence, b.Sequence) })
}

// positions returns the positions of a source that a caller must compare with the log. In a trimmed log, those before the base
// that the topic may not hold any more are left out, except for the newest position of the source.
//
// That newest position vouches for them. Within a source, a later position extends the earlier ones: the rows move from one
// position to the next, and the owners have compared each snapshot and witness with the log while the log held it. The log before the base was complete when it was trimmed, and the record of the base names its last hash. So
// a log that holds the newest position and the base can't contradict an earlier position without contradicting one of the
// two. If a source ends before the base, its newest position is looked for in the archive, and vouches for the others there.
func (c *Client) positions(ctx context.Context, k Known, journal string, partition int32) ([]record.Position, error) {
	all, err := k.Positions(ctx, journal, partition)
	if err != nil {
		return nil, err
	}
	return c.Unvouched(ctx, journal, partition, all)
}

// Unvouched returns the positions of one source without those before the base for which the source's newest position vouches.
func (c *Client) Unvouched(ctx context.Context, journal string, partition int32, all []record.Position) ([]record.Position, error) {
	p := submit.Shard{Journal: journal, Partition: partition}
	k := c.bases.of(p)
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.ask(ctx, c, p, false); err != nil {
		return nil, err
	}
	b := k.found.Base
	if b == nil || len(all) == 0 {
		return all, nil
	}
	last := newestIn(all).Sequence
	return slices.DeleteFunc(slices.Clone(all), func(p record.Position) bool { return p.Sequence < min(b.Sequence-1, last) }), nil
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
	locator   *locator              // of the last attempt
	based     bool                  // one is that before the base, and its record is not in the log
	topic     bool                  // the positions must be in the topic itself, and not only in the history
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
	s, err := k.client.span(ctx, k.rules.Journal(), k.partition)
	if err != nil {
		return err
	}
	return k.tryIn(ctx, s)
}

// tryIn is try for a caller that has just asked where the log begins and ends.
func (k *lookup) tryIn(ctx context.Context, span span) error {
	name := k.rules.Journal()
	l, err := k.client.locator(ctx, name, k.partition)
	if err != nil {
		return err
	}
	k.locator = l
	var missing []record.Position
	doubtful := false
	for i, p := range k.left {
		var offset int64
		found, deleted := false, span.deleted(p.Sequence)
		if !deleted { // a search takes some twenty fetches
			offset, found, err = l.search(ctx, p, span.floor(p.Sequence), span.end)
		}
		switch {
		case err != nil:
			k.left = append(missing, k.left[i:]...)
			return err
		case found && offset <= span.ceiling(p.Sequence):
			k.at[p.Hash] = offset
		case span.base != nil && p.Equal(span.base.Before()): // the log holds a record that names its hash
			k.at[p.Hash], k.based = span.first-1, true
		default:
			missing = append(missing, p)
			doubtful = doubtful || !deleted
		}
	}
	if k.left = missing; len(missing) == 0 {
		return nil
	}
	if k.doubts++; doubtful && k.doubts < certain {
		return fmt.Errorf("journal: asking again, since %s/%d does not show %v between the offsets %d and %d", name, k.partition, missing[0], span.start, span.end)
	}
	return k.scan(ctx, span)
}

var errFound = errors.New("all positions are found")

// scan follows the chain from genesis or the base to a record that contradicts one of the positions left, or to the end of
// the log. That is slow, but only a scan proves that a position is missing: a search may have met records that readers skip.
func (k *lookup) scan(ctx context.Context, s span) error {
	from, end := record.Before, s.end
	if s.base != nil && !s.whole {
		from = s.base.Before()
		if err := k.scanBelow(ctx, s); err != nil || len(k.left) == 0 {
			return err
		}
	}
	if last := k.left[len(k.left)-1]; s.floor(last.Sequence) >= end {
		return k.diverged(last, record.Position{Offset: end - 1, Sequence: -1}, fmt.Sprintf("the log ends at offset %d", end))
	}
	r := NewReader(k.client, k.rules, k.partition, from)
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

// scanBelow looks for the positions left before the base among the records that the topic still holds there. No chain leads
// to them, but a record with the hash of a position is that position's. It looks for the others in the history.
func (k *lookup) scanBelow(ctx context.Context, s span) error {
	n := len(k.left)
	for n > 0 && k.left[n-1].Sequence >= s.base.Sequence {
		n--
	}
	below := make(map[record.Hash]record.Position)
	for _, p := range k.left[:n] {
		if p.Sequence == s.base.Sequence-1 {
			return k.diverged(p, s.base.Before(), "the base has another hash for its sequence")
		}
		below[p.Hash] = p
	}
	if n == 0 {
		return nil
	}
	l, err := k.client.locator(ctx, s.base.Journal, k.partition)
	if err != nil {
		return err
	}
	err = l.each(ctx, s.start, s.first, func(r *kgo.Record) bool {
		if hash := record.Hash(sha256.Sum256(r.Value)); below[hash].Hash == hash {
			k.at[hash] = r.Offset
			delete(below, hash)
		}
		return len(below) > 0
	})
	if err != nil {
		return err
	}
	for _, p := range k.left[:n] {
		if _, missing := below[p.Hash]; !missing {
			continue
		}
		if k.topic || k.client.cfg.History == nil {
			return s.trimmed(p)
		}
		if err := k.client.heldInPast(ctx, *s.base, p); err != nil {
			return err
		}
		k.at[p.Hash] = p.Offset
	}
	k.left = k.left[n:]
	return nil
}

func (k *lookup) diverged(have, found record.Position, reason string) error {
	return &record.DivergedError{Journal: k.rules.Journal(), Partition: k.partition, Have: have, Found: found, Reason: reason}
}
