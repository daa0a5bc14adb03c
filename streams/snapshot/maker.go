package snapshot

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

const (
	// holdable is the largest state, in bytes after encoding, that is saved while the node's own fold is blocked. That
	// takes a few milliseconds, which its sockets and queries do not notice. A larger state is folded separately.
	holdable = 512 << 10
	// poll is the interval at which a maker checks whether a snapshot is due.
	poll = time.Second
	// The delay before the next snapshot is effort times the duration of making the last one, so that snapshots do not
	// follow each other while the journal grows fast. It is at most the interval: the records have to be folded in any
	// case, and under a lasting load each snapshot would take longer and delay the next one more. But it is never less
	// than leastEffort times the duration.
	effort      = 20
	leastEffort = 4
	// All nodes of a venue find a snapshot due at the same moment, so each waits a random time before it makes one: the
	// others then see that snapshot before they start. The time is random up to spread times the duration of making
	// one, but this maximum is at least leastSpread and at most the interval divided by spreadPartOf.
	spread       = 10
	leastSpread  = 3 * poll
	spreadPartOf = 4
	// A snapshot is worthwhile after Records/atStop new records when the node stops, and after Records/atInterval when
	// the interval has passed.
	atStop     = 10
	atInterval = 100
)

// MakerConfig configures a Maker.
type MakerConfig struct {
	Store     *Store
	Client    *journal.Client
	Rules     decide.Rules
	Codec     decide.StateCodec
	Partition int32
	Fold      record.Follower
	Seed      *record.Seed  // seed of the fold; nil without one
	Node      string        // name of this node
	Records   int64         // number of new records after which a snapshot is due
	Interval  time.Duration // age at which a snapshot is due if it saves a hundredth of Records
	// May reports whether the venue may write to the bucket. A nil May permits it always.
	May func() bool
}

// Maker makes snapshots of the state of a node's fold of a journal.
//
// No request waits for a snapshot. A small state is saved while the fold is blocked for a moment. For a large one the
// maker folds the records since the last snapshot into a separate state, which it drops afterwards.
type Maker struct {
	cfg  MakerConfig
	name string
	log  *slog.Logger

	mark    mark // mark of the fold; accessed under the fold's lock
	anchors record.Anchors

	last record.Position // position of the newest known snapshot
	made time.Time       // time at which last was set, or at which this maker started
	took time.Duration   // duration of making it
	turn time.Time       // time to make the next one; zero while none is due
}

// mark is the data about the last record that a snapshot holds besides the position.
type mark struct {
	id   scalar.ID
	time scalar.Time
	term int64
	url  string
}

// NewMaker returns a maker that listens to the fold. It must be called before the fold runs.
func NewMaker(cfg MakerConfig) *Maker {
	m := &Maker{cfg: cfg, name: cfg.Rules.Journal(), last: record.Before, made: time.Now()}
	m.log = cfg.Store.cfg.Logger.With("journal", m.name, "partition", cfg.Partition)
	m.cfg.Store.metrics.begin(m.name)
	if s := cfg.Seed; s != nil {
		m.mark, m.last = markOf(s), s.Position
		m.anchors.Fill(s.Anchors)
	}
	cfg.Fold.Listen(func(e record.Entry, _ decide.State) {
		m.mark.pass(e)
		m.anchors.Note(e.Position)
	})
	return m
}

func markOf(s *record.Seed) mark { return mark{s.Journal, s.Time, s.Term, s.URL} }

// pass updates the mark with the next record.
func (m *mark) pass(e record.Entry) {
	m.id, m.time = e.Journal, e.Record.Time
	if taken, ok := e.Record.Events[0].(*record.TermStarted); ok {
		m.term, m.url = taken.Term, taken.URL
	}
}

// Run makes a snapshot whenever one is due, after the fold has first reached the end of the log and until the context
// ends.
func (m *Maker) Run(ctx context.Context) error {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for caughtUp := false; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if !caughtUp {
			caughtUp = m.cfg.Fold.WaitTip(ctx) == nil
			continue
		}
		if m.may() && m.itsTurn(m.cfg.Fold.Position().Sequence, time.Now()) {
			if err := m.Make(ctx); err != nil && ctx.Err() == nil {
				m.failed(err)
			}
		}
	}
}

func (m *Maker) may() bool { return m.cfg.May == nil || m.cfg.May() }

// itsTurn reports whether a snapshot is due at a sequence and this node's random delay has passed.
func (m *Maker) itsTurn(sequence int64, now time.Time) bool {
	switch {
	case !m.due(sequence, now.Sub(m.made)):
		m.turn = time.Time{}
	case m.turn.IsZero():
		m.turn = now.Add(rand.N(m.spread()))
	case !now.Before(m.turn):
		m.turn = time.Time{}
		return true
	}
	return false
}

// spread returns the upper bound of the random delay.
func (m *Maker) spread() time.Duration {
	return max(1, min(max(spread*m.took, leastSpread), m.cfg.Interval/spreadPartOf))
}

// due reports whether a snapshot is due at a sequence, if the last one was made the given time ago.
func (m *Maker) due(sequence int64, since time.Duration) bool {
	added := sequence - m.last.Sequence
	putOff := min(effort*m.took, max(m.cfg.Interval, leastEffort*m.took))
	return since >= putOff && (added >= m.cfg.Records || added >= max(1, m.cfg.Records/atInterval) && since >= m.cfg.Interval)
}

// failed reports a snapshot that could not be made. The next attempt follows after the delay that would have followed
// the snapshot.
func (m *Maker) failed(err error) {
	m.cfg.Store.metrics.failures.WithLabelValues(m.name).Inc()
	m.log.Warn("no snapshot could be made", "error", err)
	m.made, m.took = time.Now(), max(m.took, poll)
}

// Stop makes a snapshot if the number of new records makes it worthwhile. It must be called when the node has stopped,
// after Run has returned: then the fold may be blocked.
func (m *Maker) Stop(ctx context.Context) {
	if !m.may() || m.cfg.Fold.Position().Sequence-m.last.Sequence < max(1, m.cfg.Records/atStop) {
		return
	}
	err := m.catchUpWithOthers(ctx)
	if err == nil && m.cfg.Fold.Position().Sequence-m.last.Sequence >= max(1, m.cfg.Records/atStop) {
		err = m.hold(ctx)
	}
	if err != nil {
		m.failed(err)
	}
}

// Make makes a snapshot, unless another node has just made a recent one.
func (m *Maker) Make(ctx context.Context) error {
	if err := m.catchUpWithOthers(ctx); err != nil {
		return err
	}
	if !m.due(m.cfg.Fold.Position().Sequence, time.Since(m.made)) {
		return nil
	}
	size := 0
	m.cfg.Fold.View(func(s decide.State, _ record.Position) { size = m.cfg.Codec.Size(s) })
	if size <= holdable {
		return m.hold(ctx)
	}
	return m.apart(ctx)
}

// catchUpWithOthers looks for a newer snapshot of another node and records it as the last one.
func (m *Maker) catchUpWithOthers(ctx context.Context) error {
	names, err := m.cfg.Store.list(ctx, m.name, m.cfg.Partition)
	if err != nil {
		return err
	}
	for _, n := range names {
		if n.Codec != m.cfg.Codec.Version() {
			continue
		}
		if n.Position.Sequence > m.last.Sequence {
			m.last, m.made = n.Position, time.Now()
			m.cfg.Store.metrics.sequence.WithLabelValues(m.name).Set(float64(n.Position.Sequence))
		}
		break
	}
	return nil
}

// hold saves the state of the node's fold while the fold is blocked.
func (m *Maker) hold(ctx context.Context) error {
	start := time.Now()
	var saved []byte
	var h Header
	var anchors []record.Position
	m.cfg.Fold.View(func(s decide.State, at record.Position) {
		start := time.Now()
		saved = m.cfg.Codec.Append(nil, s)
		h = m.header(s, at, m.mark)
		anchors = m.anchors.All()
		m.cfg.Store.metrics.held.WithLabelValues(m.name).Observe(time.Since(start).Seconds())
	})
	if err := m.cfg.Fold.Err(); record.Final(err) {
		return err // the state may be invalid
	}
	return m.save(ctx, h, anchors, saved, start)
}

// apart folds from the last snapshot to the current position of the node's fold into a separate state, and saves that.
func (m *Maker) apart(ctx context.Context) error {
	start := time.Now()
	target := m.cfg.Fold.Position()
	seed, err := m.cfg.Store.load(ctx, m.name, m.cfg.Partition, m.cfg.Codec, math.MaxInt64)
	if err != nil {
		return err
	}
	if seed == nil {
		seed = &record.Seed{State: m.cfg.Rules.NewState(), Position: record.Before}
	}
	mark, at := markOf(seed), seed.Position
	r := journal.NewReader(m.cfg.Client, m.cfg.Rules, m.cfg.Partition, at)
	defer r.Close()
	for at.Sequence < target.Sequence {
		entries, err := r.PollFor(ctx, target.Sequence)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if at.Sequence >= target.Sequence {
				break
			}
			if err := m.cfg.Client.Apply(m.name, m.cfg.Partition, seed.State, e); err != nil {
				return err
			}
			mark.pass(e)
			at = e.Position
		}
	}
	if !at.Equal(target) {
		return fmt.Errorf("folded apart, the log leads to %v and not to %v", at, target)
	}
	before := m.last
	if err := m.catchUpWithOthers(ctx); err != nil || !m.last.Equal(before) {
		return err // another node was faster, and one snapshot suffices
	}
	anchors := m.anchors.All()
	for len(anchors) > 0 && anchors[len(anchors)-1].Sequence > at.Sequence {
		anchors = anchors[:len(anchors)-1]
	}
	return m.save(ctx, m.header(seed.State, at, mark), anchors, m.cfg.Codec.Append(nil, seed.State), start)
}

func (m *Maker) header(s decide.State, at record.Position, k mark) Header {
	h := Header{Journal: m.name, Partition: m.cfg.Partition, JournalID: k.id, Position: at, Time: k.time, Term: k.term, URL: k.url,
		Codec: m.cfg.Codec.Version(), Made: time.Now().UTC(), Node: m.cfg.Node}
	if ruled, ok := s.(decide.Facts); ok {
		h.Rules = ruled.ActiveRules()
	}
	return h
}

// save writes the snapshot and records it as the last one.
func (m *Maker) save(ctx context.Context, h Header, anchors []record.Position, saved []byte, start time.Time) error {
	size, err := m.cfg.Store.save(ctx, h, anchors, saved)
	if err != nil {
		return err
	}
	m.last, m.made, m.took = h.Position, time.Now(), time.Since(start)
	metrics := m.cfg.Store.metrics
	metrics.sequence.WithLabelValues(m.name).Set(float64(h.Position.Sequence))
	metrics.made.WithLabelValues(m.name).SetToCurrentTime()
	metrics.bytes.WithLabelValues(m.name).Set(float64(size))
	metrics.seconds.WithLabelValues(m.name).Observe(m.took.Seconds())
	m.log.Info("made a snapshot", "sequence", h.Position.Sequence, "bytes", size, "took", m.took)
	return nil
}
