package verify

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/redecide"
)

// Continuous verifies the records of a journal one by one as a follower reads them. It decides each record again, and checks the
// sums of the ledger, the statements of liabilities without their roots, and the Model if there is one. Of the Config it uses
// Rules, Payloads, and Model.
//
// Check MUST be called by one goroutine, with all records after the state that the follower begins with. Counts may be called by
// any.
type Continuous struct {
	verification
	span   span
	sums   Sums
	stated statements
	last   *item // the record that was applied last

	decided, others atomic.Int64
}

// NewContinuous returns a verifier of the records of a journal. from is the seed of the follower, or nil for the genesis. From a
// seed on, the checks are those of a log that was trimmed: see Sums.
func NewContinuous(cfg Config, from *record.Seed) *Continuous {
	c := &Continuous{verification: verification{Config: cfg, journal: redecide.Journal{Payloads: cfg.Payloads, Limit: cfg.Rules.Limit()}},
		span: span{decided: newDecided()}, sums: Sums{Partial: from != nil}}
	if from != nil {
		c.Model = nil // it needs every record
	}
	return c
}

// Check verifies a record against the state before it. The error is a *record.BrokenRecordError that wraps a *Difference. It
// implements follow.Check.
func (c *Continuous) Check(state decide.State, e record.Entry) error {
	d, err := c.next(state, &item{Entry: e, message: &Message{}})
	if err == nil && d != nil {
		err = d
	}
	if err == nil {
		return nil
	}
	return &record.BrokenRecordError{Journal: c.Rules.Journal(), Offset: e.Position.Offset, Sequence: e.Position.Sequence, Reason: err.Error(), Cause: err}
}

func (c *Continuous) next(state decide.State, e *item) (*Difference, error) {
	var previous scalar.Time
	if c.last != nil {
		previous = c.last.Record.Time
		if owed := owedAfter(state, c.last); owed != nil {
			c.stated.owed = owed
		}
	}
	same := c.span.decided.Same
	if d := c.one(&c.span, state, previous, e); d != nil {
		return d, nil
	}
	if d, err := c.stated.check(context.Background(), &c.span, state, e); d != nil || err != nil { // without keys, it asks nobody
		return d, err
	}
	if err := c.sums.Add(e.Record.Events); err != nil {
		return c.wrong(CheckSums, e, err), nil
	}
	if d := c.modeled(e); d != nil {
		return d, nil
	}
	if c.last = e; c.span.decided.Same > same {
		c.decided.Add(1)
	} else {
		c.others.Add(1)
	}
	return nil, nil
}

// modeled checks a record against the model, until the model does not cover one.
func (c *Continuous) modeled(e *item) *Difference {
	if c.Model == nil {
		return nil
	}
	err := c.Model.Check(e.Value)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrNotCovered):
		c.Model = nil
		return nil
	}
	return c.wrong(CheckModel, e, err)
}

func (c *Continuous) wrong(check Check, e *item, err error) *Difference {
	return &Difference{check, e.Position.Sequence, e.Position.Offset, err.Error()}
}

// Counts returns the number of records that were decided again as the same bytes, and of those that no rules decide or that do not
// show their input.
func (c *Continuous) Counts() (decided, others int64) { return c.decided.Load(), c.others.Load() }
