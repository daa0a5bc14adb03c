package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Log is the source or the target of a copy: the records of one journal.
type Log interface {
	// Base returns where a trimmed log begins, or nil for one that begins with its genesis or is empty.
	Base(ctx context.Context) (*record.Base, error)
	// Records returns the records from the first one to the current end of the log.
	Records(ctx context.Context) (Records, error)
	// Append returns an appender to the end of the log. b is the base of the source, or nil. A file stores it.
	Append(ctx context.Context, b *record.Base) (Appender, error)
	// String returns a description of the location for humans.
	String() string
}

// Records is a sequence of records.
type Records interface {
	// Next returns the next record, or io.EOF at the end.
	Next(ctx context.Context) (*kgo.Record, error)
	Close()
}

// Appender writes records in order. It may buffer them until Close returns.
type Appender interface {
	Append(ctx context.Context, r *kgo.Record) error
	// Close writes and syncs all buffered records. It returns nil only if every record is durable.
	Close(ctx context.Context) error
}

// OtherError reports that a target has other content than the source. The target was not changed.
type OtherError struct {
	Target string
	Record int64 // index of the first record that differs, from 0
	Reason string
}

// Error names the record and the difference.
func (e *OtherError) Error() string {
	return fmt.Sprintf("%s holds something else than the source, and was not changed: record %d %s", e.Target, e.Record, e.Reason)
}

// Summary is the result of a copy.
type Summary struct {
	Records int64 // number of records in the log
	Skipped int64 // number of those that every reader skips
	After   int64 // number of skipped records after the last valid one
	Found   int64 // number of records that the target already had
	// Restored is the number of records that had a timestamp of a broker. In the target they have the time in their value.
	Restored int64
	Tip      record.Position // last valid record; the offset is that of the target
	Base     *record.Base    // where the log begins; nil for its genesis
}

// Copy makes the target hold all records that the source has now, and verifies the result. Where brokers have replaced the timestamp
// of a record, the target gets the one that the owner produced. tell, if it is not nil, is
// called after each record with the number of records copied, and then with the number of records read again in the target. If the history of the source was changed, Copy stops with a
// *journal.DivergedError that names the record.
func Copy(ctx context.Context, rules decide.Rules, from, to Log, tell func(work string, records int64)) (Summary, error) {
	b, err := from.Base(ctx)
	if err != nil {
		return Summary{}, fmt.Errorf("copy %s from %s: %w", rules.Journal(), from, err)
	}
	read, found, err := carry(ctx, rules, b, from, to, telling(tell, "copied"))
	if err != nil {
		return Summary{}, fmt.Errorf("copy %s from %s to %s: %w", rules.Journal(), from, to, err)
	}
	// Only reading the target again proves that it holds the records.
	written, err := examine(ctx, rules, b, to, telling(tell, "read again"))
	if err != nil {
		return Summary{}, fmt.Errorf("read again what was copied to %s: %w", to, err)
	}
	tip, wrote := read.chain.Position(), written.chain.Position()
	if !tip.Equal(wrote) || !written.sum.Equal(&read.sum) {
		return Summary{}, fmt.Errorf("%s does not hold what was copied to it: %d records up to %v, while %s has %d up to %v",
			to, written.records, wrote, from, read.records, tip)
	}
	return Summary{Records: read.records, Skipped: read.skipped, After: read.after, Found: found, Restored: read.restored,
		Tip: wrote, Base: b}, nil
}

// carry compares the target's records with the source and appends the missing ones. It returns the examination of the
// source, and the number of records that the target had.
func carry(ctx context.Context, rules decide.Rules, b *record.Base, from, to Log, tell func(int64)) (_ *examination, found int64, err error) {
	source, err := from.Records(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer source.Close()
	read := newExamination(rules, b)
	if found, err = compare(ctx, source, to, read, tell); err != nil {
		return nil, 0, err
	}
	appender, err := to.Append(ctx, b)
	if err != nil {
		return nil, 0, err
	}
	for err == nil {
		var r *kgo.Record
		if r, err = source.Next(ctx); err != nil {
			break
		}
		read.restore(r)
		if err = read.add(r); err == nil {
			err = appender.Append(ctx, r)
		}
		read.tell(tell)
	}
	if errors.Is(err, io.EOF) {
		err = read.chain.Torn()
	}
	// The appender is closed even after an error, so that the next attempt finds the records appended so far.
	return read, found, errors.Join(err, appender.Close(ctx))
}

// compare reads as many records of the source as the target has, and checks that they are equal. The target is not
// changed before it is known to be a prefix of the source.
func compare(ctx context.Context, source Records, to Log, read *examination, tell func(int64)) (found int64, err error) {
	target, err := to.Records(ctx)
	if err != nil {
		return 0, err
	}
	defer target.Close()
	for {
		there, err := target.Next(ctx)
		if errors.Is(err, io.EOF) {
			return read.records, nil
		}
		if err != nil {
			return 0, fmt.Errorf("what %s holds: %w", to, err)
		}
		r, err := source.Next(ctx)
		if errors.Is(err, io.EOF) {
			return 0, &OtherError{to.String(), read.records, "is not in the source, which ends before it"}
		}
		if err != nil {
			return 0, err
		}
		read.restore(r)
		if part := Differs(there, r); part != "" {
			return 0, &OtherError{to.String(), read.records, "has another " + part}
		}
		if err := read.add(r); err != nil {
			return 0, err
		}
		read.tell(tell)
	}
}

// Differs returns the name of the first part in which two records differ, not counting offsets, or "".
func Differs(a, b *kgo.Record) string {
	same := func(a, b []byte) bool { return string(a) == string(b) && (a == nil) == (b == nil) }
	switch {
	case !same(a.Value, b.Value):
		return "value"
	case !same(a.Key, b.Key):
		return "key"
	case a.Timestamp.UnixMilli() != b.Timestamp.UnixMilli():
		return "timestamp"
	case len(a.Headers) != len(b.Headers):
		return "number of headers"
	}
	for i, h := range a.Headers {
		if h.Key != b.Headers[i].Key || !same(h.Value, b.Headers[i].Value) {
			return "header " + h.Key
		}
	}
	return ""
}

// examine reads a whole log.
func examine(ctx context.Context, rules decide.Rules, b *record.Base, log Log, tell func(int64)) (*examination, error) {
	records, err := log.Records(ctx)
	if err != nil {
		return nil, err
	}
	defer records.Close()
	for x := newExamination(rules, b); ; {
		r, err := records.Next(ctx)
		if errors.Is(err, io.EOF) {
			return x, nil
		}
		if err == nil {
			err = x.add(r)
		}
		if err != nil {
			return nil, err
		}
		x.tell(tell)
	}
}

// examination summarizes the records read from a log.
type examination struct {
	chain            *journal.Verifier
	sum              Sum
	records, skipped int64
	after            int64 // number of skipped records since the last valid one
	restored         int64 // number of timestamps restored
}

// newExamination begins at a base, or at the genesis if b is nil.
func newExamination(rules decide.Rules, b *record.Base) *examination {
	x := &examination{chain: journal.NewVerifier(rules, 0)}
	if b != nil {
		x.chain.StartAt(*b)
	}
	return x
}

// restore restores the timestamp of the next record, if brokers have replaced it.
func (x *examination) restore(r *kgo.Record) {
	if journal.RestoreTimestamp(r) {
		x.restored++
	}
}

// add processes the next record.
func (x *examination) add(r *kgo.Record) error {
	valid, err := x.chain.Verify(r)
	if err != nil {
		return err
	}
	x.after++
	if valid {
		x.after = 0
	} else {
		x.skipped++
	}
	x.records++
	x.sum.Add(r)
	return nil
}

// telling returns tell for one kind of work.
func telling(tell func(string, int64), work string) func(int64) {
	if tell == nil {
		return nil
	}
	return func(records int64) { tell(work, records) }
}

func (x *examination) tell(tell func(int64)) {
	if tell != nil {
		tell(x.records)
	}
}
