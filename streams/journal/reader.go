package journal

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// Reader reads the valid records of one partition, in order, from a position. It is not safe for concurrent use.
//
// It never trusts a stored offset. Whenever it opens a session with the brokers (at the start, after a broken
// connection, when the brokers report data loss, and once for each run of skipped records) it first reads the record at
// its position again and compares the hash. If another record is at that offset, or the log ends before it, the reader
// searches for the position by its sequence, because the log may be a copy. If the log does not hold the position at
// all, the error is a *record.DivergedError. The reader never resets its offset.
//
// In a trimmed log, the record of the base verifies the position just before it, because that record names the hash. After an
// earlier position, the reader takes the records before the base from the client's History, and verifies them as those of the
// topic. Without them, the error is a *record.TrimmedError.
type Reader struct {
	client    *Client
	rules     decide.Rules
	partition int32
	contact   *Contact
	counted   bool // the contact counts this reader
	chain     *record.Chain
	next      int64 // the offset after the last record read
	end       int64 // the high watermark last reported to the session
	backlog   *backlog
	session   *session
	polled    time.Time
	err       error // the final one
	audit     bool
	raw       func(*kgo.Record) // gets all records, valid or not; may be nil

	positionState
	baseState
	pace
}

// positionState says where the topic holds the reader's position, and whether that is verified.
type positionState struct {
	verifying bool     // the next record must be the one at the position
	verified  bool     // the position was verified within the current run of skipped records
	found     int64    // offset at which the position was last verified
	based     bool     // the position's record is gone, and the next one is that of the base
	hinted    bool     // no record after the position has shown that its offset is that of its first copy
	moved     bool     // the position's record is not at the hinted offset, or that holds a later copy of it
	finding   *finding // the attempt to find the position, in progress
	lookup    *lookup  // the search of earlier attempts that were not conclusive
}

// baseState holds what the reader needs to read past the base of a trimmed log.
type baseState struct {
	past    *past // records before the base are read from the history; nil otherwise
	until   int64 // the last record that the caller has asked for, beyond which the history is not read ahead; -1 if not known
	lost    bool  // the topic does not lead from the position to the base
	need    int64 // the first record that the caller needs, if the reader may start at the base; else 0
	passing *span // a base that the reader has not passed yet; nil for none
}

// pace limits how often a reader asks the brokers, and how long it waits for them.
type pace struct {
	attempts int           // since the last success
	retryAt  time.Time     // the brokers are not asked before
	within   time.Duration // verifyWithin, except in tests
	slow     int           // number of sessions in succession that did not get the record at the position in time
}

// NewReader returns a reader that continues after from. It connects at the first Poll.
func NewReader(client *Client, rules decide.Rules, partition int32, from record.Position) *Reader {
	r := &Reader{client: client, rules: rules, partition: partition, contact: client.Contact(rules.Journal()),
		chain: record.NewChain(rules, partition, from), next: from.Offset + 1, backlog: newBacklog(rules.Registry()),
		audit: client.cfg.Audit, positionState: positionState{hinted: !from.IsBefore()}, baseState: baseState{until: record.Before.Sequence},
		pace: pace{within: verifyWithin}}
	client.cfg.Metrics.beginReader(rules.Journal())
	r.chain.UseCache(client.Encoded(submit.Shard{Journal: rules.Journal(), Partition: partition}))
	return r
}

// Audit makes the reader also check the key, the headers and the timestamp of every valid record that it decodes. A deviation ends
// the reader with a *record.BrokenRecordError.
func (r *Reader) Audit() { r.audit = true }

// OrBase lets the reader start at the base if the log does not hold its position any more and the caller needs only the
// records from a sequence on, which must not be before the base. It must be called before the first Poll.
func (r *Reader) OrBase(need int64) { r.need = need }

// Poll waits for valid records and returns at least one. It retries errors of the brokers without limit. Its errors are
// final: a *record.DivergedError, a *record.BrokenRecordError, or the context's error.
func (r *Reader) Poll(ctx context.Context) ([]record.Entry, error) {
	for {
		entries, _, err := r.Next(ctx)
		if err != nil || len(entries) > 0 {
			return entries, err
		}
	}
}

// Next is Poll for callers that also need the observed end of the log. It also returns when the reader has only
// advanced past records to skip. next is the offset after the last record read.
func (r *Reader) Next(ctx context.Context) (entries []record.Entry, next int64, err error) {
	return r.advance(ctx, false)
}

// verifiedPosition reports whether the log was seen in this session to hold the position.
func (r *Reader) verifiedPosition() bool {
	return r.err == nil && r.session != nil && !r.session.broken.Load() && !r.verifying
}

// atTip reports whether the reader has verified its position and reached the last reported end of the log.
func (r *Reader) atTip() bool { return r.verifiedPosition() && r.next >= r.end }

// farBehind reports whether the reader has verified its position and more records are left to read than a feed retains.
func (r *Reader) farBehind() bool { return r.verifiedPosition() && r.end-r.next > feedRecords }

// advance is Next. With tip it also returns when the reader is at the tip, without waiting there.
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
			// Records from two connections do not form one log until the position is verified.
			r.retryLater()
			r.closeSession()
		}
		if r.session == nil && r.past == nil {
			if err := r.open(ctx); err != nil {
				return nil, r.next, r.keepFinal(err)
			}
		}
		if r.past != nil {
			if entries, err = r.readPast(ctx); err == nil || len(entries) > 0 {
				_ = r.keepFinal(err)
				continue
			}
			if err = r.keepFinal(err); record.Final(err) {
				return nil, r.next, err
			}
			if ctx.Err() != nil {
				return nil, r.next, ctx.Err()
			}
			r.client.cfg.Logger.Warn("the archive can't be read for now", "journal", r.chain.Journal(), "partition", r.partition, "error", err)
			r.retryLater()
			continue
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

// fetch waits for records. It returns false if the session broke instead.
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
		r.slow++
		r.notHere() // and no record after it
		return false, nil
	}
	if err := fetches.Err(); err != nil && !errors.Is(err, ctx.Err()) {
		r.contact.failed()
		r.client.cfg.Logger.Info("the journal's reader lost its place with the brokers and goes back to its position",
			"journal", r.chain.Journal(), "partition", r.partition, "error", err)
		r.retryLater()
		r.closeSession()
		return false, nil
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

// verifyWithin is how long the reader waits for the record at its position. On a busy machine it may take longer to connect and to
// fetch. So from the third attempt on, the reader waits twice as long each time, up to verifyAtMost. The first two are short, because
// a broker that does not answer is replaced within seconds.
const (
	verifyWithin = 5 * time.Second
	verifyAtMost = 80 * time.Second
)

// patience returns how long to wait for the record at the position.
func (p *pace) patience() time.Duration {
	return min(p.within<<min(max(p.slow-1, 0), 20), verifyAtMost)
}

// poll waits for records. The wait for the first record of a session is limited, because that record should exist.
func (r *Reader) poll(ctx context.Context) kgo.Fetches {
	if r.verifying {
		limited, cancel := context.WithDeadline(ctx, r.session.opened.Add(r.patience()))
		defer cancel()
		ctx = limited
	}
	return r.session.kafka.PollFetches(ctx)
}

// keepFinal stores a final error, so that the records before it can be returned first and every later call returns it
// again.
func (r *Reader) keepFinal(err error) error {
	if record.Final(err) {
		r.err = err
		r.client.cfg.Metrics.countFinal(r.chain.Journal(), err) // the reader's caller reports the reason
		r.closeSession()
	}
	return err
}

// admit applies the rule of validity to record i of a piece. The reader of an audit also compares its key and headers, which
// are not stored for a plain record, unless the record is one that the reader does not decode.
func (r *Reader) admit(t taken, i int) (entry record.Entry, ok bool, err error) {
	message := t.records[i]
	if t.seen == nil {
		entry, ok, err = r.chain.Admit(message.Offset, message.Value)
	} else {
		entry, ok, err = r.chain.AdmitDecoded(message.Offset, message.Value, t.seen[i])
	}
	if err == nil && ok && r.audit && entry.Record != nil && (t.stored == nil || !t.stored[i].Plain) {
		if err := VerifyKafka(entry, r.chain.Journal(), message); err != nil {
			return entry, false, r.chain.Broken(message.Offset, entry.Record.Sequence, err.Error(), err)
		}
	}
	return entry, ok, err
}

// read applies the rule of validity to the next piece of the fetched records.
func (r *Reader) read() (entries []record.Entry, err error) {
	if r.verifying && !r.backlog.empty() {
		if r.verify(); r.moved {
			return nil, nil
		}
	}
	next := r.backlog.next(r.chain.SkipsDecoding())
	entries = make([]record.Entry, 0, len(next.records))
	for i, message := range next.records {
		if message.Offset < r.chain.Position().Offset+1 {
			continue
		}
		if err := r.pass(message.Offset); err != nil {
			var gone *record.TrimmedError
			if r.lost = r.client.cfg.History != nil && errors.As(err, &gone); r.lost {
				r.closeSession()
				return entries, nil
			}
			return entries, err
		}
		entry, ok, err := r.admit(next, i)
		if err != nil {
			return entries, err
		}
		if !ok {
			// If the log was replaced, this run of foreign records may be its only content. Verify once for each run. If the
			// hinted offset is that of a later copy, the records after the first copy were missed.
			if !r.verified && !r.chain.Position().IsBefore() {
				r.verified, r.moved = true, r.hinted
				r.closeSession()
				return entries, nil
			}
			if message.Offset >= r.next {
				r.client.cfg.Metrics.Skipped.WithLabelValues(r.chain.Journal()).Inc()
				if r.raw != nil {
					r.raw(message)
				}
			}
			r.next = max(r.next, message.Offset+1)
			continue
		}
		if r.raw != nil {
			r.raw(message)
		}
		r.verified, r.based, r.hinted = false, false, false
		r.next = max(r.next, message.Offset+1)
		entries = append(entries, entry)
	}
	return entries, nil
}

// pass checks a reader that started before the base when it reaches the base. The reader may have started at a later copy of
// a record, after a trim deleted the first copy. Then the records after the first copy are missing.
func (r *Reader) pass(offset int64) error {
	s := r.passing
	if s == nil || offset < s.first {
		return nil
	}
	r.passing = nil
	switch at, before := r.chain.Position(), s.base.Before(); {
	case at.Sequence > before.Sequence || at.Equal(before):
		return nil
	case at.Sequence == before.Sequence:
		return r.diverged(before, "the base has another hash for its sequence")
	case r.need >= s.base.Sequence:
		r.chain.StartAt(*s.base)
		r.chain.SetOffset(s.first - 1)
		return nil
	default:
		return s.trimmed(at)
	}
}

// verify compares the first record of a session with the position. If they differ, the hint is obsolete: the log may
// still hold the position at another offset. If the position's record is gone, verify expects the one after it instead,
// and leaves that to be read.
func (r *Reader) verify() {
	at, first := r.chain.Position(), r.backlog.peek()
	right := first.Offset == at.Offset && matches(first, at)
	if r.based {
		right = first.Offset == at.Offset+1 && follows(first, at)
	}
	if !right {
		r.notHere()
		return
	}
	if !r.based {
		r.backlog.first()
	}
	r.verifying, r.attempts, r.slow, r.found = false, 0, 0, at.Offset
}

// notHere ends a session that does not begin with the record at the position. The pause is for brokers that contradict each
// other.
func (r *Reader) notHere() {
	r.moved = true
	r.retryLater()
	r.closeSession()
}

func (r *Reader) diverged(found record.Position, reason string) error {
	return &record.DivergedError{Journal: r.chain.Journal(), Partition: r.partition, Have: r.chain.Position(), Found: found, Reason: reason}
}

// Position returns the position of the last record that was returned.
func (r *Reader) Position() record.Position { return r.chain.Position() }

// Term returns the term of the last record, or -1 if it is unknown because the reader started in the middle.
func (r *Reader) Term() int64 { return r.chain.Term() }

// Close closes the reader's connections. The reader may be polled again and then opens new ones.
func (r *Reader) Close() {
	r.stopFinding()
	r.closeSession()
	if r.counted {
		r.counted = false
		r.contact.closed()
	}
}

func (r *Reader) closeSession() {
	r.backlog.drop() // the records belong to the session
	if r.past != nil {
		r.past.stop()
		r.past = nil
	}
	if r.session != nil {
		r.session.closed.Store(true)
		r.session.kafka.Close()
		r.session = nil
	}
}

// session is one Kafka client that consumes one partition, until it fails or is closed.
type session struct {
	kafka  *kgo.Client
	opened time.Time
	broken atomic.Bool // a fetch failed; the next one may reach another log

	contact *Contact
	closed  atomic.Bool // later errors are caused by closing
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

// OnBrokerE2E implements kgo.HookBrokerE2E. If a fetch fails on the wire, the next one uses another connection.
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

// ErrNoRecord reports that a journal ends before the requested sequence.
var ErrNoRecord = errors.New("no such record yet")

func noRecord(journal string, partition int32, sequence int64) error {
	return fmt.Errorf("journal: %s/%d has no record %d: %w", journal, partition, sequence, ErrNoRecord)
}
