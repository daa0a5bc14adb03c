package term

import (
	"time"

	"github.com/perpetua-exchange/perpetua/streams/record"
)

// inflightRecord is one record of this term from its decision until the log has settled whether it is valid.
type inflightRecord struct {
	entry       record.Entry  // its position's offset is set on completion
	at          time.Duration // when it was decided
	acked       bool
	ackedAt     int64    // the acknowledged offset; see acked
	seen        bool     // the owner's reader has found it valid …
	seenAt      int64    // … at this offset
	request     *Request // the request that the record was decided for; nil for a step
	alternating bool     // it is a step that alternates with commands
	tooLarge    bool     // the broker rejected it, or a batch that contains it, for the size
}

// refused returns the bytes of a record that the brokers have rejected for the size, or 0. s may be nil.
func (s *inflightRecord) refused() int {
	if s == nil || !s.tooLarge {
		return 0
	}
	return len(s.entry.Value)
}

// flight tracks the records of a term between decision and completion. A record is complete when it is acknowledged and
// known to be valid: either its offset directly follows that of the record before it, or, after a gap, the owner's
// reader has passed it.
//
// Each record has two sources of information, which may report in either order. The producer reports that and where the
// record was appended; the reader reports that it is valid. The producer is faster, and is sufficient while its offsets
// are consecutive, because no other record can then be between them. A missing offset may be another owner's term
// record, after which no record of this term is valid, or a duplicate of a batch that was sent twice. Only the reader
// can distinguish the two, so no record completes until the reader has caught up.
type flight struct {
	inFlight    fifo[*inflightRecord] // consecutive sequences; records complete in this order
	unseen      fifo[*inflightRecord] // decided, and not yet passed by the reader
	bytes       int                   // of the records in flight
	alternating int                   // bytes of the steps in flight that alternate with commands
	unseenBytes int

	// last is the last complete record. No answer that was decided on a later one may leave.
	last record.Position
	// gap says that an acknowledged offset was not consecutive. Until the reader has caught up, only the reader completes
	// records: even a consecutive offset proves nothing, since the offset before it may belong to a foreign record.
	gap     bool
	lastAck time.Duration
	next    int64 // the offset after the last one that the reader has passed
}

func (f *flight) add(s *inflightRecord) {
	f.inFlight.push(s)
	f.unseen.push(s)
	f.bytes += len(s.entry.Value)
	if s.alternating {
		f.alternating += len(s.entry.Value)
	}
	f.unseenBytes += len(s.entry.Value)
}

// find returns the record in flight with the sequence, or nil.
func (f *flight) find(sequence int64) *inflightRecord {
	all := f.inFlight.all()
	if len(all) == 0 {
		return nil
	}
	i := sequence - all[0].entry.Position.Sequence
	if i < 0 || i >= int64(len(all)) {
		return nil
	}
	return all[i]
}

// acknowledge processes an acknowledgement, and reports whether it makes the oldest record complete.
func (f *flight) acknowledge(s *inflightRecord, offset int64) (complete bool) {
	s.acked, s.ackedAt = true, offset
	if f.gap || offset != f.last.Offset+1 || f.inFlight.peek() != s {
		f.gap = true
		return false
	}
	return true
}

// complete removes the oldest record from flight. It is at the offset.
func (f *flight) complete(offset int64) *inflightRecord {
	s := f.inFlight.pop()
	f.bytes -= len(s.entry.Value)
	if s.alternating {
		f.alternating -= len(s.entry.Value)
	}
	s.entry.Position.Offset = offset
	f.last = s.entry.Position
	return s
}

// observe processes a valid record that the reader has found. It returns false if that is not the next record of this
// term.
func (f *flight) observe(p record.Position) bool {
	if f.unseen.len() == 0 || f.unseen.peek().entry.Position.Hash != p.Hash {
		return false
	}
	s := f.unseen.pop()
	f.unseenBytes -= len(s.entry.Value)
	s.seen, s.seenAt = true, p.Offset
	return true
}

// resolved reports whether the oldest record of a gap has been acknowledged and found valid by the reader. It closes
// the gap if no record is in flight, or if the oldest one is not acknowledged.
func (f *flight) resolved() (offset int64, ok bool) {
	if !f.gap {
		return 0, false
	}
	if f.inFlight.len() == 0 {
		f.gap = false
		return 0, false
	}
	s := f.inFlight.peek()
	if !s.acked {
		// Every acknowledged record is accounted for. The next acknowledgement either has the next offset or opens a
		// new gap.
		f.gap = false
		return 0, false
	}
	return s.seenAt, s.seen
}

// lost reports whether the reader has passed an acknowledged record without finding it valid.
func (f *flight) lost() bool {
	if !f.gap || f.inFlight.len() == 0 {
		return false
	}
	s := f.inFlight.peek()
	return s.acked && !s.seen && s.ackedAt > f.last.Offset && f.next > s.ackedAt
}

// accounted returns the offset before which this term has accounted for every valid record.
func (f *flight) accounted() int64 { return max(f.last.Offset+1, f.next) }

// waitingSince returns the time since which the oldest record has waited without any acknowledgement. ok is false if no
// record is in flight.
func (f *flight) waitingSince() (since time.Duration, ok bool) {
	if f.inFlight.len() == 0 {
		return 0, false
	}
	return max(f.inFlight.peek().at, f.lastAck), true
}
