package transfer

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Log is where the records of one journal are, or are to be.
type Log interface {
	// Records returns the records from the first one to the end that the log has now.
	Records(ctx context.Context) (Records, error)
	// Append returns an appender to the end of the log.
	Append(ctx context.Context) (Appender, error)
	// String says for a person where it is.
	String() string
}

// Records are read one after the other.
type Records interface {
	// Next returns the next record, or io.EOF.
	Next(ctx context.Context) (*kgo.Record, error)
	Close()
}

// Appender writes records in order. Nothing need be written before Close returns.
type Appender interface {
	Append(ctx context.Context, r *kgo.Record) error
	// Close writes what is left to write, has it synced, and returns nil if all of it is there.
	Close(ctx context.Context) error
}

// OtherError says that a target holds something else than the source. It was not changed.
type OtherError struct {
	Target string
	Record int64 // the number of the first record that differs, from 0
	Reason string
}

// Error says what differs.
func (e *OtherError) Error() string {
	return fmt.Sprintf("%s holds something else than the source, and was not changed: record %d %s", e.Target, e.Record, e.Reason)
}

// Summary is what a copy came to.
type Summary struct {
	Records int64           // that the log holds
	Skipped int64           // of them, by every reader
	After   int64           // of those, after the last valid record
	Found   int64           // of them, which the target held already
	Tip     record.Position // the last valid record; the offset is that of the target
}

// Copy makes the target hold what the source holds now, and checks that it does. tell, if it is not nil, is called now
// and then with how many records are done. Of a source whose history was changed it makes no whole copy: the error, a
// *record.DivergedError, says where.
func Copy(ctx context.Context, rules decide.Rules, from, to Log, tell func(records int64)) (Summary, error) {
	read, found, err := carry(ctx, rules, from, to, tell)
	if err != nil {
		return Summary{}, fmt.Errorf("copy %s from %s to %s: %w", rules.Journal(), from, to, err)
	}
	// What was written is read again: only that tells that it is there.
	written, err := examine(ctx, rules, to)
	if err != nil {
		return Summary{}, fmt.Errorf("read again what was copied to %s: %w", to, err)
	}
	tip, wrote := read.chain.Position(), written.chain.Position()
	if written.records != read.records || !tip.Equal(wrote) || string(written.sum.Sum(nil)) != string(read.sum.Sum(nil)) {
		return Summary{}, fmt.Errorf("%s does not hold what was copied to it: %d records up to %v, while %s has %d up to %v",
			to, written.records, wrote, from, read.records, tip)
	}
	return Summary{Records: read.records, Skipped: read.skipped, After: read.after, Found: found, Tip: wrote}, nil
}

// carry compares what the target holds with the source and appends the rest. It returns what it has read of the source,
// and how many records the target held.
func carry(ctx context.Context, rules decide.Rules, from, to Log, tell func(int64)) (_ *examination, found int64, err error) {
	source, err := from.Records(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer source.Close()
	read := newExamination(rules)
	if found, err = compare(ctx, source, to, read, tell); err != nil {
		return nil, 0, err
	}
	appender, err := to.Append(ctx)
	if err != nil {
		return nil, 0, err
	}
	for err == nil {
		var r *kgo.Record
		if r, err = source.Next(ctx); err != nil {
			break
		}
		if err = read.add(r); err == nil {
			err = appender.Append(ctx, r)
		}
		read.tell(tell)
	}
	if errors.Is(err, io.EOF) {
		err = read.chain.Torn()
	}
	// What was appended before an error is closed as well, so that the next attempt finds it.
	return read, found, errors.Join(err, appender.Close(ctx))
}

// compare reads as many records of the source as the target holds; they have to be the same. Nothing is changed before
// all of the target is known to be the beginning of the source.
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
		if part := differs(there, r); part != "" {
			return 0, &OtherError{to.String(), read.records, "has another " + part}
		}
		if err := read.add(r); err != nil {
			return 0, err
		}
		read.tell(tell)
	}
}

// differs names what differs between two records, other than their offsets, or returns "".
func differs(a, b *kgo.Record) string {
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

// examine reads all of a log.
func examine(ctx context.Context, rules decide.Rules, log Log) (*examination, error) {
	records, err := log.Records(ctx)
	if err != nil {
		return nil, err
	}
	defer records.Close()
	for x := newExamination(rules); ; {
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
	}
}

// examination is what is known of a log after its records were read.
type examination struct {
	chain            *journal.Verifier
	sum              hash.Hash // of all that a copy has to preserve
	records, skipped int64
	after            int64 // of the skipped, since the last valid record
}

func newExamination(rules decide.Rules) *examination {
	return &examination{chain: journal.NewVerifier(rules, 0), sum: sha256.New()}
}

// add takes the next record.
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
	x.number(r.Timestamp.UnixMilli())
	x.bytes(r.Key)
	x.bytes(r.Value)
	x.number(int64(len(r.Headers)))
	for _, h := range r.Headers {
		x.bytes([]byte(h.Key))
		x.bytes(h.Value)
	}
	return nil
}

// bytes adds bytes to the sum with their number before them, so that two records that differ never look the same.
func (x *examination) bytes(b []byte) {
	n := int64(len(b))
	if b == nil {
		n = -1
	}
	x.number(n)
	x.sum.Write(b)
}

func (x *examination) number(n int64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(n))
	x.sum.Write(b[:])
}

// tellEvery is how many records lie between two words on how far a copy is.
const tellEvery = 10000

func (x *examination) tell(tell func(int64)) {
	if tell != nil && x.records%tellEvery == 0 {
		tell(x.records)
	}
}
