package journal

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// term is one period of ownership of a partition: replay the log to its end, append a taken record, then decide
// commands until ownership ends. One goroutine uses it. The producer's callbacks and the reader send to that goroutine
// over channels.
type term struct {
	o      *Owner
	reads  *sync.WaitGroup // the reads of old records, which Run waits for at its end
	number int64
	taken  record.Hash // the hash of the record that opened the term

	state decide.State
	id    scalar.ID
	tip   record.Position // the last record decided; its offset is known only on completion
	last  scalar.Time     // of that record

	writer *kgo.Client
	acks   *acks
	unread []ack // results taken from acks and not processed
	reader *Reader
	shared *Tail // the reader's tail after the replay
	tail   chan batch
	lost   chan error         // the errors of sources that were silent at first: the log does not hold a position
	stop   context.CancelFunc // ends the goroutines of the reader and of those sources
	ended  sync.WaitGroup
	early  []record.Entry // read before the term was served
	inTerm int64          // the term of the last taken record applied

	flight   flight
	gathered accumulator
	held     fifo[heldReply]             // answers that need a record
	barrier  barrier                     // answers that do not
	pending  map[scalar.ID]pending       // requests whose work continues in steps
	again    fifo[*request]              // to be decided again, before the queue
	fates    map[scalar.ID]*record.Entry // the records that carried requests wait for; nil until replay meets them

	folded  bool  // the replay has reached the end that the log had
	alone   *slot // no other record may be in flight together with it
	resumed bool  // the requests of earlier terms have been answered or queued
	stalled bool  // nothing has been acknowledged for too long: no intake
	stepped bool  // the last decision was a step: a command is next

	jumped bool          // the wall clock has jumped and is not followed
	ahead  bool          // the log's time is ahead of the wall clock
	off    time.Duration // by which the log's time is ahead of it
}

// batch is the result of one read.
type batch struct {
	entries []record.Entry
	next    int64
	err     error
}

// errRules reports that the rules cannot continue.
var errRules = errors.New("the rules failed")

func newTerm(o *Owner, reads *sync.WaitGroup) *term {
	return &term{o: o, reads: reads, pending: make(map[scalar.ID]pending), tail: make(chan batch, 1),
		lost: make(chan error, len(o.cfg.Known)), acks: newAcks(), barrier: barrier{answers: make(chan int64, 1)}}
}

// run opens the term and serves it. opened reports whether its taken record was valid.
func (t *term) run(ctx context.Context) (opened bool, err error) {
	if err := t.open(ctx); err != nil {
		return false, err
	}
	t.o.meters.terms.Inc()
	t.o.log.Info("a term begins", "term", t.number, "sequence", t.tip.Sequence)
	return true, t.serve(ctx)
}

// open replays the journal to its end and appends a taken record. It repeats the latter while other records come first.
func (t *term) open(ctx context.Context) error {
	other := make(chan otherClock, 1)
	t.reads.Go(func() { other <- t.o.askClock(ctx) }) // concurrent with the replay
	if err := t.ground(ctx, other); err != nil {
		return err
	}
	known, silent, err := t.o.vouched(ctx)
	if err != nil {
		return err
	}
	// Read the end after the known positions: the process that stored a position had read the log up to it, so the log
	// reaches at least that far now, or has lost its end.
	end, err := t.o.cfg.Client.Tip(ctx, t.o.journal, t.o.cfg.Partition)
	if err != nil {
		return err
	}
	if err := t.fold(ctx, end, known); err != nil {
		return err
	}
	clock := <-other
	if err := t.o.checkClock(t.last, clock); err != nil {
		return err
	}
	t.setClock(clock)
	t.follow(ctx, silent)
	for {
		valid, err := t.take(ctx)
		if err != nil {
			return err
		}
		if valid {
			return nil
		}
	}
}

// ground appends the genesis record if the partition is empty. It returns an error if the clock is off: the genesis has
// the log's first time, and no later record may have an earlier one.
func (t *term) ground(ctx context.Context, other chan otherClock) error {
	end, err := t.o.cfg.Client.Tip(ctx, t.o.journal, t.o.cfg.Partition)
	if err != nil || end > 0 {
		return err
	}
	clock := <-other
	other <- clock
	if err := t.o.checkClock(0, clock); err != nil {
		return err
	}
	return t.o.appendGenesis(ctx)
}

// fold applies the journal up to an end offset and checks that it holds every known position.
//
// Other nodes may append during the fold. await applies the records after end, before this node's taken record or
// instead of it. They cannot undo a record applied here, because a valid record stays valid. But the log may lose its
// end during the fold. Then the reader stops at the new end, and a known position beyond that end reveals the loss.
func (t *term) fold(ctx context.Context, end int64, known []record.Position) error {
	passed, err := t.begun(ctx)
	if err != nil {
		return err
	}
	// Before replay, for two reasons. An owner that was superseded must find out before it replays a long log. And the
	// seed may cover the record of a carried request, which would otherwise be decided again.
	if err := t.passOver(ctx); err != nil {
		return err
	}
	check, err := t.checkPassed(ctx, known, passed)
	if err != nil {
		return err
	}
	if err := t.replay(ctx, end, check); err != nil {
		return err
	}
	for _, beyond := range check {
		// Either the log has lost its end, or a broker that has just lost the partition reported an older end: check
		// again.
		if err := t.o.cfg.Client.Holds(ctx, t.o.cfg.Rules, t.o.cfg.Partition, beyond...); err != nil {
			return err
		}
		return fmt.Errorf("journal: the fold ended at %v, before %v, which the log holds", t.tip, beyond[0])
	}
	if t.tip.IsBefore() {
		return &record.BrokenRecordError{Journal: t.o.journal, Partition: t.o.cfg.Partition, Offset: end - 1, Sequence: -1,
			Reason: "the partition holds records and no genesis"}
	}
	t.folded = true
	return nil
}

// begun makes the initial state of the replay, and its reader. passed are positions that the fold behind the seed has
// met.
func (t *term) begun(ctx context.Context) (passed []record.Position, err error) {
	t.state, t.tip = t.o.cfg.Rules.NewState(), record.Before
	var seed *record.Seed
	if t.o.cfg.Seed != nil {
		if seed, err = t.o.cfg.Seed(ctx); err != nil {
			return nil, fmt.Errorf("journal: loading a snapshot: %w", err)
		}
	}
	if seed != nil {
		t.state, t.tip, t.last, passed = seed.State, seed.Position, seed.Time, seed.Anchors
	}
	t.o.recent = recent{}
	t.fates = t.o.fates()
	t.reader = NewReader(t.o.cfg.Client, t.o.cfg.Rules, t.o.cfg.Partition, t.tip)
	if t.tip.IsBefore() {
		return passed, nil
	}
	t.reader.chain.SetTerm(seed.Term)
	t.inTerm = seed.Term
	// Verify the seed's position first. If the log does not hold it, nothing after it would ever arrive. And if no
	// records follow the seed, the replay would not verify it, nor identify the log.
	if err := t.reader.holds(ctx); err != nil {
		return nil, err
	}
	t.tip, t.id = t.reader.Position(), t.reader.chain.ID()
	t.o.anchors.Fill(passed)
	return passed, nil
}

// replay applies the records up to an end offset, and removes the known positions that it meets from check.
func (t *term) replay(ctx context.Context, end int64, check map[int64][]record.Position) error {
	var overtaken error
	err := t.reader.to(ctx, end, func(entries []record.Entry) error {
		for _, e := range entries {
			for _, p := range check[e.Position.Sequence] {
				if !p.Equal(e.Position) {
					return t.o.diverged(p, e.Position, "another record has its sequence")
				}
			}
			delete(check, e.Position.Sequence)
			if err := t.apply(e); err != nil {
				return err
			}
			// Do not return yet: the known positions beyond it must still be checked. And the records that carried
			// requests wait for are then applied when this node is assigned the partition again.
			if taken, ok := t.overtakes(e); ok {
				overtaken = t.foreign(taken)
			}
		}
		return nil
	})
	if err == nil {
		err = overtaken
	}
	return err
}

// checkPassed checks that the log holds the known positions before the start of the replay, and returns the later ones
// by sequence. passed are positions that the fold behind the seed has met.
func (t *term) checkPassed(ctx context.Context, known, passed []record.Position) (ahead map[int64][]record.Position, err error) {
	ahead = make(map[int64][]record.Position)
	var behind []record.Position
	for _, p := range known {
		switch {
		case p.IsBefore() || p.Equal(t.tip) || record.Contains(passed, p):
		case p.Sequence > t.tip.Sequence:
			ahead[p.Sequence] = append(ahead[p.Sequence], p)
		default:
			behind = append(behind, p)
		}
	}
	return ahead, t.o.cfg.Client.Holds(ctx, t.o.cfg.Rules, t.o.cfg.Partition, behind...)
}

// passOver reads records that the seed already covers. A carried request may have been recorded there, and so may a
// foreign term that this Run has not applied. A foreign term comes after the last record that this process knew to be
// acknowledged. A carried request's record may come before it: a term that ended before resume has acknowledged its
// taken record and answered no request.
func (t *term) passOver(ctx context.Context) error {
	from := t.o.acknowledged
	switch {
	case len(t.fates) > 0:
		from = t.o.behind
	case t.o.met == record.UnknownTerm:
		return nil
	}
	if t.tip.Sequence <= from.Sequence {
		return nil
	}
	r := NewReader(t.o.cfg.Client, t.o.cfg.Rules, t.o.cfg.Partition, from)
	defer r.Close()
	err := r.to(ctx, t.tip.Offset+1, func(entries []record.Entry) error {
		for _, e := range entries {
			t.decideFate(e)
			if taken, ok := t.overtakes(e); ok {
				return t.foreign(taken)
			}
		}
		return nil
	})
	if err == nil && r.Position().Sequence < t.tip.Sequence {
		err = fmt.Errorf("journal: the log ended at %v, before %v, which it held", r.Position(), t.tip)
	}
	return err
}

// apply applies a valid record that this term did not decide.
func (t *term) apply(e record.Entry) error {
	if err := t.evolve(e); err != nil {
		return fmt.Errorf("%w: %w", errRules, err)
	}
	r := e.Record
	t.id, t.tip, t.last = e.Journal, e.Position, r.Time
	if taken, ok := r.Events[0].(*record.TermStarted); ok {
		t.inTerm = taken.Term
	}
	t.o.anchors.Note(e.Position)
	t.o.recent.add(e)
	t.decideFate(e)
	return nil
}

// decideFate stores a record that a carried request waits for.
func (t *term) decideFate(e record.Entry) {
	if _, ok := t.fates[e.Record.Command.ID]; ok {
		t.fates[e.Record.Command.ID] = &e
	}
}

// overtakes reports whether a record opens a foreign term, and returns that. During replay only a term that this Run
// has not applied before is foreign: older terms are history.
func (t *term) overtakes(e record.Entry) (*record.TermStarted, bool) {
	taken, ok := e.Record.Events[0].(*record.TermStarted)
	if !ok {
		return nil, false
	}
	if _, own := t.o.sent[e.Record.Command.ID]; own {
		return nil, false
	}
	return taken, t.o.met != record.UnknownTerm && taken.Term > t.o.met
}

// follow starts the goroutine that passes on the reader's batches until the term ends. It also keeps asking the silent
// sources for their positions.
func (t *term) follow(ctx context.Context, silent []Known) {
	ctx, t.stop = context.WithCancel(context.WithoutCancel(ctx))
	t.barrier.ask = func() { t.askEnd(ctx) }
	for _, k := range silent {
		t.ended.Go(func() { t.askAgain(ctx, k) })
	}
	t.shared = t.reader.tail()
	t.ended.Go(func() {
		for {
			entries, next, err := t.shared.Next(ctx)
			select {
			case t.tail <- batch{entries, next, err}:
			case <-ctx.Done():
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
func (t *term) askAgain(ctx context.Context, k Known) {
	positions, err := t.o.positions(ctx, k)
	for attempt := 0; err != nil; attempt++ {
		if pause(ctx, attempt) != nil {
			return
		}
		positions, err = t.o.positions(ctx, k)
	}
	for _, p := range positions {
		if err := t.o.cfg.Client.Holds(ctx, t.o.cfg.Rules, t.o.cfg.Partition, p); record.Final(err) {
			t.lost <- err
			return
		}
	}
}

// close ends the term's producer and reader. After it, no other goroutine uses the term.
func (t *term) close() {
	t.closeWriter()
	if t.stop != nil {
		t.stop()
		t.ended.Wait()
	}
	switch {
	case t.shared != nil:
		t.shared.Close()
	case t.reader != nil:
		t.reader.Close()
	}
}

// take appends a taken record and reads until that record has passed. valid reports that no other record came first.
func (t *term) take(ctx context.Context) (valid bool, err error) {
	if err := t.openWriter(); err != nil {
		return false, err
	}
	taken := &record.TermStarted{Term: t.inTerm + 1, Node: t.o.cfg.Node, URL: t.o.cfg.URL, Build: t.o.cfg.Build}
	now := t.now()
	r := &record.Record{Sequence: t.tip.Sequence + 1, Prev: t.tip.Hash, Time: now, Outcome: decide.Accepted,
		Command: decide.Recorded{ID: record.NewCommandID(now.Std()), Type: record.TypeTermStarted, Actor: decide.Engine},
		Events:  []decide.Event{taken}}
	value, err := record.Encode(nil, r)
	if err != nil {
		return false, err
	}
	t.o.sent[r.Command.ID] = struct{}{}
	passed := make(chan ack, 1)
	t.writer.Produce(context.Background(), t.o.kafkaRecord(t.id, r, value), func(k *kgo.Record, err error) {
		passed <- ack{offset: k.Offset, err: err}
	})
	return t.await(ctx, r, sha256.Sum256(value), passed)
}

// await reads until it finds the taken record with the hash, or until another valid record comes first.
func (t *term) await(ctx context.Context, taken *record.Record, hash record.Hash, passed <-chan ack) (valid bool, err error) {
	var vanished <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case a := <-passed:
			// The append proves nothing yet: only the reader can report whether another valid record came first.
			if a.err != nil {
				return false, fmt.Errorf("journal: appending a taken record: %w", a.err)
			}
			// And the reader may never find it: if the log has lost its end, it holds neither the record nor any later
			// one. Without a limit, this term would wait forever and the partition would have no owner. The next term
			// replays the rest of the log and compares it with the known positions.
			limit := time.NewTimer(t.o.cfg.Deadline)
			defer limit.Stop()
			vanished = limit.C
		case <-vanished:
			return false, errors.New("journal: a taken record that was acknowledged was not seen in the log")
		case b := <-t.tail:
			if b.err != nil {
				return false, b.err
			}
			t.flight.next = b.next
			lost := false
			for i, e := range b.entries {
				if e.Position.Hash == hash {
					return true, t.begin(e, b.entries[i+1:])
				}
				if other, ok := e.Record.Events[0].(*record.TermStarted); ok {
					if _, own := t.o.sent[e.Record.Command.ID]; !own {
						return false, t.foreign(other)
					}
				}
				if err := t.apply(e); err != nil {
					return false, err
				}
				lost = true
			}
			if lost {
				t.o.log.Info("another record came before this node's taken record", "sequence", taken.Sequence)
				return false, nil
			}
		}
	}
}

// begin makes the valid taken record the base of this term's appends. Records read after it can only be skipped or
// foreign ones. serve looks at them first.
func (t *term) begin(e record.Entry, after []record.Entry) error {
	if err := t.apply(e); err != nil {
		return err
	}
	t.number, t.taken = t.inTerm, e.Position.Hash
	t.flight.last = e.Position
	t.early = after
	t.o.acknowledged = e.Position
	return nil
}

func (t *term) foreign(taken *record.TermStarted) error {
	return &ForeignTermError{Journal: t.o.journal, Partition: t.o.cfg.Partition, Term: taken.Term, Node: taken.Node}
}

// openWriter replaces the term's producer by a fresh one.
func (t *term) openWriter() error {
	t.closeWriter()
	w, err := t.o.cfg.Client.writer()
	if err != nil {
		return err
	}
	t.writer = w
	return nil
}

func (t *term) closeWriter() {
	if t.writer != nil {
		t.writer.Close()
		t.writer = nil
	}
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

func (o *Owner) diverged(have, found record.Position, reason string) error {
	return &record.DivergedError{Journal: o.journal, Partition: o.cfg.Partition, Have: have, Found: found, Reason: reason}
}
