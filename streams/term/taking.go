package term

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// taking is the state of a term record on its way.
type taking struct {
	record *record.Entry
	// acked is when the brokers acknowledged the record. That proves nothing yet: only the reader can report whether another
	// valid record came first. And the reader may never find it: if the log has lost its end, it holds neither the record nor
	// any later one. Without a limit, the term would wait forever and the shard would have no owner. The next term replays the
	// rest of the log and compares it with the known positions.
	acked    bool
	vanishes time.Duration
}

// take appends a term record, with a new producer: no record of an earlier attempt may follow it.
func (m *Machine) take() error {
	t := &m.t
	started := &record.TermStarted{Term: t.inTerm + 1, Node: m.cfg.Node, URL: m.cfg.URL, Build: m.cfg.Build}
	m.clock.goOn(m.now, t.last) // another owner's record may have come since setClock
	now := m.recordTime()
	r := &record.Record{Sequence: t.tip.Sequence + 1, Prev: t.tip.Hash, Time: now, Outcome: decide.Accepted,
		Command: decide.Recorded{ID: m.cfg.NewID(now), Type: record.TypeTermStarted, Actor: decide.Engine},
		Events:  []decide.Event{started}}
	value, err := record.Encode(nil, r)
	if err != nil {
		return err
	}
	m.sent[r.Command.ID] = struct{}{}
	t.taking = taking{record: &record.Entry{Record: r, Journal: t.id, Value: value,
		Position: record.Position{Offset: -1, Sequence: r.Sequence, Hash: sha256.Sum256(value)}}}
	m.producers++
	m.out.Producer = m.producers
	m.out.Append = append(m.out.Append, Append{Entry: t.taking.record, At: m.now.Mono})
	m.phase = Taking
	return nil
}

// ackTaking processes the producer's result for the term record.
func (m *Machine) ackTaking(a Ack) error {
	if a.Err != nil {
		return fmt.Errorf("journal: appending a term record: %w", a.Err)
	}
	m.t.taking.acked, m.t.taking.vanishes = true, m.now.Mono+m.cfg.Limits.Deadline
	return nil
}

// checkVanished returns an error if the term record was acknowledged long ago and is still not in the log.
func (m *Machine) checkVanished() error {
	if m.t.taking.acked && m.now.Mono >= m.t.taking.vanishes {
		return errors.New("journal: a term record that was acknowledged was not seen in the log")
	}
	return nil
}

// readTaking looks for the term record. If another valid record comes first, the term record can never be valid, and
// another one is appended.
func (m *Machine) readTaking(in Read) error {
	m.t.flight.next = in.Next
	lost := false
	for i, e := range in.Entries {
		if e.Position.Hash == m.t.taking.record.Position.Hash {
			return m.beginTerm(e, in.Entries[i+1:])
		}
		if started, ok := m.startedElsewhere(e); ok {
			return m.foreign(started)
		}
		if err := m.apply(e); err != nil {
			return err
		}
		lost = true
	}
	if !lost {
		return nil
	}
	m.note(slog.LevelInfo, "another record came before this node's term record", "sequence", m.t.taking.record.Position.Sequence)
	return m.take()
}

// beginTerm makes the valid term record the base of this term's appends. Records read after it can only be skipped or
// foreign ones. Serve looks at them first.
func (m *Machine) beginTerm(e record.Entry, after []record.Entry) error {
	if err := m.apply(e); err != nil {
		return err
	}
	t := &m.t
	t.number, t.taken = t.inTerm, e.Position.Hash
	t.flight.last = e.Position
	t.readAhead = slices.Clone(after)
	m.acknowledged = e.Position
	m.phase = Taken
	return nil
}
