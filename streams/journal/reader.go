package journal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// Reader reads the valid records of one partition, in order, from a position on. It is not safe for concurrent use.
//
// It never trusts the place where it left off: whenever it opens a session with the brokers (at the start, after a
// broken connection, when the brokers report a loss of data, and once for each run of records that it skips) it
// begins with the record at its position and compares the hash. Where another record is there, or the log ends before
// it, the reader looks the position up by its sequence, since the log may have been copied. A log that does not hold it
// anywhere is a *record.DivergedError. There is no offset reset.
type Reader struct {
	client    *Client
	rules     decide.Rules
	partition int32
	contact   *Contact
	chain     *record.Chain
	next      int64 // the offset after the last record observed
	end       int64 // the high watermark, as the session was last told
	backlog   *backlog

	session   *session
	verifying bool // the next record must be the one at the position
	polled    time.Time
	verified  bool    // the position was verified within the present run of skipped records
	attempts  int     // since the last success
	doubts    int     // how often in a row the log was said not to begin at its beginning
	moved     bool    // the position's record is not where it was last seen
	lookup    *lookup // of it, under way
	err       error
	audit     bool
}

// NewReader returns a reader that goes on after from. It does not connect before the first Poll.
func NewReader(client *Client, rules decide.Rules, partition int32, from record.Position) *Reader {
	r := &Reader{client: client, rules: rules, partition: partition, contact: client.Contact(rules.Journal()),
		chain: record.NewChain(rules, partition, from), next: from.Offset + 1, backlog: newBacklog(rules.Registry())}
	r.chain.UseCache(client.built(submit.Shard{Journal: rules.Journal(), Partition: partition}))
	return r
}

// Audit makes the reader check the key, the headers and the timestamp of every valid record as well. A deviation ends
// it with a *record.BrokenRecordError.
func (r *Reader) Audit() { r.audit = true }

// Poll waits for valid records and returns at least one. Errors of the brokers are retried for ever; what it returns
// is final: a *record.DivergedError, a *record.BrokenRecordError, or the context's error.
func (r *Reader) Poll(ctx context.Context) ([]record.Entry, error) {
	for {
		entries, _, err := r.Next(ctx)
		if err != nil || len(entries) > 0 {
			return entries, err
		}
	}
}

// Next is Poll for those who also want to know how far the log was observed: it returns when the reader has moved
// on, even if all that it saw were records to skip. next is the offset after the last record observed.
func (r *Reader) Next(ctx context.Context) (entries []record.Entry, next int64, err error) {
	return r.advance(ctx, false)
}

// verifiedPosition reports whether the log was seen, in this session, to hold the position.
func (r *Reader) verifiedPosition() bool {
	return r.err == nil && r.session != nil && !r.session.broken.Load() && !r.verifying
}

// atTip reports whether the reader stands, verified, at the end that the log had when the brokers last told it.
func (r *Reader) atTip() bool { return r.verifiedPosition() && r.next >= r.end }

// farBehind reports whether more is left to read, in a log that was seen to hold the position, than a feed holds.
func (r *Reader) farBehind() bool { return r.verifiedPosition() && r.end-r.next > feedRecords }

// advance is Next, and returns without anything new if it is at the tip and shall not wait there.
func (r *Reader) advance(ctx context.Context, tip bool) (entries []record.Entry, next int64, err error) {
	if r.err != nil {
		return nil, r.next, r.err
	}
	before := r.next
	for len(entries) == 0 && r.next == before {
		if err := ctx.Err(); err != nil {
			return nil, r.next, err
		}
		if r.session != nil && r.session.broken.Load() {
			// What was fetched over two connections is not one log until the position is verified.
			if err := r.backOff(ctx); err != nil {
				return nil, r.next, err
			}
			r.closeSession()
		}
		if r.session == nil {
			if r.moved { // which may be for the second time, where the brokers contradict each other
				if err := r.backOff(ctx); err != nil {
					return nil, r.next, err
				}
			}
			if err := r.open(ctx); err != nil {
				return nil, r.next, r.keepFinal(err)
			}
		}
		if tip && r.atTip() {
			return nil, r.next, nil
		}
		if r.backlog.empty() {
			if fetched, err := r.fetch(ctx); err != nil {
				return nil, r.next, err
			} else if !fetched {
				continue
			}
		}
		entries, err = r.read()
		if err = r.keepFinal(err); err != nil && len(entries) == 0 {
			return nil, r.next, err
		}
	}
	return entries, r.next, nil
}

// fetch waits for records. It returns false if it lost its place with the brokers instead.
func (r *Reader) fetch(ctx context.Context) (ok bool, err error) {
	if err := r.gather(ctx); err != nil {
		return false, err
	}
	fetches := r.poll(ctx)
	r.polled = time.Now()
	if ctx.Err() != nil && fetches.NumRecords() == 0 {
		return false, ctx.Err()
	}
	if r.verifying && fetches.NumRecords() == 0 && errors.Is(fetches.Err0(), context.DeadlineExceeded) {
		r.moved = true // nothing lies at the hint, nor after it
		r.closeSession()
		return false, nil
	}
	if err := fetches.Err(); err != nil && !errors.Is(err, ctx.Err()) {
		r.contact.failed()
		r.client.cfg.Logger.Info("the journal's reader lost its place with the brokers and goes back to its position",
			"journal", r.chain.Journal(), "partition", r.partition, "error", err)
		r.closeSession()
		return false, r.backOff(ctx)
	}
	if r.session.broken.Load() {
		return false, nil
	}
	if !r.verifying {
		r.attempts = 0
	}
	var records []*kgo.Record
	fetches.EachPartition(func(p kgo.FetchTopicPartition) {
		r.end = max(r.end, p.HighWatermark)
		r.contact.end.Store(p.HighWatermark)
		if records == nil {
			records = p.Records
		} else {
			records = append(records, p.Records...)
		}
	})
	r.backlog.put(records)
	return true, nil
}

// verifyWithin is how long the record at the position is waited for where the position should be.
const verifyWithin = 5 * time.Second

// poll waits for records: for the first one of a session, which is there already, not for ever.
func (r *Reader) poll(ctx context.Context) kgo.Fetches {
	if r.verifying {
		some, cancel := context.WithDeadline(ctx, r.session.opened.Add(verifyWithin))
		defer cancel()
		ctx = some
	}
	return r.session.kafka.PollFetches(ctx)
}

// keepFinal remembers a final error, so that the records before it can be returned first and it comes back on every
// later call.
func (r *Reader) keepFinal(err error) error {
	if record.Final(err) {
		r.err = err
		r.alarm(err)
		r.closeSession()
	}
	return err
}

// alarm counts what ends a reader for good. Its user tells why.
func (r *Reader) alarm(err error) {
	kind := alarmBroken
	var diverged *record.DivergedError
	if errors.As(err, &diverged) {
		kind = alarmDiverged
	}
	r.client.cfg.Metrics.Alarms.WithLabelValues(r.chain.Journal(), kind).Inc()
}

func (r *Reader) backOff(ctx context.Context) error {
	r.attempts++
	return pause(ctx, r.attempts)
}

// read applies the rule of validity to the next piece of what was fetched.
func (r *Reader) read() (entries []record.Entry, err error) {
	if r.verifying && !r.backlog.empty() {
		if r.verify(r.backlog.first()); r.moved {
			return nil, nil
		}
	}
	records, seen := r.backlog.next(r.chain.SkipsDecoding())
	entries = make([]record.Entry, 0, len(records))
	for i, message := range records {
		if message.Offset < r.chain.Position().Offset+1 {
			continue
		}
		var entry record.Entry
		var ok bool
		if seen != nil {
			entry, ok, err = r.chain.AdmitDecoded(message.Offset, message.Value, seen[i])
		} else {
			entry, ok, err = r.chain.Admit(message.Offset, message.Value)
		}
		if err != nil {
			return entries, err
		}
		if !ok {
			// A run of foreign records may be all that is left of a log that was replaced. Once for each run.
			if !r.verified && !r.chain.Position().IsBefore() {
				r.verified = true
				r.closeSession()
				return entries, nil
			}
			if message.Offset >= r.next {
				r.client.cfg.Metrics.Skipped.WithLabelValues(r.chain.Journal()).Inc()
			}
			r.next = max(r.next, message.Offset+1)
			continue
		}
		if r.audit {
			if err := VerifyKafka(entry, r.chain.Journal(), message); err != nil {
				return entries, r.chain.Broken(message.Offset, entry.Record.Sequence, err.Error(), err)
			}
		}
		r.verified = false
		r.next = max(r.next, message.Offset+1)
		entries = append(entries, entry)
	}
	return entries, nil
}

// verify compares the first record of a session with the position. Another one says that the hint is past: the log may
// still hold the position, elsewhere.
func (r *Reader) verify(record *kgo.Record) {
	if record.Offset == r.chain.Position().Offset && matches(record, r.chain.Position()) {
		r.verifying, r.attempts = false, 0
		return
	}
	r.moved = true
	r.closeSession()
}

func (r *Reader) diverged(found record.Position, reason string) error {
	return &record.DivergedError{Journal: r.chain.Journal(), Partition: r.partition, Have: r.chain.Position(), Found: found, Reason: reason}
}

// open starts a session at the position, when the log still reaches that far. It tries for ever.
func (r *Reader) open(ctx context.Context) error {
	r.closeSession()
	return r.persist(ctx, r.tryOpen)
}

// persist tries for ever, until the error is final or the context ends.
func (r *Reader) persist(ctx context.Context, try func(context.Context) error) error {
	for {
		err := try(ctx)
		if err == nil || record.Final(err) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		r.contact.failed()
		level := slog.LevelDebug
		if r.attempts%16 == 8 { // the first seconds are those of a start or a failover
			level = slog.LevelWarn
		}
		r.client.cfg.Logger.Log(ctx, level, "a journal can't be read for now", "journal", r.chain.Journal(),
			"partition", r.partition, "error", err)
		if err := r.backOff(ctx); err != nil {
			return err
		}
	}
}

func (r *Reader) tryOpen(ctx context.Context) error {
	if err := r.locate(ctx); err != nil {
		return err
	}
	// The session begins with the record at the position although that was just found: what was asked before may have been
	// another broker's log than the one that is consumed now.
	at := r.chain.Position()
	s, err := r.client.session(r.chain.Journal(), r.partition, max(at.Offset, 0))
	if err != nil {
		return err
	}
	r.session, r.verifying = s, !at.IsBefore()
	return nil
}

// locate finds out which log it is, where it ends, and where the record at the position lies if the log does not hold it
// where it was last seen.
func (r *Reader) locate(ctx context.Context) error {
	at := r.chain.Position()
	start, end, err := r.client.bounds(ctx, r.chain.Journal(), r.partition)
	if err != nil {
		return err
	}
	r.contact.answered()
	r.contact.end.Store(end)
	if start > 0 {
		return r.doubt(r.diverged(record.Position{Offset: start, Sequence: -1}, fmt.Sprintf("the log begins at offset %d", start)))
	}
	r.doubts = 0
	if !at.IsBefore() && (r.moved || end <= at.Offset) {
		if err := r.find(ctx); err != nil {
			return err
		}
	}
	if !at.IsBefore() && r.chain.ID().IsZero() {
		genesis, err := r.client.genesis(ctx, r.chain.Journal(), r.partition)
		if err != nil {
			return err
		}
		if genesis == nil {
			return r.diverged(record.Position{Offset: end - 1, Sequence: -1}, "the log has no genesis")
		}
		r.chain.SetID(genesis.JournalID)
	}
	r.end = end
	return nil
}

// doubt returns the divergence, or an error that is not final while the brokers have to be asked again.
func (r *Reader) doubt(diverged error) error {
	if r.doubts++; r.doubts < certain {
		return fmt.Errorf("journal: asking again, since %s", diverged.Error()) // not wrapped: it isn't believed yet
	}
	return diverged
}

// find looks the position up by its sequence, since its record is not where it was last seen, and corrects the hint. A
// *record.DivergedError says that the log does not hold it.
func (r *Reader) find(ctx context.Context) error {
	at := r.chain.Position()
	if r.lookup == nil {
		r.lookup = r.client.lookup(r.rules, r.partition, at)
	}
	if err := r.lookup.try(ctx); err != nil {
		return err
	}
	l, err := r.client.locator(ctx, r.chain.Journal(), r.partition)
	if err != nil {
		return err
	}
	offset, err := l.firstCopy(ctx, at, r.lookup.at[at.Hash])
	if err != nil {
		return err
	}
	if offset != at.Offset {
		r.client.cfg.Logger.Info("a journal's record lies at another offset than it did", "journal", r.chain.Journal(), "partition", r.partition,
			"sequence", at.Sequence, "offset", offset, "was", at.Offset)
	}
	r.chain.SetOffset(offset)
	r.next, r.lookup, r.moved = offset+1, nil, false
	return nil
}

// holds returns nil if the log holds the reader's position, without reading on. The position's offset is then where its
// record lies, and the journal's identity is known. It starts no session: to end one that has hardly begun to consume is a
// data race in kgo, between Close and the first fetch that its metadata sets going.
func (r *Reader) holds(ctx context.Context) error {
	r.moved = !r.chain.Position().IsBefore() // so that it is looked up
	return r.persist(ctx, r.locate)
}

// Position returns the position of the last record that was returned.
func (r *Reader) Position() record.Position { return r.chain.Position() }

// Term returns the term that the last record is in; -1 if that isn't known because the reader started in the middle.
func (r *Reader) Term() int64 { return r.chain.Term() }

// Close ends the reader's connections. It may be polled again and then opens new ones.
func (r *Reader) Close() { r.closeSession() }

func (r *Reader) closeSession() {
	r.backlog.drop() // it is the session's
	if r.session != nil {
		r.session.closed.Store(true)
		r.session.kafka.Close()
		r.session = nil
	}
}

// session is one Kafka client that consumes one partition, from its connecting until something happens to it.
type session struct {
	kafka  *kgo.Client
	opened time.Time
	broken atomic.Bool // a fetch failed, so that the next one may be answered by another log

	contact *Contact
	closed  atomic.Bool // what fails from now on fails for that
}

// session starts to consume a partition at an offset.
func (c *Client) session(journal string, partition int32, offset int64) (*session, error) {
	s := &session{opened: time.Now(), contact: c.Contact(journal)}
	kafka, err := c.KafkaFor(ForReading,
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{c.Topic(journal): {partition: kgo.NewOffset().At(offset)}}),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.KeepRetryableFetchErrors(),
		kgo.FetchMaxPartitionBytes(maxMessage),
		kgo.FetchMaxBytes(4*maxMessage),
		kgo.WithHooks(s),
	)
	if err != nil {
		return nil, err
	}
	s.kafka = kafka
	return s, nil
}

const keyFetch = 1

// OnBrokerE2E implements kgo.HookBrokerE2E: a fetch that failed on the wire means that the next one goes over another
// connection.
func (s *session) OnBrokerE2E(_ kgo.BrokerMetadata, key int16, e2e kgo.BrokerE2E) {
	switch {
	case key != keyFetch:
	case e2e.Err() == nil:
		s.contact.answered()
	default:
		s.broken.Store(true)
		if !s.closed.Load() {
			s.contact.failed()
		}
	}
}

// ErrNoRecord says that a journal does not reach as far as the sequence that was asked for.
var ErrNoRecord = errors.New("no such record yet")

func noRecord(journal string, partition int32, sequence int64) error {
	return fmt.Errorf("journal: %s/%d has no record %d: %w", journal, partition, sequence, ErrNoRecord)
}
