package journal

import (
	"context"
	"errors"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// askAgain is the interval at which ToTip checks whether the log still reaches its end.
const askAgain = time.Second

// ToTip calls reach until it reaches the current end of a partition's log. Each call gets the end, an offset, and a
// context with a timeout of askAgain. ToTip returns when reach returns nil or an error other than the timeout. After
// each timeout ToTip reads the end of the log again. A log that has lost its end never reaches the former one, so a
// caller that waits for it would wait forever. ToTip then continues with the present end.
func (c *Client) ToTip(ctx context.Context, journal string, partition int32, reach func(ctx context.Context, end int64) error) error {
	end, err := c.Tip(ctx, journal, partition)
	if err != nil {
		return err
	}
	return c.toEnd(ctx, journal, partition, end, reach)
}

// toEnd is ToTip for a given end.
func (c *Client) toEnd(ctx context.Context, journal string, partition int32, end int64, reach func(ctx context.Context, end int64) error) error {
	for shorter := false; ; {
		limited, cancel := context.WithTimeout(ctx, askAgain)
		err := reach(limited, end)
		cancel()
		if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		now, err := c.Tip(ctx, journal, partition)
		switch {
		case err != nil:
			if ctx.Err() != nil {
				return ctx.Err()
			}
		case now >= end:
			shorter = false
		case shorter: // Twice in a row: a broker that has just lost the partition may report an obsolete end.
			end = now
		default:
			shorter = true
		}
	}
}

// ToTip reads to the current end of the log and passes the records to each, possibly with later records. It also
// returns nil if the log becomes shorter in the meantime but still holds the reader's position.
func (r *Reader) ToTip(ctx context.Context, each func([]record.Entry) error) error {
	end, err := r.client.Tip(ctx, r.chain.Journal(), r.partition)
	if err != nil {
		return err
	}
	return r.to(ctx, end, each)
}

// to is ToTip for a given end.
func (r *Reader) to(ctx context.Context, end int64, each func([]record.Entry) error) error {
	return r.client.toEnd(ctx, r.chain.Journal(), r.partition, end, func(ctx context.Context, end int64) error {
		// The offset at the start of a reader is a hint that may be past the end. Only a verified offset counts.
		for !r.verifiedPosition() || r.next < end || r.hinted {
			if r.verifiedPosition() && r.next >= end { // no record is left that would show that the hint is wrong
				r.moved = true
				r.closeSession()
			}
			entries, _, err := r.advance(ctx, r.next >= end)
			if err != nil {
				return err
			}
			if err := each(entries); err != nil {
				return err
			}
		}
		return nil
	})
}

// PollFor is Poll for a caller that expects the record with a sequence, which the reader has not reached. If the log
// has lost its end and stops before that record, the error is ErrNoRecord instead of an endless wait. The history is not read
// beyond that record.
func (r *Reader) PollFor(ctx context.Context, sequence int64) (entries []record.Entry, err error) {
	r.until = sequence
	got := func(limited []record.Entry) error {
		if entries = limited; len(limited) > 0 {
			return errFound
		}
		return nil
	}
	// The end reported to the session suffices for most polls. Only at the tip are the brokers asked.
	if err = r.to(ctx, r.end, got); err == nil {
		err = r.ToTip(ctx, got)
	}
	switch {
	case errors.Is(err, errFound):
		return entries, nil
	case err != nil:
		return nil, err
	}
	return nil, noRecord(r.chain.Journal(), r.partition, sequence)
}

// ReadAt returns the valid record with a sequence. It reads from a position, an anchor or Before. from should be before
// the record; otherwise ReadAt reads from Before. If the log does not hold from any more, ReadAt reads from the base, and
// returns a *record.TrimmedError for a record before that. The log must already have held the record.
func (c *Client) ReadAt(ctx context.Context, rules decide.Rules, partition int32, from record.Position, sequence int64) (record.Entry, error) {
	if from.Sequence >= sequence {
		from = record.Before
	}
	r := NewReader(c, rules, partition, from)
	r.chain.DecodeFrom(sequence)
	r.OrBase(sequence)
	r.until = sequence
	defer r.Close()
	var found record.Entry
	err := r.ToTip(ctx, func(entries []record.Entry) error {
		for _, e := range entries {
			if e.Position.Sequence == sequence {
				found = e
				return errFound
			}
		}
		return nil
	})
	switch {
	case errors.Is(err, errFound):
		return found, nil
	case err != nil:
		return record.Entry{}, err
	}
	return record.Entry{}, noRecord(rules.Journal(), partition, sequence)
}
