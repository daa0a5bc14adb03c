package journal

import (
	"context"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/term"
)

// termIO is the producer, the reader and the goroutines of one term. Their results go to the owner's goroutine over
// channels.
type termIO struct {
	o     *Owner
	ctx   context.Context // of the goroutines; it ends with the term and not with Run, which drains
	stop  context.CancelFunc
	ended sync.WaitGroup  // the goroutines
	reads *sync.WaitGroup // the reads of old records, which Run waits for at its end

	reader *Reader
	shared *Tail // the reader's tail after the replay
	tail   chan batch
	ends   chan term.LogEnd // has a buffer of one; one question is open at any time
	lost   chan error       // the errors of sources that were silent at first: the log does not hold a position

	// The owner's goroutine sets the following, under Owner.mu: no input that another goroutine passes leads to an output that
	// uses them. A new producer has a new queue. Late results of the earlier one are dropped: the log decides which of its
	// records exist.
	producer *kgo.Client
	number   uint64
	acks     *acks

	// Buffers, of the owner's goroutine.
	acked    []term.Ack
	decided  []time.Duration
	requests []*term.Request
}

// batch is the result of one read.
type batch struct {
	entries []record.Entry
	next    int64
	err     error
}

func (o *Owner) newTermIO(ctx context.Context, reads *sync.WaitGroup) *termIO {
	t := &termIO{o: o, reads: reads, tail: make(chan batch, 1), ends: make(chan term.LogEnd, 1), lost: make(chan error, len(o.cfg.Known)),
		acks: newAcks()}
	t.ctx, t.stop = context.WithCancel(context.WithoutCancel(ctx))
	o.mu.Lock()
	o.io = t
	o.mu.Unlock()
	return t
}

// follow starts the goroutine that passes on the reader's batches until the term ends. It also keeps asking the silent
// sources for their positions.
func (t *termIO) follow(silent []Known) {
	for _, k := range silent {
		t.ended.Go(func() { t.askAgain(k) })
	}
	t.shared = t.reader.tail()
	t.ended.Go(func() {
		for {
			entries, next, err := t.shared.Next(t.ctx)
			select {
			case t.tail <- batch{entries, next, err}:
			case <-t.ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	})
}

// askAgain asks a source that was silent when the term was taken, until it answers. If the source knows a position that
// the log does not hold, the term ends. That limits the records on top of a log that has lost its end to those
// acknowledged before the source answered.
func (t *termIO) askAgain(k Known) {
	o := t.o
	positions, err := o.positions(t.ctx, k)
	for attempt := 0; err != nil; attempt++ {
		if pause(t.ctx, attempt) != nil {
			return
		}
		positions, err = o.positions(t.ctx, k)
	}
	for _, p := range positions {
		if err := o.cfg.Client.Holds(t.ctx, o.cfg.Rules, o.cfg.Partition, p); record.Final(err) {
			t.lost <- err
			return
		}
	}
}

// askEnd requests the end of the log from the brokers. It retries until they answer or the term ends.
func (t *termIO) askEnd(question uint64) {
	t.ended.Go(func() {
		for attempt := 0; ; attempt++ {
			end, err := t.o.cfg.Client.Tip(t.ctx, t.o.journal, t.o.cfg.Partition)
			if err == nil {
				t.ends <- term.LogEnd{Question: question, Offset: end}
				return
			}
			if pause(t.ctx, attempt) != nil {
				return
			}
		}
	})
}

// readAt reads an old record for a request.
func (t *termIO) readAt(q term.ReadAt) {
	o := t.o
	t.reads.Go(func() {
		o.reading <- struct{}{}
		defer func() { <-o.reading }()
		ctx, cancel := context.WithTimeout(context.Background(), o.cfg.Deadline-(o.clock.Elapsed()-q.Request.Since))
		defer cancel()
		found := term.Found{Request: q.Request}
		e, err := o.cfg.Client.ReadAt(ctx, o.cfg.Rules, o.cfg.Partition, q.From, q.Sequence)
		if err != nil {
			o.log.Warn("reading a record to repeat its answer", "sequence", q.Sequence, "error", err)
		} else {
			found.Entry = &e
		}
		_, _ = o.step(found)
	})
}

// open replaces the producer by a fresh one.
func (t *termIO) open(number uint64) error {
	t.closeProducer()
	p, err := t.o.cfg.Client.writer()
	if err != nil {
		return err
	}
	t.producer, t.number, t.acks = p, number, newAcks()
	return nil
}

func (t *termIO) closeProducer() {
	if t.producer != nil {
		t.producer.Close()
		t.producer = nil
	}
}

// produce hands records to the producer. counted says that the metrics count them.
func (t *termIO) produce(records []term.Append, counted bool) {
	to := t.o.address(records[0].Entry.Journal)
	messages, acks := make([]message, len(records)), t.acks
	for i, a := range records {
		sequence, decided := a.Entry.Record.Sequence, a.At
		if !counted {
			decided = notCounted
		}
		t.producer.Produce(context.Background(), messages[i].fill(to, a.Entry.Record, a.Entry.Value), func(k *kgo.Record, err error) {
			acks.put(sequence, k.Offset, err, decided)
		})
	}
}

// acknowledged returns the producer's results as an input, and counts them.
func (t *termIO) acknowledged() term.Acked {
	t.acked, t.decided = t.acks.take(t.acked, t.decided)
	now, m := t.o.clock.Elapsed(), &t.o.meters
	for i, a := range t.acked {
		if at := t.decided[i]; a.Err == nil && at != notCounted {
			m.appends.Inc()
			m.appendTime.Observe((now - at).Seconds())
		}
	}
	return term.Acked{Producer: t.number, Acks: t.acked}
}

// close ends the producer, the reader and the goroutines. It returns the results that the producer reported last.
func (t *termIO) close() []term.Ack {
	t.closeProducer() // until it returns, the producer's callbacks add results
	rest, _ := t.acks.take(nil, nil)
	t.stop()
	t.ended.Wait()
	switch {
	case t.shared != nil:
		t.shared.Close()
	case t.reader != nil:
		t.reader.Close()
	}
	return rest
}

// writer returns a producer for one term. No request's context is attached to a record, because canceling one record of
// a batch fails its neighbors. The producer retries without limit: only the log settles whether a record was appended.
func (c *Client) writer() (*kgo.Client, error) {
	return c.KafkaFor(ForWriting,
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ProducerLinger(0),
		kgo.StopProducerOnDataLossDetected(),
		kgo.ProducerBatchMaxBytes(maxMessage),
		kgo.MaxBufferedRecords(2*windowRecords),
		kgo.MaxBufferedBytes(2*windowBytes),
	)
}

// address returns the common parts of the partition's Kafka records.
func (o *Owner) address(id scalar.ID) *address {
	if o.to.journal != id {
		o.to = newAddress(o.cfg.Client.Topic(o.journal), o.journal, o.cfg.Partition, id)
	}
	return &o.to
}

func (o *Owner) kafkaRecord(id scalar.ID, r *record.Record, value []byte) *kgo.Record {
	return new(message).fill(o.address(id), r, value)
}
