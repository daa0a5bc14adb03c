package journal

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/streams/record"
)

// History has the records that trimmed logs do not hold any more. The archive is one.
type History interface {
	// Records returns the records of a partition with the sequences [from, to), as the topic had them, in order. A record that
	// readers skip counts to the valid record after it. It MUST return an error that is ErrHistory if the records are lost or
	// damaged; after any other error the caller asks again.
	Records(ctx context.Context, journal string, partition int32, from, to int64) iter.Seq2[*kgo.Record, error]
	// Stored is Records for a reader, which needs the hashes, and of most records nothing but the value.
	Stored(ctx context.Context, journal string, partition int32, from, to int64) iter.Seq2[Stored, error]
	// Holds returns nil if the history has, by its own account, all records before a base. Its errors are those of Records.
	Holds(ctx context.Context, b record.Base) error
}

// Stored is a record of a History.
type Stored struct {
	*kgo.Record             // the offset and the value, and the rest unless the record is plain
	Sequence    int64       // of a valid record; -1 if readers skip it
	Hash        record.Hash // the SHA-256 of the value, which the History MUST have computed from these bytes
	Plain       bool        // key, headers and timestamp are those that KafkaRecord computes from the value
}

// ErrHistory is an error of a History that lacks records. Asking again does not help.
var ErrHistory = errors.New("the history before the base is not complete")

// SetHistory gives readers the records before the bases. It must be called before anything reads through the client.
func (c *Client) SetHistory(h History) { c.cfg.History = h }

// pastBatch is the number of records in a piece.
const pastBatch = 1024

// past reads the records from a reader's position up to the base, or to the last one that the reader's caller needs, from the
// history. A goroutine reads ahead of the reader. A call of the reader may end after a second, and the history may take longer to
// begin, so the goroutine has another context.
type past struct {
	base    record.Base
	to      int64      // sequence of the first record that is not read: that of the base, or a lower one
	checked chan error // gets the answer whether the history has the position and leads to the base
	pieces  chan piece
	err     error // after the last piece
	cancel  context.CancelFunc
	done    sync.WaitGroup
}

// piece is a part of the past, and the error after it: a final one, or one after which the reader begins again.
type piece struct {
	records []Stored
	err     error
}

// newPast begins to read the records after a position, up to the one before the sequence to.
func newPast(c *Client, b record.Base, at record.Position, to int64) *past {
	ctx, cancel := context.WithCancel(context.Background())
	p := &past{base: b, to: to, checked: make(chan error, 1), pieces: make(chan piece, 2), cancel: cancel}
	p.done.Go(func() {
		defer close(p.pieces)
		if err := c.cfg.History.Holds(ctx, b); err != nil {
			p.refuse(ctx, lacking(b, at, err))
			return
		}
		p.read(ctx, c.cfg.History, at)
	})
	return p
}

// refuse answers that the reader can't begin at its position.
func (p *past) refuse(ctx context.Context, err error) {
	p.checked <- err
	p.send(ctx, piece{nil, err})
}

// read finds the record of a position and sends those after it.
func (p *past) read(ctx context.Context, h History, at record.Position) {
	found := at.IsBefore()
	if found {
		p.checked <- nil
	}
	var pending []Stored
	for r, err := range h.Stored(ctx, p.base.Journal, p.base.Partition, max(at.Sequence, 0), p.to) {
		switch {
		case err != nil && !found:
			p.refuse(ctx, lacking(p.base, at, err))
			return
		case err != nil:
			p.send(ctx, piece{pending, lacking(p.base, at, err)})
			return
		case !found && r.Hash == at.Hash:
			found = true
			p.checked <- nil
			continue
		case !found && r.Sequence >= at.Sequence:
			p.refuse(ctx, &record.DivergedError{Journal: p.base.Journal, Partition: p.base.Partition, Have: at,
				Found: record.Position{Offset: r.Offset, Sequence: r.Sequence, Hash: r.Hash}, Reason: "the archive has another record with its sequence"})
			return
		case !found: // readers skip it
			continue
		}
		if pending = append(pending, r); len(pending) == pastBatch {
			if !p.send(ctx, piece{pending, nil}) {
				return
			}
			pending = nil
		}
	}
	if !found {
		p.refuse(ctx, lacking(p.base, at, fmt.Errorf("%w: no record %d", ErrHistory, at.Sequence)))
		return
	}
	p.send(ctx, piece{pending, nil})
}

func (p *past) send(ctx context.Context, one piece) bool {
	select {
	case p.pieces <- one:
		return true
	case <-ctx.Done():
		return false
	}
}

// stop ends the goroutine and waits for it.
func (p *past) stop() {
	p.cancel()
	for range p.pieces {
	}
	p.done.Wait()
}

// startPast begins to read from the history if err is a *record.TrimmedError and there is a history. Otherwise it returns err.
// It also does for a RawReader, which returns records as they lie in the topic and none of the history.
func (r *Reader) startPast(err error) error {
	var gone *record.TrimmedError
	if r.client.cfg.History == nil || r.raw != nil || !errors.As(err, &gone) {
		return err
	}
	at := r.chain.Position()
	if !at.IsBefore() {
		r.chain.SetID(gone.Base.JournalID)
	}
	r.lookup, r.lost = nil, false
	to := gone.Base.Sequence
	if r.until > at.Sequence {
		to = min(to, r.until+1)
	}
	r.past = newPast(r.client, gone.Base, at, to)
	return nil
}

// awaitPast waits until the history is known to have the reader's position. It returns false if the reader must begin again.
func (r *Reader) awaitPast(ctx context.Context) (ok bool, err error) {
	select {
	case err = <-r.past.checked:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	if err == nil {
		return true, nil
	}
	r.closeSession()
	if record.Final(err) {
		return false, err
	}
	r.retryLater()
	return false, nil
}

// heldInPast returns nil if the history has the record of a position before a base, and a *record.DivergedError if it has another
// one.
func (c *Client) heldInPast(ctx context.Context, b record.Base, at record.Position) error {
	p := newPast(c, b, at, at.Sequence+1)
	defer p.stop()
	select {
	case err := <-p.checked:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lacking returns the final error of a reader whose position is before the base, if the history lacks what it needs, and
// otherwise an error after which the reader asks again.
func lacking(b record.Base, at record.Position, err error) error {
	if errors.Is(err, ErrHistory) {
		return &record.TrimmedError{Base: b, Have: at, Archive: err}
	}
	return fmt.Errorf("journal: the records before record %d of %s/%d: %w", b.Sequence, b.Journal, b.Partition, err)
}

// readPast returns the next records before the base. After the last one, the reader continues in the topic, or begins again.
func (r *Reader) readPast(ctx context.Context) (entries []record.Entry, err error) {
	if r.backlog.empty() {
		select {
		case p, ok := <-r.past.pieces:
			if !ok {
				return nil, r.endPast()
			}
			r.past.err = p.err
			r.backlog.putStored(p.records)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if r.backlog.empty() {
		return nil, nil
	}
	next := r.backlog.next(r.chain.SkipsDecoding())
	entries = make([]record.Entry, 0, len(next.records))
	for i := range next.records {
		entry, ok, err := r.admit(next, i)
		if err != nil {
			return entries, err
		}
		if !ok {
			continue
		}
		entries = append(entries, entry)
	}
	r.attempts = 0
	return entries, nil
}

// endPast checks that the history leads to the base, or to the record up to which it was read.
func (r *Reader) endPast() error {
	b, to, at, err := r.past.base, r.past.to, r.chain.Position(), r.past.err
	r.closeSession()
	switch {
	case err != nil:
		return err
	case at.Equal(b.Before()), to < b.Sequence && at.Sequence == to-1:
		return nil
	}
	return lacking(b, at, fmt.Errorf("%w: it leads to %v, and the base follows %v", ErrHistory, at, b.Before()))
}

// Complete returns nil if the topic of a partition has all records, or the client's History those that were trimmed. Else the
// error wraps ErrHistory, or says why that is unknown.
func (c *Client) Complete(ctx context.Context, journal string, partition int32) error {
	b, err := c.TrimmedAt(ctx, journal, partition)
	if err != nil || b == nil {
		return err
	}
	return c.complete(ctx, *b)
}

// complete returns nil if the history has the records before a base. It names what is missing.
func (c *Client) complete(ctx context.Context, b record.Base) error {
	if c.cfg.History == nil {
		return fmt.Errorf("%w: no archive is named", ErrHistory)
	}
	return c.cfg.History.Holds(ctx, b)
}
