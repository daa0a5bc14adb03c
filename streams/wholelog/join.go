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

	"github.com/perpetua-exchange/perpetua/streams/archive"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/transfer"
)

// Join returns the log that begins with all records of an archive, and its tail, and continues with those of a topic. The topic may have
// lost its beginning anywhere, also within a range, where Log finds no base. It must hold the last valid record of the archive or the
// one after that. If it has lost offsets between the two, it must also end with a valid record. Otherwise the valid record after the
// archive may be lost, and the topic may hold one with the same sequence from a deposed owner. topic returns the records of the topic
// from the first one that it still has.
func Join(a *archive.Archive, name string, topic transfer.Log) transfer.Log {
	if End(a) == nil {
		return topic
	}
	return &join{Log: topic, archive: a, name: name}
}

type join struct {
	transfer.Log // of the topic
	archive      *archive.Archive
	name         string
}

// String names both.
func (j *join) String() string { return "archive, and then the " + j.Log.String() }

// Base returns nil: an archive begins with the genesis.
func (j *join) Base(context.Context) (*record.Base, error) { return nil, nil }

// Records reads the archive and then the topic.
func (j *join) Records(ctx context.Context) (transfer.Records, error) {
	rest, err := j.Log.Records(ctx)
	if err != nil {
		return nil, err
	}
	next, stop := iter.Pull2(j.archive.Records(ctx, j.name, 0, math.MaxInt64))
	return &joining{join: j, next: next, stop: stop, rest: rest, end: record.Before, last: -1}, nil
}

// joining are the records of an archive and then those of a topic.
type joining struct {
	*join
	next func() (*kgo.Record, error, bool)
	stop func()
	rest transfer.Records

	over bool            // the archive is read
	end  record.Position // its last valid record
	last int64           // offset of its last record, which may be skipped

	begun  bool            // the topic has got to the end of the archive
	shift  int64           // added to the offsets of the topic
	queued []*kgo.Record   // of the topic, to be returned first
	bytes  int             // of the values in queued before the topic has begun
	gap    bool            // the topic has lost offsets after the archive
	tip    record.Position // last valid record of the topic after such a gap
	after  int64           // records after tip, which readers skip
}

// maxQueued is the most bytes of skipped records that are kept for a topic that has not got to the end of the archive. One that never
// does may have any number.
const maxQueued = 16 << 20

// Next returns the next record.
func (j *joining) Next(ctx context.Context) (*kgo.Record, error) {
	if !j.over {
		if r, err, ok := j.next(); ok {
			if err == nil {
				j.pass(r)
			}
			return r, err
		}
		j.over = true
	}
	if !j.begun {
		if err := j.begin(ctx); err != nil {
			return nil, err
		}
	}
	for len(j.queued) == 0 {
		r, err := j.rest.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil, j.ended()
		}
		if err != nil {
			return nil, err
		}
		if r.Offset+j.shift <= j.last {
			if !follows(r, j.end) {
				continue // the archive has what readers skip after its last valid record
			}
			j.shift = j.last + 1 - r.Offset // the topic began with a later copy of the last valid record
		}
		j.queued = append(j.queued, r)
	}
	r := j.queued[0]
	j.queued = j.queued[1:]
	r.Offset += j.shift
	if j.gap {
		j.passTip(r)
	}
	return r, nil
}

// passTip follows the chain in a topic with a gap.
func (j *joining) passTip(r *kgo.Record) {
	if j.after++; follows(r, j.tip) {
		j.tip, j.after = following(j.tip, r), 0
	}
}

// ended returns io.EOF, or the error of a topic with a gap that does not end with a valid record.
func (j *joining) ended() error {
	if j.gap && j.after > 0 {
		return fmt.Errorf("join %s: the topic has lost offsets after the archive, and its last %d records do not follow its record %d: record %d may be lost",
			j.name, j.after, j.tip.Sequence, j.end.Sequence+1)
	}
	return io.EOF
}

// pass follows the chain in the archive.
func (j *joining) pass(r *kgo.Record) {
	j.last = r.Offset
	if follows(r, j.end) {
		j.end = following(j.end, r)
	}
}

// following returns the position of the record after a position.
func following(p record.Position, r *kgo.Record) record.Position {
	return record.Position{Offset: r.Offset, Sequence: p.Sequence + 1, Hash: sha256.Sum256(r.Value)}
}

// follows reports whether a record is the valid one after a position.
func follows(r *kgo.Record, p record.Position) bool {
	prev, sequence, ok := record.PrevOf(r.Value)
	return ok && prev == p.Hash && sequence == p.Sequence+1
}

// begin reads the topic up to the last valid record of the archive, or to the one after that. It keeps the skipped records before the
// latter that the archive does not have, up to maxQueued.
func (j *joining) begin(ctx context.Context) error {
	if want := End(j.archive).Before(); !j.end.Equal(want) {
		return fmt.Errorf("join %s: the archive leads to %v, and its last manifest says %v", j.name, j.end, want)
	}
	for first := int64(-1); ; {
		r, err := j.rest.Next(ctx)
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("join %s: the topic holds neither record %d of the archive, which is its last one, nor a record that follows it", j.name, j.end.Sequence)
		}
		if err != nil {
			return err
		}
		if first < 0 {
			first = r.Offset
		}
		switch {
		case follows(r, j.end):
			j.gap, j.tip = first > j.last+1, j.end
			j.queued = append(j.queued, r)
			j.shift = max(0, j.last+1-j.queued[0].Offset)
		case sha256.Sum256(r.Value) == j.end.Hash:
			j.queued, j.shift = nil, j.end.Offset-r.Offset
		default:
			if r.Offset > j.last {
				j.keep(r)
			}
			continue
		}
		j.begun = true
		return nil
	}
}

// keep queues a skipped record, and drops the first ones beyond maxQueued.
func (j *joining) keep(r *kgo.Record) {
	j.queued, j.bytes = append(j.queued, r), j.bytes+len(r.Value)
	for j.bytes > maxQueued {
		j.bytes -= len(j.queued[0].Value)
		j.queued = j.queued[1:]
	}
}

// Close closes both.
func (j *joining) Close() { j.stop(); j.rest.Close() }
