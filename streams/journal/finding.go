package journal

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// finding is one attempt to find a reader's position in the log. It runs in a goroutine that does not touch the reader. Its context
// is not the caller's: some callers wait for a second or less, and a scan of the log takes longer. When the caller's context ends,
// the attempt continues, and the next call waits for its result. If each call began a new attempt, none would ever end.
type finding struct {
	client    *Client
	rules     decide.Rules
	partition int32
	at        record.Position
	search    bool    // the position's record is not at the hinted offset
	lost      bool    // the topic does not lead from the position to the base
	need      int64   // as in baseState
	known     bool    // the journal's id is known
	lookup    *lookup // the search; nil before its first attempt

	found  location
	err    error
	done   chan struct{} // closed when found and err are set
	cancel context.CancelFunc
}

// location is where an attempt found the position.
type location struct {
	span   span
	start  *record.Base // the reader starts at this base instead of at its position; nil for none
	moved  bool         // the offset was searched for
	offset int64        // with moved
	based  bool         // with moved: the position's record is gone, and the next one is that of the base
	id     scalar.ID    // of the journal; zero if it was known
}

// locate identifies the log and finds its end. It also finds the record at the position if that is not at the hinted
// offset. If the context ends first, the next call continues.
func (r *Reader) locate(ctx context.Context) error {
	f := r.finding
	if f == nil {
		f = r.startFinding()
	}
	select {
	case <-f.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	r.stopFinding()
	return r.settle(f)
}

func (r *Reader) startFinding() *finding {
	ctx, cancel := context.WithCancel(context.Background())
	f := &finding{client: r.client, rules: r.rules, partition: r.partition, at: r.chain.Position(), search: r.moved, lost: r.lost,
		need: r.need, known: !r.chain.ID().IsZero(), lookup: r.lookup, done: make(chan struct{}), cancel: cancel}
	r.finding = f
	go func() {
		defer close(f.done)
		f.err = f.run(ctx)
	}()
	return f
}

// stopFinding ends the goroutine and waits for it.
func (r *Reader) stopFinding() {
	if f := r.finding; f != nil {
		f.cancel()
		<-f.done
		r.finding = nil
	}
}

// settle moves the reader to the location that an attempt has found.
func (r *Reader) settle(f *finding) error {
	found := f.found
	if r.lookup = f.lookup; found.start != nil {
		r.chain.StartAt(*found.start)
		r.need = 0
	}
	if at := r.chain.Position(); found.moved {
		if found.offset != at.Offset {
			r.client.cfg.Logger.Info("a journal's record lies at another offset than it did", "journal", r.chain.Journal(), "partition", r.partition,
				"sequence", at.Sequence, "offset", found.offset, "was", at.Offset)
		}
		r.chain.SetOffset(found.offset)
		r.next, r.based, r.moved, r.hinted = found.offset+1, found.based, false, false
	}
	if f.err != nil {
		return r.startPast(f.err)
	}
	if !found.id.IsZero() {
		r.chain.SetID(found.id)
	}
	r.lookup, r.end, r.passing = nil, found.span.end, nil
	if b := found.span.base; b != nil && r.chain.Position().Sequence < b.Sequence-1 {
		r.passing = &found.span
	}
	return nil
}

// run makes the attempt. After an error that is not final, the reader makes another one.
func (f *finding) run(ctx context.Context) error {
	journal := f.rules.Journal()
	s, err := f.client.span(ctx, journal, f.partition)
	if err != nil {
		return err
	}
	f.found.span = s
	contact := f.client.Contact(journal)
	contact.answered()
	contact.end.Store(s.end)
	switch {
	case f.lost && s.base != nil:
		err = s.trimmed(f.at)
	case f.at.IsBefore():
		if s.base != nil && !s.whole { // the log does not begin with the genesis
			err = s.trimmed(f.at)
		}
	case f.search || f.at.Offset < s.start || f.at.Offset > s.ceiling(f.at.Sequence):
		err = f.find(ctx)
	}
	var gone *record.TrimmedError
	if errors.As(err, &gone) && f.need >= gone.Base.Sequence {
		f.found.start = &gone.Base
		f.at, f.known, f.lookup = gone.Base.Before(), true, nil
		err = f.find(ctx)
	}
	if err != nil || f.known || f.at.IsBefore() {
		return err
	}
	genesis, err := f.client.genesis(ctx, journal, f.partition)
	switch {
	case err != nil:
		return err
	case genesis == nil:
		return &record.DivergedError{Journal: journal, Partition: f.partition, Have: f.at,
			Found: record.Position{Offset: s.end - 1, Sequence: -1}, Reason: "the log has no genesis"}
	}
	f.found.id = genesis.JournalID
	return nil
}

// find searches for the position by its sequence. A *record.DivergedError means that the log does not hold it.
func (f *finding) find(ctx context.Context) error {
	s := f.found.span
	if f.lookup == nil {
		f.lookup = f.client.lookup(f.rules, f.partition, f.at)
		f.lookup.topic = true
	}
	if err := f.lookup.tryIn(ctx, s); err != nil {
		return err
	}
	offset, based := f.lookup.at[f.at.Hash], f.lookup.based
	if !based {
		var err error
		if offset, err = f.lookup.locator.firstCopy(ctx, f.at, s.floor(f.at.Sequence), offset); err != nil {
			return err
		}
	}
	f.found.moved, f.found.offset, f.found.based = true, offset, based
	return nil
}

// holds returns nil if the log holds the reader's position, without reading further. It sets the position's offset and
// the journal's identity. It starts no session, because ending a session that has hardly begun to consume is a data
// race in kgo between Close and the first fetch that the metadata triggers.
func (r *Reader) holds(ctx context.Context) error {
	r.stopFinding() // one that may not look it up
	for {
		r.moved = !r.chain.Position().IsBefore() // so that it is looked up
		if err := r.persist(ctx, r.locate); err != nil || r.past == nil {
			return err
		}
		if ok, err := r.awaitPast(ctx); ok || err != nil {
			return err
		}
	}
}

// open starts a session at the position. It retries without limit.
func (r *Reader) open(ctx context.Context) error {
	r.closeSession()
	if !r.counted {
		r.counted = true
		r.contact.opened()
	}
	return r.persist(ctx, r.tryOpen)
}

func (r *Reader) tryOpen(ctx context.Context) error {
	if err := r.locate(ctx); err != nil || r.past != nil {
		return err
	}
	// The session begins with the record at the position although locate may just have found it: locate may have read
	// another broker's log than the one that the session consumes.
	at := r.chain.Position()
	from := max(at.Offset, 0)
	if r.based {
		from = at.Offset + 1
	}
	s, err := r.client.session(r.chain.Journal(), r.partition, from)
	if err != nil {
		return err
	}
	r.session, r.verifying = s, !at.IsBefore()
	return nil
}

// persist retries without limit until try succeeds, its error is final, or the context ends.
func (r *Reader) persist(ctx context.Context, try func(context.Context) error) error {
	for {
		if left := time.Until(r.retryAt); left > 0 {
			if err := wait(ctx, left); err != nil {
				return err
			}
		}
		err := try(ctx)
		if err == nil || record.Final(err) {
			return err
		}
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return err
		}
		r.contact.failed()
		level := slog.LevelDebug
		if r.attempts%16 == 8 { // the first seconds may be a start or a failover
			level = slog.LevelWarn
		}
		r.client.cfg.Logger.Log(ctx, level, "a journal can't be read for now", "journal", r.chain.Journal(),
			"partition", r.partition, "error", err)
		r.retryLater()
	}
}

// retryLater sets the time of the next attempt. If a caller's context ends during the pause, the next call waits only for the rest
// of it.
func (p *pace) retryLater() {
	p.attempts++
	p.retryAt = time.Now().Add(pauseBefore(p.attempts))
}
