package trim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/archive"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/wholelog"
)

// Limit is a reason to trim a log no further than before a record.
type Limit struct {
	First  int64  `json:"first"`  // sequence of the first record that must stay
	Reason string `json:"reason"` // for humans
}

// Source returns a limit, or nil if it sets none. Its error means that it could not be asked: then nothing is trimmed.
type Source func(ctx context.Context) (*Limit, error)

// After is a limit at the record after a position: a reader there has read everything before.
func After(p record.Position, reason string) *Limit { return &Limit{p.Sequence + 1, reason} }

// Cosigned returns the number of records that the largest checkpoint of a journal with quorum or more cosignatures covers, or 0 if
// there is none. A trim calls it if its policy wants cosignatures.
type Cosigned func(ctx context.Context, journal string, partition int32, quorum int) (records int64, err error)

// ErrNoCosignatures is returned for a quorum above 0 of a venue without witnesses.
var ErrNoCosignatures = errors.New("--trim-quorum asks for cosignatures, and no --witness-policy names the witnesses; --trim-quorum none trims without")

// Quorum returns the limit of a policy that wants cosignatures. ask may be nil.
func Quorum(ask Cosigned, journal string, quorum int) Source {
	return func(ctx context.Context) (*Limit, error) {
		if quorum == 0 {
			return nil, nil
		}
		if ask == nil {
			return nil, ErrNoCosignatures
		}
		records, err := ask(ctx, journal, 0, quorum)
		return &Limit{records, fmt.Sprintf("no checkpoint with %d cosignatures covers the records from here on", quorum)}, err
	}
}

// maxClockOff is the largest accepted difference between the two clocks.
const maxClockOff = time.Minute

// now returns the time by which records are old enough. The error says that the clocks differ, or is that of the other clock.
func (c Config) now(ctx context.Context) (time.Time, error) {
	before := c.Now()
	if c.OtherClock == nil {
		return before, nil
	}
	other, err := c.OtherClock(ctx)
	if err != nil {
		return before, err
	}
	if now := c.Now(); other.Before(before.Add(-maxClockOff)) || other.After(now.Add(maxClockOff)) {
		return before, fmt.Errorf("the clock of this machine says %s, and Postgres's %s: nothing is trimmed while they differ by more than a minute",
			now.UTC().Format(time.RFC3339), other.UTC().Format(time.RFC3339))
	}
	return before, nil
}

// limits returns the limits of the archive, of the policy, and of the sources.
func (c Config) limits(ctx context.Context, a *archive.Archive, from int64) ([]Limit, error) {
	sealed := a.Sealed()
	end, aged := int64(0), int64(0)
	now, err := c.now(ctx)
	if err != nil {
		return nil, err
	}
	old := c.Policy.old(now)
	for _, s := range sealed {
		end = s.Base.Sequence
		if s.LastTime < old {
			aged = end
		}
	}
	all := []Limit{{end, "the archive has no full range after this record"}}
	if aged < end {
		reason := "the next range has records that are not older than " + old.Std().UTC().Format(time.RFC3339)
		if last := sealed[len(sealed)-1].LastTime; scalar.TimeOf(now) < last {
			reason += fmt.Sprintf("; the clock of this machine is behind the log, because it says %s and the last range has a record of %s",
				now.UTC().Format(time.RFC3339), last.Std().UTC().Format(time.RFC3339))
		}
		all = append(all, Limit{aged, reason})
	}
	if c.Policy.Keep > 0 {
		last := int64(0)
		if b := wholelog.End(a); b != nil {
			last = b.Sequence
		}
		all = append(all, Limit{max(last-c.Policy.Keep, 0), fmt.Sprintf("the last %d archived records stay, and all after them", c.Policy.Keep)})
	}
	for _, ask := range append(slices.Clone(c.Limits), c.known) {
		if c.Brief && len(candidates(a, from, all)) == 0 {
			break
		}
		l, err := ask(ctx)
		if err != nil {
			return nil, err
		}
		if l != nil {
			all = append(all, *l)
		}
	}
	return all, nil
}

// known is the limit of the positions that the log must hold: the oldest of the newest positions of the sources. If the topic ended
// before one of these, the log would be damaged, and a start could not tell without the archive.
func (c Config) known(ctx context.Context) (limit *Limit, err error) {
	for _, k := range c.Known {
		known, err := k.Positions(ctx, c.Rules.Journal(), 0)
		if err != nil {
			return nil, err
		}
		if len(known) == 0 {
			continue
		}
		last := slices.MaxFunc(known, func(a, b record.Position) int { return cmp.Compare(a.Sequence, b.Sequence) })
		if limit == nil || last.Sequence+1 < limit.First {
			limit = After(last, fmt.Sprintf("the newest position known in every place is that of record %d", last.Sequence))
		}
	}
	return limit, nil
}

func least(limits []Limit) int64 {
	first := int64(math.MaxInt64)
	for _, l := range limits {
		first = min(first, l.First)
	}
	return first
}

// binding returns the limits that forbid the range after a base.
func binding(a *archive.Archive, base int64, limits []Limit) (why []Limit) {
	next := int64(math.MaxInt64)
	for _, s := range a.Sealed() {
		if s.Base.Sequence > base {
			next = s.Base.Sequence
			break
		}
	}
	for _, l := range limits {
		if l.First < next {
			why = append(why, l)
		}
	}
	return why
}
