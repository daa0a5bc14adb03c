package journal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/streams/base"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// askBase is the timeout for asking the sources of bases.
const askBase = 2 * time.Second

// span is where the log of a partition begins and ends in its topic.
type span struct {
	start, end int64        // offsets, as the brokers report them
	base       *record.Base // nil: the log begins with its genesis
	// first is the offset of the base's record, or 0. The rule of a trimmed log is start ≤ first. Equality is not required: the
	// topic may hold records before the base.
	first int64
	whole bool // with a base: the topic still holds the genesis
	sure  bool // every source of bases has answered
}

// floor returns a lower bound of the offset of a record: each record from the base on occupies at least one offset.
func (s span) floor(sequence int64) int64 {
	switch {
	case s.base != nil && sequence >= s.base.Sequence:
		return s.first + sequence - s.base.Sequence
	case s.base == nil && s.sure:
		return max(sequence, 0)
	}
	return s.start
}

// ceiling returns the highest offset that the valid record with a sequence may have. A copy of a record before the base may
// lie above, and reading on after that copy would miss the records after the first one.
func (s span) ceiling(sequence int64) int64 {
	if s.base != nil && sequence < s.base.Sequence {
		return s.first - (s.base.Sequence - sequence)
	}
	return s.end - 1
}

// deleted reports whether a trim has deleted the valid record with a sequence.
func (s span) deleted(sequence int64) bool {
	return s.base != nil && sequence < s.base.Sequence && s.ceiling(sequence) < s.start
}

// trimmed returns a *record.TrimmedError for a position that the topic does not hold any more.
func (s span) trimmed(have record.Position) error {
	return &record.TrimmedError{Base: *s.base, Have: have}
}

// bases caches the bases of a client's logs.
type bases struct {
	mu    sync.Mutex
	known map[submit.Shard]*known
}

// known is the base of one partition.
type known struct {
	mu     sync.Mutex // held while sources and brokers are asked
	known  bool
	found  base.Found
	first  int64 // the offset of the base's record in the topic; -1 if it was not looked up
	whole  bool
	doubts int // how many times in a row the topic contradicted the base
}

func (b *bases) of(p submit.Shard) *known {
	b.mu.Lock()
	defer b.mu.Unlock()
	k := b.known[p]
	if k == nil {
		k = &known{first: -1}
		b.known[p] = k
	}
	return k
}

// ask asks the sources, unless they were asked before. With again it asks them once more: a trim may have moved the base, and
// a source that was silent may answer now. The caller holds the lock.
func (k *known) ask(ctx context.Context, c *Client, p submit.Shard, again bool) error {
	if k.known && !again {
		return nil
	}
	found, err := base.Newest(ctx, c.cfg.Bases, askBase, p.Journal, p.Partition)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if found.Base == nil && k.found.Base != nil { // the source that has it is silent now, or has lost it
		found.Base, found.Source = k.found.Base, k.found.Source
	}
	if found.Base != nil && (k.found.Base == nil || *found.Base != *k.found.Base) {
		if k.found.Base != nil {
			if why := k.found.Base.Contradicts(*found.Base); why != "" {
				return &record.BaseError{Journal: p.Journal, Partition: p.Partition, Reason: "the base has changed: " + why}
			}
			if found.Base.Sequence < k.found.Base.Sequence {
				found = k.found
			}
		}
		k.first = -1
	}
	k.known, k.found = true, found
	return nil
}

// Base returns the base of a partition's log, or nil if it has none. It asks the sources of the client's configuration, and
// not the brokers. silent names the sources that could not be asked.
func (c *Client) Base(ctx context.Context, journal string, partition int32) (b *record.Base, silent error, err error) {
	p := submit.Shard{Journal: journal, Partition: partition}
	k := c.bases.of(p)
	k.mu.Lock()
	defer k.mu.Unlock()
	err = k.ask(ctx, c, p, true)
	return k.found.Base, k.found.Silent, err
}

// span asks the brokers where the log begins and ends, and checks that it holds the record after the base. A final error is
// returned only when the brokers and the sources have contradicted each other several times in a row.
func (c *Client) span(ctx context.Context, journal string, partition int32) (s span, err error) {
	s.start, s.end, err = c.Bounds(ctx, journal, partition)
	if err != nil {
		return s, err
	}
	p := submit.Shard{Journal: journal, Partition: partition}
	k := c.bases.of(p)
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.ask(ctx, c, p, false); err != nil {
		return s, err
	}
	err = k.checkBase(ctx, c, p, &s)
	var final error
	if record.Final(err) || err != nil && k.found.Silent != nil { // a later trim may explain it, or a source that was silent
		if final = k.ask(ctx, c, p, true); final == nil {
			final = k.checkBase(ctx, c, p, &s)
		}
		err = final
	}
	switch {
	case record.Final(err):
		if k.doubts++; k.doubts < certain {
			return s, fmt.Errorf("journal: asking again, since %s", err.Error()) // not wrapped: it is not confirmed
		}
	case err == nil:
		k.doubts = 0
	}
	s.base, s.first, s.whole, s.sure = k.found.Base, max(k.first, 0), k.whole && s.start == 0, k.found.Silent == nil
	return s, err
}

// checkBase compares a topic with the base. The caller holds the lock.
func (k *known) checkBase(ctx context.Context, c *Client, p submit.Shard, s *span) error {
	if k.found.Base == nil && k.found.Silent == nil && s.start > 0 {
		if err := k.find(ctx, c, p, s); err != nil {
			return err
		}
	}
	b := k.found.Base
	switch {
	case b == nil && s.start == 0:
		return nil
	case b == nil && k.found.Silent != nil:
		return fmt.Errorf("journal: %s/%d begins at offset %d, and its base is not known: %w", p.Journal, p.Partition, s.start, k.found.Silent)
	case k.first >= s.start && k.first >= 0 && k.first < s.end:
		return nil
	}
	l, err := c.locator(ctx, p.Journal, p.Partition)
	if err != nil {
		return err
	}
	first, err := l.firstAfter(ctx, b.Before(), s.start, s.end)
	if err != nil {
		return err
	}
	beginning, err := l.beginning(ctx, s.start, s.end)
	if err != nil {
		return err
	}
	for _, r := range []*kgo.Record{first, beginning.Record} {
		if id, ok := journalOf(r); ok && id != b.JournalID.String() {
			return &record.BaseError{Journal: p.Journal, Partition: p.Partition, Reason: fmt.Sprintf(
				"the base in %s is of the journal %v, and the log is of the journal %s", k.found.Source, b.JournalID, id)}
		}
		if r != nil { // the first record of the log only explains why the base's is missing
			break
		}
	}
	// A trim deletes the base's record only after it has stored a newer base. A log that still begins at or below that record, or
	// that is empty, was not trimmed there.
	if first == nil && k.found.Silent != nil && s.start > max(k.first, 0) && s.start < s.end {
		return fmt.Errorf("journal: %s/%d begins at offset %d without the %v, and a newer base is not known: %w", p.Journal, p.Partition, s.start, b, k.found.Silent)
	}
	if first == nil {
		reason := fmt.Sprintf("it holds no record after it between the offsets %d and %d: records are lost, or the base in %s is wrong", s.start, s.end, k.found.Source)
		return &record.DivergedError{Journal: p.Journal, Partition: p.Partition, Have: b.Before(),
			Found: record.Position{Offset: s.start, Sequence: -1}, Reason: reason}
	}
	k.first, k.whole = first.Offset, beginning.genesis
	return nil
}

// asks names the sources of bases.
func (k *known) asks(c *Client) string {
	if len(c.cfg.Bases) == 0 {
		return "nothing here keeps one"
	}
	names := make([]string, len(c.cfg.Bases))
	for i, s := range c.cfg.Bases {
		names[i] = s.String()
	}
	return "there is no copy in " + strings.Join(names, " or ")
}

// beginning is the first record of a topic that is in the form of a record.
type beginning struct {
	*kgo.Record      // nil in an empty topic
	genesis     bool // the topic begins with the genesis, apart from what readers skip
}

func (l *locator) beginning(ctx context.Context, start, end int64) (b beginning, err error) {
	s, _, _, err := l.sequences(ctx, start, end)
	if err != nil {
		return b, err
	}
	chain := record.NewGenesisChain(l.journal, l.partition)
	for _, r := range s.records {
		if _, ok := record.SequenceOf(r.Value); ok && b.Record == nil {
			b.Record = r
		}
		if _, ok, err := chain.Admit(r.Offset, r.Value); ok && err == nil && start == 0 {
			b.genesis = true
			return b, nil
		}
	}
	return b, nil
}

// journalOf returns the journal id in the headers of a record.
func journalOf(r *kgo.Record) (id string, ok bool) {
	if r == nil {
		return "", false
	}
	for _, h := range r.Headers {
		if h.Key == "ce_id" {
			id, _, ok = strings.Cut(string(h.Value), "/")
		}
	}
	return id, ok
}

// firstAfter returns the valid record that follows a position: the first one that names the position's hash. The position's
// record need not be in the log. It returns nil if there is none.
func (l *locator) firstAfter(ctx context.Context, p record.Position, start, end int64) (*kgo.Record, error) {
	next := start
	// If the log still holds the record itself, the next one is near it. It may be a later copy, and the next one lie between
	// a first copy that is gone and this one. If the log does not hold it, it was trimmed to about here.
	if at, ok, err := l.search(ctx, p, start, end); err != nil {
		return nil, err
	} else if ok {
		next = max(start, at-copiesWithin)
	}
	var first *kgo.Record
	err := l.each(ctx, next, end, func(r *kgo.Record) bool {
		if follows(r, p) {
			first = r
		}
		return first == nil
	})
	return first, err
}

// each calls look with the records between two offsets, in order, until look returns false.
func (l *locator) each(ctx context.Context, next, end int64, look func(*kgo.Record) bool) error {
	for next < end {
		s, err := l.at(ctx, next)
		if err != nil {
			return err
		}
		for _, r := range s.records {
			if r.Offset >= end || !look(r) {
				return nil
			}
		}
		if s.next <= next { // the log has become shorter
			return nil
		}
		next = s.next
	}
	return nil
}

// follows reports whether a Kafka record names the hash of a position and has the next sequence.
func follows(k *kgo.Record, p record.Position) bool {
	prev, sequence, ok := record.PrevOf(k.Value)
	return ok && prev == p.Hash && sequence == p.Sequence+1
}

// Beginning returns the position after which a reader without a state starts: record.Before, or for a log that does not hold
// its genesis any more and whose history is not complete, the position before its base. lacks says why the history is not
// complete.
func (c *Client) Beginning(ctx context.Context, journal string, partition int32) (at record.Position, lacks, err error) {
	b, err := c.TrimmedAt(ctx, journal, partition)
	if b == nil {
		return record.Before, nil, err
	}
	if lacks = c.complete(ctx, *b); lacks == nil {
		return record.Before, nil, nil
	}
	return b.Before(), lacks, nil
}

// TrimmedAt returns the base of a log that does not hold its genesis any more, or nil. It waits until the brokers, and the
// sources of bases if they are needed, answer.
func (c *Client) TrimmedAt(ctx context.Context, journal string, partition int32) (*record.Base, error) {
	for attempt := 0; ; attempt++ {
		s, err := c.span(ctx, journal, partition)
		switch {
		case err == nil && (s.base == nil || s.whole):
			return nil, nil
		case err == nil:
			return s.base, nil
		case record.Final(err):
			return nil, err
		}
		if paused := pause(ctx, attempt); paused != nil {
			return nil, errors.Join(paused, err)
		}
	}
}

// Extent says where in its topic the log of a partition begins and ends.
type Extent struct {
	Base       *record.Base // nil for a log that begins with its genesis
	First      int64        // offset of the record of Base, or 0
	Start, End int64        // of the topic; Start is at most First
}

// Extent returns where a log begins and ends. It waits until the brokers, and the sources of bases if they are needed, answer.
func (c *Client) Extent(ctx context.Context, journal string, partition int32) (Extent, error) {
	for attempt := 0; ; attempt++ {
		s, err := c.span(ctx, journal, partition)
		if err == nil || record.Final(err) {
			return Extent{s.base, s.first, s.start, s.end}, err
		}
		if paused := pause(ctx, attempt); paused != nil {
			return Extent{}, errors.Join(paused, err)
		}
	}
}
