package wholelog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/streams/archive"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/transfer"
)

// Log returns a whole log: the records before its base from the archive, and the others from the topic. If the archive lacks
// them, Log calls lacking with the reason, and the log begins at its base. where describes the brokers for humans. h may be nil: then the log
// is that of the topic.
//
// Offsets ascend over the whole log. A topic that was restored begins at offset 0: its records get the offsets that follow those
// of the archive.
func Log(client *journal.Client, h journal.History, name, where string, lacking func(error)) transfer.Log {
	return &whole{Log: transfer.Topic(client, name, where), client: client, history: h, name: name, lacking: lacking}
}

type whole struct {
	transfer.Log // of the topic
	client       *journal.Client
	history      journal.History
	name         string
	lacking      func(error)
}

// Base returns nil if the archive has the records before the base.
func (w *whole) Base(ctx context.Context) (*record.Base, error) {
	b, err := w.Log.Base(ctx)
	if err != nil || b == nil || w.history == nil {
		return b, err
	}
	err = w.history.Holds(ctx, *b)
	if errors.Is(err, journal.ErrHistory) {
		w.lacking(err)
		return b, nil
	}
	return nil, err
}

// Records reads the archive and then the topic.
func (w *whole) Records(ctx context.Context) (transfer.Records, error) {
	rest, err := w.Log.Records(ctx)
	if err != nil {
		return nil, err
	}
	begins, err := w.Base(ctx)
	if err != nil {
		rest.Close()
		return nil, err
	}
	at, err := w.client.TrimmedAt(ctx, w.name, 0)
	if err != nil || at == nil || begins != nil {
		if err != nil {
			rest.Close()
		}
		return rest, err
	}
	e, err := w.client.Extent(ctx, w.name, 0)
	if err != nil {
		rest.Close()
		return nil, err
	}
	next, stop := iter.Pull2(w.history.Records(ctx, w.name, 0, 0, e.Base.Sequence))
	return &joined{next: next, stop: stop, rest: rest, first: e.First}, nil
}

// joined are the records of an archive and then those of a topic from an offset on.
type joined struct {
	next  func() (*kgo.Record, error, bool)
	stop  func()
	over  bool  // the archive is read
	last  int64 // offset of the last record of the archive
	rest  transfer.Records
	first int64 // offset of the topic
}

// Next returns the next record.
func (j *joined) Next(ctx context.Context) (*kgo.Record, error) {
	if !j.over {
		r, err, ok := j.next()
		if ok {
			if err == nil {
				j.last = r.Offset
			}
			return r, err
		}
		j.over = true
	}
	for {
		r, err := j.rest.Next(ctx)
		if err != nil {
			return nil, err
		}
		if r.Offset >= j.first {
			r.Offset += max(0, j.last+1-j.first)
			return r, nil
		}
	}
}

// Close closes both.
func (j *joined) Close() { j.stop(); j.rest.Close() }

// Archived returns the records of an archive from a record on as a log that can be copied. from is 0, or the end of a full range.
func Archived(a *archive.Archive, name string, from int64) transfer.Log {
	return &archived{a, name, from}
}

type archived struct {
	archive *archive.Archive
	name    string
	from    int64
}

// String names the archive.
func (a *archived) String() string { return "the archive" }

// Base returns the base at the end of the ranges before the first record.
func (a *archived) Base(context.Context) (*record.Base, error) { return BaseAt(a.archive, a.from) }

// BaseAt returns the base of a log that begins at a record, which is that of a full range's end. It is nil for the genesis.
func BaseAt(a *archive.Archive, from int64) (*record.Base, error) {
	if from == 0 {
		return nil, nil
	}
	for _, s := range a.Sealed() {
		if s.Base.Sequence == from {
			return &s.Base, nil
		}
	}
	return nil, fmt.Errorf("no range of the archive ends before record %d", from)
}

// Records returns the records. Their offsets are those of the topic that was archived.
func (a *archived) Records(ctx context.Context) (transfer.Records, error) {
	next, stop := iter.Pull2(a.archive.Records(ctx, a.name, a.from, math.MaxInt64))
	return &pulled{next, stop}, nil
}

// Append returns an error: archives are written by an archive.Writer.
func (a *archived) Append(context.Context, *record.Base) (transfer.Appender, error) {
	return nil, errors.ErrUnsupported
}

type pulled struct {
	next func() (*kgo.Record, error, bool)
	stop func()
}

// Next returns the next record.
func (p *pulled) Next(context.Context) (*kgo.Record, error) {
	r, err, ok := p.next()
	if !ok {
		return nil, io.EOF
	}
	return r, err
}

// Close ends the reading.
func (p *pulled) Close() { p.stop() }
