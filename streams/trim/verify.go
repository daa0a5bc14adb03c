package trim

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/streams/archive"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/transfer"
)

// verification compares what a trim would delete with the archive.
type verification struct {
	client   *journal.Client
	archive  *archive.Archive
	extent   journal.Extent
	name     string
	progress func(records int64)
	compared int64
	stops    []Limit // found while comparing
}

// run compares the records of the topic with ranges of the archive, and returns the base after the last range at which the topic
// can be trimmed, with the offset of its record. It returns nil if there is none.
func (v *verification) run(ctx context.Context, ranges []archive.Sealed) (to *record.Base, offset int64, err error) {
	if len(ranges) == 0 {
		return nil, 0, nil
	}
	topic, err := transfer.Topic(v.client, v.name, "the topic").Records(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer topic.Close()
	next, stop := iter.Pull2(v.archive.Records(ctx, v.name, ranges[0].First, ranges[len(ranges)-1].Base.Sequence))
	defer stop()
	p := &pair{topic: topic, next: next, begins: v.extent, key: ranges[0].Object}
	if err := p.begin(ctx); err != nil {
		return nil, 0, err
	}
	for _, s := range ranges {
		p.key = s.Object
		for p.sequence < s.Base.Sequence-1 {
			if err := p.compare(ctx); err != nil {
				return nil, 0, err
			}
			if v.compared++; v.progress != nil && v.compared%10_000 == 0 {
				v.progress(v.compared)
			}
		}
		if p.hash != s.Base.Prev {
			return nil, 0, p.wrong(p.sequence, errors.New("its hash is not the one in the manifest"))
		}
		after, err := p.peek(ctx)
		switch {
		case errors.Is(err, io.EOF):
			v.stops = append(v.stops, Limit{s.First, "the topic has no record after the next range, and a trim leaves one at least"})
			return to, offset, nil
		case err != nil:
			return nil, 0, err
		}
		prev, sequence, ok := record.PrevOf(after.Value)
		if !ok || sequence != s.Base.Sequence || prev != s.Base.Prev {
			// The archive has the records that readers skip here in the range after this one.
			v.stops = append(v.stops, Limit{s.First, fmt.Sprintf("records that readers skip lie between the records %d and %d", s.Base.Sequence-1, s.Base.Sequence)})
			continue
		}
		to, offset, v.stops = &s.Base, after.Offset, nil
	}
	return to, offset, nil
}

// pair is an archive and a topic that are compared record by record.
type pair struct {
	topic    transfer.Records
	next     func() (*kgo.Record, error, bool)
	begins   journal.Extent
	key      string      // of the object that is read
	sequence int64       // of the last valid record compared
	hash     record.Hash // of that record
	ahead    *kgo.Record // read from the topic and not compared
	archived *kgo.Record // read from the archive and not compared
}

// begin moves both to the first record of the log. The topic may hold earlier records, and the archive has records that readers
// skip before the first one.
func (p *pair) begin(ctx context.Context) error {
	p.sequence = -1
	b := p.begins.Base
	if b == nil {
		return nil
	}
	p.sequence, p.hash = b.Sequence-1, b.Prev
	for p.ahead == nil {
		r, err := p.topic.Next(ctx)
		if err != nil {
			return err
		}
		if r.Offset >= p.begins.First {
			p.ahead = r
		}
	}
	for {
		r, err, ok := p.next()
		if err != nil {
			return err
		}
		if !ok {
			return p.wrong(b.Sequence, errors.New("the range has no valid record"))
		}
		if prev, sequence, ok := record.PrevOf(r.Value); ok && sequence == b.Sequence && prev == b.Prev {
			p.archived = r
			return nil
		}
	}
}

// peek returns the next record of the topic.
func (p *pair) peek(ctx context.Context) (*kgo.Record, error) {
	if p.ahead == nil {
		r, err := p.topic.Next(ctx)
		if err != nil {
			return nil, err
		}
		p.ahead = r
	}
	return p.ahead, nil
}

// compare compares one record of the archive with that of the topic.
func (p *pair) compare(ctx context.Context) error {
	r := p.archived
	if p.archived = nil; r == nil {
		var err error
		var ok bool
		r, err, ok = p.next()
		if err != nil {
			return err
		}
		if !ok {
			return p.wrong(p.sequence+1, errors.New("the range ends before its manifest says"))
		}
	}
	have, err := p.peek(ctx)
	if errors.Is(err, io.EOF) {
		return p.wrong(p.sequence+1, errors.New("the topic ends before this record"))
	}
	if err != nil {
		return err
	}
	p.ahead = nil
	if part := transfer.Differs(r, have); part != "" {
		return p.wrong(p.sequence+1, fmt.Errorf("the record at offset %d of the topic has another %s", have.Offset, part))
	}
	if prev, sequence, ok := record.PrevOf(r.Value); ok && sequence == p.sequence+1 && prev == p.hash {
		p.sequence, p.hash = sequence, sha256.Sum256(r.Value)
	}
	return nil
}

func (p *pair) wrong(sequence int64, err error) error {
	return &archive.Error{Key: p.key, Sequence: sequence, Damage: archive.Forked, Err: err}
}
