package wholelog

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/archive"
	"github.com/perpetua-exchange/perpetua/streams/base"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/transfer"
)

// Restore appends the records that an archive has and a topic lacks. An empty topic gets every record, another one those after its
// end. Nothing else may write to the topic during a restore.
type Restore struct {
	Client  *journal.Client
	Rules   decide.Rules
	Archive *archive.Archive
	// From is the first record of an empty topic, rounded down to the beginning of a range; 0 for the genesis.
	From int64
	// Keepers get the base of a topic that does not begin with the genesis, before any record is appended.
	Keepers []base.Keeper
	// Known are the positions that the log must hold in the end. They are compared with the archive first.
	Known []record.Position
	// Progress is called after each record with the kind of work (Compared, Appended, or ComparedAgain) and the number of records
	// of that kind. It may be nil.
	Progress func(work string, records int64)
}

// The work of a restore, in its order.
const (
	Compared      = "compared"       // of the archive with the topic
	Appended      = "appended"       // to the topic
	ComparedAgain = "compared again" // the topic, with what was verified
)

func (r *Restore) progress(work string, records int64) {
	if r.Progress != nil {
		r.Progress(work, records)
	}
}

// Restored says what was appended.
type Restored struct {
	From     int64           // first record that the topic must hold
	Found    int64           // records that the topic had, of those of the archive
	Appended int64           // records appended, with those that readers skip
	End      record.Position // last valid record of the archive; its offset is that of the archived topic
	Base     *record.Base    // where the log begins; nil for its genesis
}

// ConflictError says that an archive contradicts what the topic holds, or a known position.
type ConflictError struct {
	Journal  string
	Sequence int64
	Reason   string
	Appended int64 // records that were appended before it was found; 0: nothing was changed
}

// Error names the record.
func (e *ConflictError) Error() string {
	done := "nothing was changed"
	if e.Appended > 0 {
		done = fmt.Sprintf("%d records had been appended", e.Appended)
	}
	return fmt.Sprintf("restore %s: record %d: %s; %s", e.Journal, e.Sequence, e.Reason, done)
}

// Run verifies the archive, compares it with the topic and the known positions, appends what is missing, and reads the topic
// again: it must hold the very records that were verified. So the archive is decoded twice, or once if nothing is missing. An
// interrupted run is continued by the next one.
func (r Restore) Run(ctx context.Context) (done Restored, err error) {
	name := r.Rules.Journal()
	if err := r.Archive.TailDamage(); err != nil {
		return done, err
	}
	end := End(r.Archive)
	if end == nil {
		return done, nil
	}
	start, topicEnd, err := r.Client.Bounds(ctx, name, 0)
	if err != nil {
		return done, err
	}
	if start == topicEnd {
		if err := r.mayBegin(ctx, start); err != nil {
			return done, err
		}
		done.From, done.Base, err = r.begin()
	} else {
		done.From, done.Base, err = r.present(ctx)
	}
	if err != nil {
		return done, err
	}
	w := &walk{Restore: r, name: name, from: done.From, base: done.Base, work: Compared}
	if done.Found, done.End, err = w.compare(ctx); err != nil {
		return done, err
	}
	if w.complete {
		return done, nil
	}
	if done.Base != nil {
		for _, k := range r.Keepers {
			if err := keep(ctx, k, *done.Base); err != nil {
				return done, fmt.Errorf("restore %s: the base is not kept in %s: %w", name, k, err)
			}
		}
	}
	if done.Appended, err = w.append(ctx, done.Found, topicEnd); err != nil {
		return done, fmt.Errorf("restore %s: %d records were appended: %w", name, done.Appended, err)
	}
	if equal, err := w.holds(ctx); equal && err == nil {
		return done, nil
	}
	// The archive is decoded again only to say what is wrong.
	again := &walk{Restore: r, name: name, from: done.From, base: done.Base, work: ComparedAgain}
	if _, _, err := again.compare(ctx); err != nil {
		var conflict *ConflictError
		if errors.As(err, &conflict) {
			conflict.Appended = done.Appended
			return done, err
		}
		return done, fmt.Errorf("restore %s: %d records were appended, and the topic can't be compared: %w", name, done.Appended, err)
	}
	if !again.complete {
		return done, fmt.Errorf("restore %s: the topic lacks records that were appended to it", name)
	}
	return done, nil
}

// keep stores a base, unless there is a newer copy that agrees: the topic may hold records before its base.
func keep(ctx context.Context, k base.Keeper, b record.Base) error {
	have, err := k.Base(ctx, b.Journal, b.Partition)
	if err == nil && have != nil && have.Sequence > b.Sequence && have.Contradicts(b) == "" {
		return nil
	}
	if err != nil {
		return err
	}
	return k.Keep(ctx, b)
}

// mayBegin returns an error for an empty topic that had records, unless a base is kept that tells which ones were deleted.
func (r Restore) mayBegin(ctx context.Context, start int64) error {
	if start == 0 {
		return nil
	}
	b, silent, err := r.Client.Base(ctx, r.Rules.Journal(), 0)
	switch {
	case err != nil || b != nil:
		return err
	case silent != nil:
		return fmt.Errorf("restore %s: the topic is empty and begins at offset %d: %w", r.Rules.Journal(), start, silent)
	}
	return fmt.Errorf("restore %s: the topic is empty and begins at offset %d: all its records were deleted, and no base is kept; restore to a new topic", r.Rules.Journal(), start)
}

// begin returns where an empty topic is to begin.
func (r Restore) begin() (int64, *record.Base, error) {
	if r.From < 0 || r.From >= End(r.Archive).Sequence {
		return 0, nil, fmt.Errorf("restore %s: the archive has no record %d: it ends before record %d", r.Rules.Journal(), r.From, End(r.Archive).Sequence)
	}
	from := int64(0)
	for _, s := range r.Archive.Sealed() {
		if s.Base.Sequence <= r.From {
			from = s.Base.Sequence
		}
	}
	b, err := BaseAt(r.Archive, from)
	return from, b, err
}

// present returns where a topic with records begins.
func (r Restore) present(ctx context.Context) (int64, *record.Base, error) {
	b, err := r.Client.TrimmedAt(ctx, r.Rules.Journal(), 0)
	if err != nil || b == nil {
		return 0, nil, err
	}
	return b.Sequence, b, nil
}

// walk compares the archive with the topic, from the first record of the topic.
type walk struct {
	Restore
	name     string
	from     int64
	base     *record.Base
	work     string
	complete bool // the topic holds everything that the archive has

	verified transfer.Sum // of the records of the archive
}

func (w *walk) conflict(sequence int64, format string, args ...any) error {
	return &ConflictError{Journal: w.name, Sequence: sequence, Reason: fmt.Sprintf(format, args...)}
}

// compare verifies the archive from the first record on, and returns how many of its records the topic holds, and its end.
func (w *walk) compare(ctx context.Context) (found int64, end record.Position, err error) {
	known := make(map[int64][]record.Position)
	last := record.Before
	for _, p := range w.Known {
		known[p.Sequence] = append(known[p.Sequence], p)
		if p.Sequence > last.Sequence {
			last = p
		}
	}
	topic, err := w.topic(ctx)
	if err != nil {
		return 0, end, err
	}
	defer topic.Close()
	have, topicErr := topic.Next(ctx)
	end = record.Before
	if w.base != nil {
		end = w.base.Before()
	}
	read := int64(0)
	for r, err := range w.records(ctx) {
		if err != nil {
			return found, end, err
		}
		read++
		w.verified.Add(r)
		w.progress(w.work, read)
		if topicErr == nil {
			if part := transfer.Differs(r, have); part != "" {
				return found, end, w.conflict(end.Sequence+1, "the topic has another %s at offset %d than the archive", part, have.Offset)
			}
			found++
			have, topicErr = topic.Next(ctx)
		}
		if topicErr != nil && !errors.Is(topicErr, io.EOF) {
			return found, end, topicErr
		}
		if prev, sequence, ok := record.PrevOf(r.Value); ok && prev == end.Hash && sequence == end.Sequence+1 {
			end = record.Position{Offset: r.Offset, Sequence: sequence, Hash: sha256.Sum256(r.Value)}
			for _, p := range known[sequence] {
				if p.Hash != end.Hash {
					return found, end, w.conflict(sequence, "a known position has the hash %v, and the archive %v", p.Hash, end.Hash)
				}
			}
		}
	}
	w.complete = found == read
	if topicErr == nil { // the topic goes on after the archive, and is compared with the known positions by its readers
		return found, end, nil
	}
	if want := End(w.Archive); end.Sequence != want.Sequence-1 || end.Hash != want.Prev {
		return found, end, w.conflict(end.Sequence, "the archive leads to hash %v here, and its last manifest says record %d with hash %v", end.Hash, want.Sequence-1, want.Prev)
	}
	if last.Sequence > end.Sequence && !w.complete {
		return found, end, w.conflict(last.Sequence, "it is a known position (%v), and the archive ends with record %d: the log would have lost its end", last, end.Sequence)
	}
	return found, end, nil
}

// holds reports whether the topic begins with the records that compare has verified.
func (w *walk) holds(ctx context.Context) (bool, error) {
	topic, err := w.topic(ctx)
	if err != nil {
		return false, err
	}
	defer topic.Close()
	var found transfer.Sum
	for found.Records() < w.verified.Records() {
		r, err := topic.Next(ctx)
		if err != nil {
			return false, err
		}
		found.Add(r)
		w.progress(ComparedAgain, found.Records())
	}
	return found.Equal(&w.verified), nil
}

// topic returns the records of the topic from the first one that the log must hold.
func (w *walk) topic(ctx context.Context) (transfer.Records, error) {
	records, err := transfer.Topic(w.Client, w.name, "the topic").Records(ctx)
	if err != nil || w.base == nil {
		return records, err
	}
	return &after{Records: records, base: *w.base}, nil
}

// after are the records from that of a base on.
type after struct {
	transfer.Records
	base  record.Base
	begun bool
}

// Next returns the next record.
func (a *after) Next(ctx context.Context) (*kgo.Record, error) {
	for {
		r, err := a.Records.Next(ctx)
		if err != nil || a.begun || first(r, a.base) {
			a.begun = true
			return r, err
		}
	}
}

// first reports whether a record is the first one after a base.
func first(r *kgo.Record, b record.Base) bool {
	prev, sequence, ok := record.PrevOf(r.Value)
	return ok && sequence == b.Sequence && prev == b.Prev
}

// records returns the records of the archive from the first one that the log must hold.
func (w *walk) records(ctx context.Context) iter.Seq2[*kgo.Record, error] {
	return func(yield func(*kgo.Record, error) bool) {
		begun := w.base == nil
		for r, err := range w.Archive.Records(ctx, w.Client.Topic(w.name), w.from, math.MaxInt64) {
			if begun = begun || err != nil || first(r, *w.base); begun && !yield(r, err) {
				return
			}
		}
	}
}

// append appends the records after the first ones to a topic that ends at an offset, and returns how many the topic has got.
func (w *walk) append(ctx context.Context, found, end int64) (n int64, err error) {
	to, err := transfer.AppendAt(w.Client, w.name, "the topic", end)
	if err != nil {
		return 0, err
	}
	index := int64(0)
	for r, err := range w.records(ctx) {
		if err == nil && index >= found {
			err = to.Append(ctx, r)
		}
		if err != nil {
			err = errors.Join(err, to.Close(ctx))
			return to.Sent(), err
		}
		if index++; index > found {
			w.progress(Appended, index-found)
		}
	}
	err = to.Close(ctx)
	return to.Sent(), err
}
