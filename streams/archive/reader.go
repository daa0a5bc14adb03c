package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"runtime"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// verify decodes all chunks, several at the same time, and compares the object with its manifest.
func (o *object) verify(ctx context.Context, d *decoders) error {
	done := make([]*verified, len(o.chunks))
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(runtime.GOMAXPROCS(0))
	for i := range o.chunks {
		work.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			v, err := o.chunk(d, i)
			if err == nil {
				d.columns.Free(v.values)
				v.values = nil
			}
			done[i] = v
			return err
		})
	}
	if err := work.Wait(); err != nil {
		return err
	}
	return o.compare(done)
}

// compare checks that verified chunks are the records of the manifest.
func (o *object) compare(chunks []*verified) error {
	m := o.manifest
	c, hash, next, offset, values := newContent(), m.Start, m.First, m.FirstOffset-1, int64(0)
	skipped := int64(0)
	for i, v := range chunks {
		if v.Start != hash || v.First != next || v.Offset <= offset || i == 0 && v.Offset != m.FirstOffset {
			return o.wrong(next, errChain)
		}
		for j, s := range v.sequences {
			e := entry{kafka: v.parts[j], sequence: s, hash: v.hashes[j]}
			if e.kafka == nil {
				e.plain, e.kafka = true, new(kgo.Record)
			}
			e.kafka.Offset = v.offsets[j]
			c.add(&e)
			if s >= 0 {
				next = s + 1
			} else {
				skipped++
			}
		}
		hash, offset, values = v.end, v.offsets[len(v.offsets)-1], values+int64(v.Values)
	}
	var sum record.Hash
	copy(sum[:], c.sum.Sum(nil))
	switch {
	case hash != m.Base.Prev, next != m.Base.Sequence, next != m.First+m.Records:
		return o.wrong(next, fmt.Errorf("it ends before record %d with hash %v, and its manifest before record %d with %v", next, hash, m.Base.Sequence, m.Base.Prev))
	case sum != m.Content, offset != m.LastOffset, skipped != m.Skipped, values != m.Values:
		return o.wrong(m.First, errors.New("its records are not those of its manifest"))
	}
	return nil
}

func (o *object) wrong(sequence int64, err error) error {
	return &Error{Key: o.manifest.Object, Sequence: sequence, Damage: Damaged, Err: err}
}

// Summary is what Verify has found.
type Summary struct {
	Ranges  int64       // full ones
	Records int64       // valid ones, with those of the tail
	Skipped int64       // records that readers skip
	Values  int64       // bytes of the values of all records
	Bytes   int64       // of the objects
	Tail    int64       // valid records of the tail
	Base    record.Base // of the log that goes on after the archive; zero if it is empty
}

// Verify reads all objects and verifies every record. Its error is an *Error, or that of the store or the context. tell, if it is
// not nil, is called after each object with the number of valid records so far.
func (a *Archive) Verify(ctx context.Context, tell func(records int64)) (Summary, error) {
	var sum Summary
	d, err := a.decoders()
	if err != nil {
		return sum, err
	}
	for _, m := range a.parts() {
		o, err := readObject(ctx, &a.cfg, m)
		if err != nil {
			return sum, err
		}
		if err := o.verify(ctx, d); err != nil {
			return sum, err
		}
		sum.Records, sum.Skipped, sum.Values, sum.Bytes = sum.Records+m.Records, sum.Skipped+m.Skipped, sum.Values+m.Values, sum.Bytes+m.Bytes
		sum.Base = m.Base
		if a.tail != nil && m == &a.tail.Manifest {
			sum.Tail = m.Records
		} else {
			sum.Ranges++
		}
		if tell != nil {
			tell(sum.Records)
		}
	}
	return sum, a.TailDamage()
}

// Chunks returns all records of an archive in order, in pieces that several goroutines decode ahead.
type Chunks struct {
	ctx     context.Context
	archive *Archive
	parts   []*Manifest
	d       *decoders

	object *object
	next   func() (*verified, error)
	stop   func()
	left   int         // chunks of the object
	done   []*verified // without values: what the manifest is compared with
}

// Chunks returns the records from the first one on. The caller must call Close.
func (a *Archive) Chunks(ctx context.Context) (*Chunks, error) {
	d, err := a.decoders()
	if err != nil {
		return nil, err
	}
	return &Chunks{ctx: ctx, archive: a, parts: a.parts(), d: d}, nil
}

// Next returns the next chunk, or io.EOF. Its records are verified. That the chunks of an object are those of the manifest is
// checked after the last one. The error is an *Error, or an error of the store or the context.
func (c *Chunks) Next(context.Context) (Chunk, error) {
	for c.left == 0 {
		if err := c.end(); err != nil {
			return Chunk{}, err
		}
		if len(c.parts) == 0 {
			return Chunk{}, cmp.Or(c.archive.TailDamage(), io.EOF)
		}
		o, err := readObject(c.ctx, &c.archive.cfg, c.parts[0])
		if err != nil {
			return Chunk{}, err
		}
		c.object, c.parts, c.left, c.done = o, c.parts[1:], len(o.chunks), nil
		all := make([]int, len(o.chunks))
		for i := range all {
			all[i] = i
		}
		c.next, c.stop = o.ahead(c.ctx, c.d, all)
	}
	v, err := c.next()
	if v == nil {
		return Chunk{}, err
	}
	c.left--
	rest := *v
	rest.values, rest.ends = nil, nil
	c.done = append(c.done, &rest)
	return Chunk{c.object, v}, nil
}

// end compares the last object with its manifest.
func (c *Chunks) end() error {
	if c.object == nil {
		return nil
	}
	c.stop()
	o := c.object
	c.object = nil
	return o.compare(c.done)
}

// Close ends the decoding.
func (c *Chunks) Close() {
	if c.object != nil {
		c.stop()
		c.object = nil
	}
}

// Chunk is a piece of an archive: verified records of the topic in order, with those that readers skip.
type Chunk struct {
	object *object
	*verified
}

// Len returns the number of records, 0 for the zero Chunk.
func (c Chunk) Len() int {
	if c.verified == nil {
		return 0
	}
	return len(c.sequences)
}

// Record returns a record of the topic: its offset, its value, and the value's hash. kafka is nil if key, headers and timestamp
// are those that a writer gives to the value. The caller MUST NOT change the value.
func (c Chunk) Record(i int) (offset int64, value []byte, hash record.Hash, kafka *kgo.Record) {
	value = c.value(i)
	if p := c.parts[i]; p != nil {
		kafka = &kgo.Record{Partition: c.object.log.partition, Offset: c.offsets[i], Key: p.Key, Headers: p.Headers, Timestamp: p.Timestamp, Value: value}
	}
	return c.offsets[i], value, c.hashes[i], kafka
}

// Records returns the records of the topic with the sequences [from, to), exactly as the topic had them: offset, timestamp, key,
// headers, and value. A record that readers skip counts to the valid record after it. The records are verified before they are
// returned. After an error no record follows. topic is the name that the records get.
func (a *Archive) Records(ctx context.Context, topic string, from, to int64) iter.Seq2[*kgo.Record, error] {
	return func(yield func(*kgo.Record, error) bool) {
		b := newRebuilder(topic)
		err := a.each(ctx, from, to, func(o *object, v *verified, i int) bool {
			r, err := o.kafka(v, i, b)
			return yield(r, err) && err == nil
		})
		if err != nil {
			yield(nil, err)
		}
	}
}

// Stored is Records for a reader of the log, with the hashes that were verified. Of a plain record it does not make the key, the
// headers and the timestamp. The caller MUST NOT change a record.
func (a *Archive) Stored(ctx context.Context, from, to int64) iter.Seq2[journal.Stored, error] {
	return func(yield func(journal.Stored, error) bool) {
		err := a.each(ctx, from, to, func(o *object, v *verified, i int) bool { return yield(o.stored(v, i), nil) })
		if err != nil {
			yield(journal.Stored{}, err)
		}
	}
}

// Values returns the values of the valid records with the sequences [from, to). They are verified before they are returned. After an
// error no value follows. The caller MUST NOT change a value.
func (a *Archive) Values(ctx context.Context, from, to int64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		err := a.each(ctx, from, to, func(_ *object, v *verified, i int) bool {
			return v.sequences[i] < 0 || yield(v.value(i), nil)
		})
		if err != nil {
			yield(nil, err)
		}
	}
}

// each calls do with the records of the sequences [from, to), verified and in order, until it returns false. A record that readers
// skip counts to the valid record after it.
func (a *Archive) each(ctx context.Context, from, to int64, do func(o *object, v *verified, i int) bool) error {
	d, err := a.decoders()
	if err != nil {
		return err
	}
	for i, m := range a.parts() {
		// A full range ends with a valid record. A tail may have skipped ones after it, which count to the next record.
		full := i < len(a.sealed)
		if m.Base.Sequence < from || full && m.Base.Sequence == from || m.First >= to {
			continue
		}
		o, err := readObject(ctx, &a.cfg, m)
		if err != nil {
			return err
		}
		if more, err := o.each(ctx, d, from, to, do); err != nil || !more {
			return err
		}
	}
	return a.untorn(to)
}

// ahead decodes chunks in order, several at the same time.
func (o *object) ahead(ctx context.Context, d *decoders, chunks []int) (next func() (*verified, error), stop func()) {
	type result struct {
		v   *verified
		err error
	}
	ctx, cancel := context.WithCancel(ctx)
	results := make(chan chan result, runtime.GOMAXPROCS(0))
	var working sync.WaitGroup
	working.Go(func() {
		defer close(results)
		for _, i := range chunks {
			one := make(chan result, 1)
			select {
			case results <- one: // waits while as many chunks as processors are ahead
			case <-ctx.Done():
				return
			}
			working.Go(func() {
				v, err := o.chunk(d, i)
				one <- result{v, err}
			})
		}
	})
	next = func() (*verified, error) {
		one, ok := <-results
		if !ok {
			return nil, ctx.Err()
		}
		r := <-one
		return r.v, r.err
	}
	return next, func() { cancel(); working.Wait() }
}

// each is that of Archive for one object. It returns false once do did.
func (o *object) each(ctx context.Context, d *decoders, from, to int64, do func(o *object, v *verified, i int) bool) (more bool, err error) {
	var wanted []int
	for i, h := range o.heads {
		if h.First < to && (i+1 == len(o.heads) || o.heads[i+1].First >= from) {
			wanted = append(wanted, i)
		}
	}
	next, stop := o.ahead(ctx, d, wanted)
	defer stop()
	for range wanted {
		v, err := next()
		if v == nil {
			return false, err
		}
		before := v.First // the next valid record, before which a skipped one comes
		for i, s := range v.sequences {
			at := before
			if s >= 0 {
				before = s + 1
			}
			if at < from {
				continue
			}
			if at >= to {
				return true, nil
			}
			if !do(o, v, i) {
				return false, nil
			}
		}
	}
	return true, nil
}

// kafka returns a record as the topic had it.
func (o *object) kafka(v *verified, i int, b *rebuilder) (*kgo.Record, error) {
	if v.parts[i] != nil {
		r := o.stored(v, i).Record
		r.Topic = b.topic
		return r, nil
	}
	r, err := b.rebuild(o.log, v.offsets[i], v.value(i))
	if err != nil {
		return nil, o.wrong(v.sequences[i], err)
	}
	return r, nil
}

// stored returns a record without what its value determines.
func (o *object) stored(v *verified, i int) journal.Stored {
	r := &kgo.Record{Partition: o.log.partition, Offset: v.offsets[i], Value: v.value(i)}
	p := v.parts[i]
	if p != nil {
		r.Key, r.Headers, r.Timestamp = p.Key, p.Headers, p.Timestamp
		if p.Value == nil {
			r.Value = nil
		}
	}
	return journal.Stored{Record: r, Sequence: v.sequences[i], Hash: v.hashes[i], Plain: p == nil}
}
