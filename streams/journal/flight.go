package journal

import (
	"time"

	"github.com/perpetua-exchange/perpetua/streams/record"
)

// slot is one record of this term from its decision until the log has settled whether it is valid.
type slot struct {
	entry    record.Entry // its position's offset is set on completion
	message  message
	at       time.Time
	acked    bool
	ackedAt  int64    // the acknowledged offset; see acked
	seen     bool     // the owner's reader has found it valid …
	seenAt   int64    // … at this offset
	request  *request // the request that the record was decided for; nil for a step
	aside    bool     // it is a step that alternates with commands
	tooLarge bool     // the broker rejected it, or a batch that contains it, for the size
}

// flight tracks the records of a term between decision and completion. A record is complete when it is acknowledged and
// known to be valid: either its offset directly follows that of the record before it, or, after a gap, the owner's
// reader has passed it.
//
// Each record has two sources of information, which may report in either order. The producer reports that and where the
// record was appended; the reader reports that it is valid. The producer is faster, and is sufficient while its offsets
// are consecutive, because no other record can then be between them. A missing offset may be another owner's taken
// record, after which no record of this term is valid, or a duplicate of a batch that was sent twice. Only the reader
// can distinguish the two, so no record completes until the reader has caught up.
type flight struct {
	inFlight fifo[*slot]
	unseen   fifo[*slot]
	bytes    int // of the records in flight
	aside    int // bytes of the steps in flight that alternate with commands

	unseenBytes int
	last        record.Position // of the last complete record
	gap         bool            // an acknowledged offset was not consecutive; the reader decides until it has caught up
	lastAck     time.Time
	next        int64 // the offset after the last one that the reader has passed
}

func (f *flight) add(s *slot) {
	f.inFlight.push(s)
	f.unseen.push(s)
	f.bytes += len(s.entry.Value)
	if s.aside {
		f.aside += len(s.entry.Value)
	}
	f.unseenBytes += len(s.entry.Value)
}

// acknowledge processes an acknowledgement, and reports whether it makes the oldest record complete.
func (f *flight) acknowledge(a ack) (complete bool) {
	a.slot.acked, a.slot.ackedAt = true, a.offset
	// Within a gap even a consecutive offset proves nothing: the offset before it may belong to a foreign record.
	if f.gap || a.offset != f.last.Offset+1 || f.inFlight.peek() != a.slot {
		f.gap = true
		return false
	}
	return true
}

// complete removes the oldest slot from flight. Its record is at the offset.
func (f *flight) complete(offset int64) *slot {
	s := f.inFlight.pop()
	f.bytes -= len(s.entry.Value)
	if s.aside {
		f.aside -= len(s.entry.Value)
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
func (f *flight) waitingSince() (time.Time, bool) {
	if f.inFlight.len() == 0 {
		return time.Time{}, false
	}
	since := f.inFlight.peek().at
	if f.lastAck.After(since) {
		since = f.lastAck
	}
	return since, true
}
