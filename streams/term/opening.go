package term

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// opening is the state of a replay.
type opening struct {
	end int64 // the offset up to which the log is replayed
	// ahead holds the known positions after the start of the replay, by sequence, until the replay meets them. A term must not
	// be taken before it is empty: a position that is missing means that the log has lost its end.
	ahead map[int64][]record.Position
	// overtaken is the foreign term that the replay has met. It ends the term only when the replay is over: the known
	// positions beyond it must still be checked, and the records that carried requests wait for are then applied when this
	// node is assigned the shard again.
	overtaken *record.TermStarted
}

// begin starts the replay.
//
// Other nodes may append during the replay. The records after its end are applied in the phase Taking, before this node's
// term record or instead of it. They cannot undo a record applied here, because a valid record stays valid. But the log may
// lose its end during the replay. Then the replay stops at the new end, and a known position beyond that end reveals the
// loss.
func (m *Machine) begin(in Begin) {
	m.t = state{state: m.cfg.Rules.NewState(), tip: record.Before, pending: make(map[scalar.ID]pending)}
	m.phase, m.recent = Replaying, recent{}
	t := &m.t
	t.opening = opening{end: in.End, ahead: make(map[int64][]record.Position)}
	var passed []record.Position
	if s := in.Seed; s != nil {
		t.state, t.tip, t.last, t.inTerm, t.id, passed = s.State, s.Position, s.Time, s.Term, s.Journal, s.Anchors
		m.anchors.Fill(passed)
	}
	t.awaited = m.awaitedRecords()
	m.out.Scan = m.scanSeedPrefix()
	for _, p := range m.known(in.Known) {
		switch {
		case p.IsBefore() || p.Equal(t.tip) || record.Contains(passed, p):
		case p.Sequence > t.tip.Sequence:
			t.opening.ahead[p.Sequence] = append(t.opening.ahead[p.Sequence], p)
		default:
			m.out.Hold = append(m.out.Hold, p)
		}
	}
}

// known adds the position that this process knows to be acknowledged.
func (m *Machine) known(positions []record.Position) []record.Position {
	return append([]record.Position{m.acknowledged}, positions...)
}

// scanSeedPrefix returns the records to read that the seed already covers, or nil for none. A carried request may have been
// recorded there, and so may a foreign term that was not applied since Assigned. A foreign term comes after the last record
// that this process knew to be acknowledged. A carried request's record may come before it: a term that ended before its
// carried requests were settled has acknowledged its term record and answered no request.
//
// They are read before the replay for two reasons. An owner that was superseded must find out before it replays a long log.
// And the request would otherwise be decided again.
func (m *Machine) scanSeedPrefix() *Scan {
	from := m.acknowledged
	switch {
	case len(m.t.awaited) > 0:
		from = m.behind
	case m.met == record.UnknownTerm:
		return nil
	}
	if m.t.tip.Sequence <= from.Sequence {
		return nil
	}
	return &Scan{From: from, To: m.t.tip.Offset + 1, Through: m.t.tip.Sequence}
}

func (m *Machine) onScanned(in Scanned) error {
	for _, e := range in.Entries {
		m.markFound(e)
		if started, ok := m.isForeignTerm(e); ok {
			return m.foreign(started)
		}
	}
	return nil
}

// onReplayed applies records and compares them with the known positions.
func (m *Machine) onReplayed(in Replayed) error {
	o := &m.t.opening
	for _, e := range in.Entries {
		for _, p := range o.ahead[e.Position.Sequence] {
			if !p.Equal(e.Position) {
				return m.diverged(p, e.Position, "another record has its sequence")
			}
		}
		delete(o.ahead, e.Position.Sequence)
		if err := m.apply(e); err != nil {
			return err
		}
		if started, ok := m.isForeignTerm(e); ok {
			o.overtaken = started
		}
	}
	return nil
}

// onReplayEnded checks that the replay has met everything that it should.
func (m *Machine) onReplayEnded() error {
	t := &m.t
	if t.opening.overtaken != nil {
		return m.foreign(t.opening.overtaken)
	}
	if len(t.opening.ahead) > 0 {
		var missing []record.Position
		for _, positions := range t.opening.ahead {
			missing = append(missing, positions...)
		}
		slices.SortFunc(missing, func(p, q record.Position) int { return cmp.Compare(p.Sequence, q.Sequence) })
		return &ShortReplayError{Tip: t.tip, Missing: missing}
	}
	if t.tip.IsBefore() {
		return &record.BrokenRecordError{Journal: m.cfg.Shard.Journal, Partition: m.cfg.Shard.Partition, Offset: t.opening.end - 1,
			Sequence: -1, Reason: "the partition holds records and no genesis"}
	}
	t.folded = true
	return nil
}

// Interrupted returns what a replay has applied, for another replay to start from. It is nil unless the machine is in a
// replay that has neither ended nor failed. The state is the caller's: the machine MUST get End next, perhaps after Fail.
func (m *Machine) Interrupted() *record.Seed {
	t := &m.t
	if m.phase != Replaying || t.folded || t.tip.IsBefore() {
		return nil
	}
	return &record.Seed{State: t.state, Position: t.tip, Term: t.inTerm, Time: t.last, Journal: t.id}
}

// apply applies a valid record that this term did not decide.
func (m *Machine) apply(e record.Entry) error {
	if err := m.evolve(e); err != nil {
		return fmt.Errorf("%w: %w", ErrRules, err)
	}
	t := &m.t
	t.id, t.tip, t.last = e.Journal, e.Position, e.Record.Time
	if started, ok := e.Record.Events[0].(*record.TermStarted); ok {
		t.inTerm = started.Term
	}
	m.anchors.Note(e.Position)
	m.recent.add(e)
	m.markFound(e)
	return nil
}

// markFound stores a record that a carried request waits for.
func (m *Machine) markFound(e record.Entry) {
	if _, ok := m.t.awaited[e.Record.Command.ID]; ok {
		m.t.awaited[e.Record.Command.ID] = &e
	}
}

// isForeignTerm reports whether a record opens a foreign term, and returns that. During the replay only a term that was not
// applied since Assigned is foreign: older terms are history.
func (m *Machine) isForeignTerm(e record.Entry) (*record.TermStarted, bool) {
	started, ok := m.startedElsewhere(e)
	return started, ok && m.met != record.UnknownTerm && started.Term > m.met
}

// startedElsewhere reports whether a record opens a term of another process, and returns that.
func (m *Machine) startedElsewhere(e record.Entry) (*record.TermStarted, bool) {
	started, ok := e.Record.Events[0].(*record.TermStarted)
	if !ok {
		return nil, false
	}
	_, own := m.sent[e.Record.Command.ID]
	return started, !own
}
