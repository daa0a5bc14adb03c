package journal

import (
	"context"
	"errors"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// askAgain is how often those who wait for a log's end to be reached ask whether the log still reaches that far.
const askAgain = time.Second

// ToTip has reach go on until it has come to the end that a partition's log has now. It is called with that end, an offset,
// and a context that ends after a second, over and over until it returns nil or an error of another kind. In between the
// brokers are asked again: a log that was cut off since they were first asked never reaches its former end, and who waits
// for that waits for ever. Then the end is the present one.
func (c *Client) ToTip(ctx context.Context, journal string, partition int32, reach func(ctx context.Context, end int64) error) error {
	end, err := c.Tip(ctx, journal, partition)
	if err != nil {
		return err
	}
	return c.toEnd(ctx, journal, partition, end, reach)
}

// toEnd is ToTip for an end that was told before.
func (c *Client) toEnd(ctx context.Context, journal string, partition int32, end int64, reach func(ctx context.Context, end int64) error) error {
	for shorter := false; ; {
		some, cancel := context.WithTimeout(ctx, askAgain)
		err := reach(some, end)
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
		case shorter: // twice in a row: a broker that has just lost the partition may tell an end that is past
			end = now
		default:
			shorter = true
		}
	}
}

// ToTip reads on to the end that the log has now, and passes the records on, at least all up to there. It ends, without an
// error, also where the log becomes shorter meanwhile but still holds the reader's position.
func (r *Reader) ToTip(ctx context.Context, each func([]record.Entry) error) error {
	end, err := r.client.Tip(ctx, r.chain.Journal(), r.partition)
	if err != nil {
		return err
	}
	return r.to(ctx, end, each)
}

// to is ToTip for an end that was told before.
func (r *Reader) to(ctx context.Context, end int64, each func([]record.Entry) error) error {
	return r.client.toEnd(ctx, r.chain.Journal(), r.partition, end, func(ctx context.Context, end int64) error {
		// The offset that a reader starts with is a hint, which may be past the end: only a verified one counts.
		for !r.verifiedPosition() || r.next < end {
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

// PollFor is Poll for those who know of a record, by its sequence, that the reader has not come to. Where the log ends before
// it, since it has lost its end, nothing may ever come: then the error is ErrNoRecord.
func (r *Reader) PollFor(ctx context.Context, sequence int64) (entries []record.Entry, err error) {
	got := func(some []record.Entry) error {
		if entries = some; len(some) > 0 {
			return errFound
		}
		return nil
	}
	// The end that the session was told is good for most polls, so that the brokers are asked at the tip only.
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

// ReadAt returns the valid record with a sequence, reading from a position at or before it: an anchor, or Before. The
// journal must hold it by now.
func (c *Client) ReadAt(ctx context.Context, rules decide.Rules, partition int32, from record.Position, sequence int64) (record.Entry, error) {
	if from.Sequence >= sequence {
		from = record.Before
	}
	r := NewReader(c, rules, partition, from)
	r.chain.DecodeFrom(sequence)
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
