// Package trim deletes the beginning of a log that an archive holds.
//
// A log is trimmed at the end of a full range of its archive, at the highest one that no limit forbids. Before that, the bucket must
// list the objects of all ranges, also of those deleted earlier, and every kept head must be one of the archive. Then every record
// that will be deleted is read back from the archive and compared with the topic's, byte for byte, and every copy of the new base
// is made durable. An error leaves the log unchanged, or trimmed at a base whose copies are durable. So Run may be repeated, and
// several processes may call it.
//
// Start with Run. limits.go has the reasons for which a log is not trimmed further, verify.go the comparison.
package trim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/archive"
	"github.com/perpetua-exchange/perpetua/streams/base"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Config says what is trimmed, and how far.
type Config struct {
	Client  *journal.Client
	Rules   decide.Rules
	Archive archive.Config
	Trimmer base.Trimmer
	Keepers []base.Keeper // of the new base; there MUST be one at least
	Policy  Policy
	// Limits are asked in order for the first record that is still needed.
	Limits []Source
	// Known are the positions that the log must hold. One that it lacks is a *record.DivergedError, and nothing is trimmed. The
	// newest position of each source is not passed.
	Known []journal.Known
	// Heads are the stores with a copy of the archive's head. An archive without that head is not the one that the venue writes.
	Heads []archive.Heads
	Now   func() time.Time
	// OtherClock returns the time of another clock than Now. Nothing is trimmed while they differ by more than a minute. It may be nil.
	OtherClock func(context.Context) (time.Time, error)
	Brief      bool // ask no further limit once nothing can be trimmed
	Most       int  // number of ranges that one run trims at most; 0 sets no limit
	// Progress is called with the number of records compared so far. It may be nil.
	Progress func(records int64)
}

// Report says what was trimmed, and why no more.
type Report struct {
	Journal  string
	From, To int64   // the first record that the topic must hold, before and after; equal if nothing was trimmed
	Tip      int64   // sequence of the last record of the archive
	Compared int64   // valid records compared with the archive
	Start    int64   // lowest offset that is left in the topic; -1 if nothing was trimmed
	Limits   []Limit // all of them
	Why      []Limit // those that allow no later range
}

// Trimmed reports whether the base has moved, or would move without Policy.DryRun.
func (r Report) Trimmed() bool { return r.To > r.From }

// Run trims a log as far as the limits allow. It does nothing, and returns no error, if they allow nothing.
func Run(ctx context.Context, c Config) (Report, error) {
	name := c.Rules.Journal()
	r := Report{Journal: name, Start: -1, Tip: -1}
	failed := func(err error) (Report, error) { return r, fmt.Errorf("trim %s: %w", name, err) }
	if len(c.Keepers) == 0 {
		return failed(errors.New("no place is named for the copies of the base"))
	}
	extent, err := c.Client.Extent(ctx, name, 0)
	if err != nil {
		return failed(err)
	}
	if extent.Base != nil {
		r.From = extent.Base.Sequence
	}
	r.To = r.From
	a, err := archive.OpenRanges(ctx, c.Archive)
	if err != nil {
		return failed(err)
	}
	if err := belongs(a, extent.Base); err != nil {
		return failed(err)
	}
	if r.Limits, err = c.limits(ctx, a, r.From); err != nil {
		return failed(err)
	}
	ranges := candidates(a, r.From, r.Limits)
	if len(ranges) > 0 || !c.Brief {
		if err := c.present(ctx, a); err != nil {
			return failed(err)
		}
		if err := c.Client.HoldsKnown(ctx, c.Rules, 0, c.Known...); err != nil {
			return failed(err)
		}
	}
	if n := len(a.Sealed()); n > 0 {
		r.Tip = a.Sealed()[n-1].Base.Sequence - 1
	}
	v := &verification{client: c.Client, archive: a, extent: extent, name: name, progress: c.Progress}
	batch := ranges
	if c.Most > 0 && len(ranges) > c.Most {
		batch = ranges[:c.Most]
	}
	to, offset, err := v.run(ctx, batch)
	if err == nil && to == nil && len(batch) < len(ranges) { // none of them ends where a log may begin
		v.compared, v.stops = 0, nil
		to, offset, err = v.run(ctx, ranges)
	}
	if r.Compared = v.compared; err != nil {
		return failed(err)
	}
	r.Limits = append(r.Limits, v.stops...)
	if to != nil {
		r.To = to.Sequence
	}
	r.Why = binding(a, r.To, r.Limits)
	if to == nil || c.Policy.DryRun {
		return r, nil
	}
	for _, k := range c.Keepers {
		if err := k.Keep(ctx, *to); err != nil {
			return failed(fmt.Errorf("the base at record %d is not kept in %s: %w", to.Sequence, k, err))
		}
	}
	if r.Start, err = c.Client.Trim(ctx, c.Trimmer, *to, offset); err != nil {
		return failed(err)
	}
	return r, nil
}

// belongs returns an error if an archive is that of another log than one with the base b.
func belongs(a *archive.Archive, b *record.Base) error {
	if b == nil || a.Base() == nil {
		return nil
	}
	for _, s := range a.Sealed() {
		if s.Base.JournalID != b.JournalID {
			return &archive.Error{Key: s.Key, Sequence: s.First, Damage: archive.Foreign,
				Err: fmt.Errorf("it is of the journal %v, and the log of %v", s.Base.JournalID, b.JournalID)}
		}
		if why := s.Base.Contradicts(*b); s.Base.Sequence == b.Sequence && why != "" {
			return &archive.Error{Key: s.Key, Sequence: b.Sequence - 1, Damage: archive.Forked, Err: errors.New(why)}
		}
	}
	return nil
}

// present returns an error unless the bucket has the objects of all ranges, also of those that were trimmed before, and every kept
// head is one of the archive.
func (c Config) present(ctx context.Context, a *archive.Archive) error {
	for _, h := range c.Heads {
		if a.Continues(ctx, h) == nil {
			continue
		}
		// A node may have sealed a range and kept its head since the archive was opened.
		if _, err := archive.OpenContinuing(ctx, c.Archive, h); err != nil {
			return err
		}
	}
	return a.Objects(ctx)
}

// candidates returns the ranges that the limits allow to delete, in order.
func candidates(a *archive.Archive, from int64, limits []Limit) (all []archive.Sealed) {
	first := least(limits)
	for _, s := range a.Sealed() {
		if s.Base.Sequence > from && s.Base.Sequence <= first {
			all = append(all, s)
		}
	}
	return all
}

// Policy is how far an operator lets a log be trimmed.
type Policy struct {
	After  time.Duration // records of this age and younger ones stay
	Keep   int64         // number of the last archived records that stay
	Before time.Time     // records from then on stay; the zero time sets no limit
	Quorum int           // cosignatures that a checkpoint needs; 0 for none
	DryRun bool
}

// old returns the time before which records may be deleted.
func (p Policy) old(now time.Time) scalar.Time {
	at := now.Add(-p.After)
	if !p.Before.IsZero() && p.Before.Before(at) {
		at = p.Before
	}
	return scalar.TimeOf(at)
}
