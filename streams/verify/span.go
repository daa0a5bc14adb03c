package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/commitment"
	"github.com/perpetua-exchange/perpetua/streams/liabilities"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// span is a part of the log that one worker verifies.
type span struct {
	items    []item
	count    int         // of items, when the worker has forgotten them
	previous scalar.Time // of the record before the first
	decides  bool        // a state is known from which to decide the records

	// state is the state before the first record, encoded. It is nil if the worker continues from its own state: the one after the
	// span before, or that of an empty journal. after is the state after the last record, or nil.
	state, after []byte
	stored       []Snapshot            // at the last record
	owed         *liabilities.Snapshot // of the last instant of funding before the first record, if the span has a state; may be nil

	// Of the worker.
	done    chan struct{}
	decided Decided
	roots   []commitment.Hash
	equal   int // stored snapshots that are equal to the state
	err     error
}

// item is a valid record with its message.
type item struct {
	record.Entry
	message *Message
}

// cutter is the third stage.
type cutter struct {
	*verification
	history   *history
	followers []*follower
	work      chan *span // to the workers
	ordered   chan *span // to the collector

	folds     bool                  // a state leads the workers
	lead      decide.State          // after the last record; nil if it does not fold, or no state is known yet
	saved     []byte                // lead, encoded; nil before the first record of a journal
	known     bool                  // a state is known
	owed      *liabilities.Snapshot // at the last instant of funding that lead has passed; nil before the first one
	snapshots []Snapshot            // that the log has not reached

	current *span
	size    int // bytes of the current span's values
	least   int // records of a span
	began   time.Time
}

func (v *verification) newCutter(base *record.Base, followers []*follower) *cutter {
	// The spans in these channels bound the memory.
	c := &cutter{verification: v, history: newHistory(v.Rules, base, &v.report), followers: followers, work: make(chan *span),
		ordered: make(chan *span, v.Workers+1), folds: v.Payloads != nil && v.Workers > 1, least: v.SpanRecords, snapshots: v.Snapshots}
	if v.Payloads == nil || v.Codec == nil {
		c.snapshots = nil
	}
	if base == nil {
		c.known = v.Payloads != nil
		if c.folds {
			c.lead = v.Rules.NewState()
		}
	}
	for base != nil && len(c.snapshots) > 0 && c.snapshots[0].Position.Sequence < base.Sequence-1 {
		c.snapshots = c.snapshots[1:]
	}
	c.begin(0)
	return c
}

// begin begins a span. It will probably have as many items as the one before.
func (c *cutter) begin(previous scalar.Time) {
	var items []item
	if c.current != nil {
		items = make([]item, 0, len(c.current.items))
	}
	c.current = &span{items: items, previous: previous, decides: c.known, state: c.saved, owed: c.owed, done: make(chan struct{}), decided: newDecided()}
	c.size, c.began = 0, time.Now()
}

// cut takes the decoded batches in order and passes spans to the workers, until the log ends or is wrong. It returns an error
// of a snapshot store, or of the context.
func (c *cutter) cut(ctx context.Context, batches <-chan *batch) error {
	defer close(c.ordered)
	defer close(c.work)
	err := c.each(ctx, batches)
	return errors.Join(err, c.emit(ctx))
}

func (c *cutter) each(ctx context.Context, batches <-chan *batch) error {
	if err := c.at(ctx, c.history.chain.Position()); err != nil {
		return err
	}
	for b := range batches {
		<-b.done
		if c.history.chain.Position().Sequence >= c.limit.Load() || c.failed.Load() {
			return nil
		}
		from := len(c.current.items)
		for i := range b.messages {
			e, ok, d := c.history.admit(&b.messages[i], b.decoded[i])
			if d != nil {
				c.differs(d)
				c.pass(from)
				return nil
			}
			if !ok {
				continue
			}
			c.current.items = append(c.current.items, item{e, &b.messages[i]})
			c.size += len(e.Value)
			if !c.evolve(&c.current.items[len(c.current.items)-1]) {
				c.pass(from)
				return nil
			}
			if c.full() || len(c.snapshots) > 0 && c.snapshots[0].Position.Sequence == e.Position.Sequence {
				c.pass(from)
				if err := c.at(ctx, e.Position); err != nil {
					return err
				}
				from = 0
			}
		}
		c.pass(from)
		if b.damage != nil {
			d := c.history.wrong(CheckSource, -1, b.damage.Error())
			if n := b.damage.Sequence; n >= 0 {
				d.Sequence = min(n, d.Sequence)
			}
			c.differs(d)
		}
	}
	if d := c.history.end(); d != nil {
		c.differs(d)
	}
	return ctx.Err()
}

// full reports whether the current span may end.
func (c *cutter) full() bool { return len(c.current.items) >= c.least || c.size >= c.SpanBytes }

// evolve applies a record to the leading state. It returns false if this build cannot apply it.
func (c *cutter) evolve(e *item) bool {
	if c.lead == nil {
		return true
	}
	if err := evolve(c.lead, &e.Entry); err != nil {
		c.differs(&Difference{CheckState, e.Position.Sequence, e.Position.Offset, err.Error()})
		c.lead = nil
		return false
	}
	if owed := owedAfter(c.lead, e); owed != nil {
		c.owed = owed
	}
	return true
}

// evolve applies a record. The rules panic at records that only another build can apply.
func evolve(s decide.State, e *record.Entry) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("this build cannot apply the record: %v", p)
		}
	}()
	s.Evolve(e.Stamp(), e.Record.Command, e.Record.Outcome, e.Record.Events)
	return nil
}

// pass passes the items of the current span, from one on, to those who read all records in order.
func (c *cutter) pass(from int) {
	if items := c.current.items[from:]; len(items) > 0 {
		for _, f := range c.followers {
			f.in <- items
		}
	}
}

// at ends the current span at a position, whose items were passed to the followers. Snapshots that are stored with the position are
// compared there, or the fold begins with one of them.
func (c *cutter) at(ctx context.Context, p record.Position) error {
	var stored []Snapshot
	for len(c.snapshots) > 0 && c.snapshots[0].Position.Sequence <= p.Sequence {
		s := c.snapshots[0]
		c.snapshots = c.snapshots[1:]
		switch {
		case s.Position.Sequence < p.Sequence: // before a base
		case s.Position.Hash != p.Hash:
			c.differs(&Difference{CheckState, p.Sequence, p.Offset, fmt.Sprintf("a snapshot was made of a record with the hash %v, and the record has %v", s.Position.Hash, p.Hash)})
		default:
			stored = append(stored, s)
		}
	}
	if !c.known && len(stored) > 0 {
		return c.start(ctx, stored)
	}
	if len(c.current.items) == 0 {
		return nil
	}
	c.current.stored = stored
	return c.emit(ctx)
}

// start begins the fold with a snapshot that is stored at a record, and compares it with the others there. If all of them are gone,
// a later one may be there.
func (c *cutter) start(ctx context.Context, stored []Snapshot) error {
	if err := c.emit(ctx); err != nil {
		return err
	}
	for _, s := range stored {
		saved, err := s.Load(ctx)
		if errors.Is(err, ErrGone) {
			continue
		}
		if err != nil {
			return fmt.Errorf("verify: the snapshot at record %d: %w", s.Position.Sequence, err)
		}
		if c.known {
			if !bytes.Equal(saved, c.saved) {
				c.differs(&Difference{CheckState, s.Position.Sequence, -1, "two snapshots of the record have different states"})
			}
			continue
		}
		state, err := c.Codec.Read(saved)
		if err != nil {
			return fmt.Errorf("verify: the snapshot at record %d: %w", s.Position.Sequence, err)
		}
		if c.known = true; c.folds {
			c.lead = state
		}
		c.saved = saved
	}
	c.begin(c.current.previous)
	return nil
}

// emit passes the current span on and begins the next one.
func (c *cutter) emit(ctx context.Context) error {
	s := c.current
	if len(s.items) == 0 {
		return nil
	}
	s.count = len(s.items)
	previous := s.items[s.count-1].Record.Time
	c.saved = nil
	if c.lead != nil {
		folded := time.Since(c.began)
		began := time.Now()
		s.after = c.Codec.Append(make([]byte, 0, c.Codec.Size(c.lead)), c.lead)
		c.saved = s.after
		// A state is encoded twice and read once for each span. Longer spans are better where states are large.
		if took := time.Since(began); 6*took > folded && len(s.items) >= c.least {
			c.least *= 2
		}
	}
	c.begin(previous)
	select {
	case c.ordered <- s:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case c.work <- s:
	case <-ctx.Done():
		s.err = ctx.Err()
		close(s.done)
		return ctx.Err()
	}
	return nil
}
