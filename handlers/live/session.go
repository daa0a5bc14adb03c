package live

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/olahol/melody"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/web"
)

// session is the state of one connection.
type session struct {
	hub    *Hub
	socket *melody.Session
	conn   *conn

	address string // of the client
	seen    uint64 // changes of the identity journal before the token was verified

	extension string // negotiated permessage-deflate parameters, or ""

	// Fields of the goroutine that reads requests:
	bucket *bucket
	excess int
	turn   <-chan struct{} // closed when the last order entry cannot be overtaken any more; nil before the first

	inFlightOrders atomic.Int64 // order entry requests in progress

	subscriptions map[string]*subscription // by topic; guarded by the hub's lock
	ctx           context.Context          // ends with the connection
	cancel        context.CancelFunc

	mu       sync.Mutex
	frames   []*frame      // the queue, in order
	free     []*frame      // storage of the previous queue, for reuse
	writing  bool          // a writer has the session or will take it
	messages int           // not written yet, including those taken by a writer
	bytes    int64         // of those messages, before compression
	controls int           // control frames not written yet
	room     chan struct{} // closed when most of the queue is free; nil if not awaited
	empty    chan struct{} // closed when nothing is left to write; nil if not awaited
	broken   bool          // writing to the connection is impossible
	ended    bool          // nothing more may be queued
	closed   bool          // a close frame, the last frame, is queued
	parting  bool          // the server initiated the close
	shedding bool          // discard queued frames except the last message and the close frame
	over     bool          // the connection has ended
	cutter   *time.Timer   // cuts the connection
	shedder  *time.Timer   // starts shedding
	id       scalar.ID     // engine session ID; zero if orders stay when the session ends
	opened   int64         // sequence of the record that opened it
	who      *web.Principal
	token    string
	check    *time.Timer // verifies the token again
}

// compressed reports whether the client accepts compressed messages.
func (s *session) compressed() bool { return s.extension != "" }

// send queues a message.
func (s *session) send(message []byte) {
	if s.deliver(textFrame(message)) {
		s.hub.metrics.queued.Add(1)
	}
}

// deliver queues a frame, which must not be modified afterwards, and reports whether it did. The caller updates the
// metric. deliver never blocks: a full queue ends the session. A single message may exceed the remaining space;
// otherwise the snapshot of a very deep book could never be sent.
func (s *session) deliver(f *frame) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return false
	}
	limits := &s.hub.limits
	if s.messages >= limits.QueueMessages || s.bytes >= limits.QueueBytes {
		s.endSlow("messages come faster than they are read; the connection is closed")
		return false
	}
	s.messages++
	s.bytes += int64(len(f.plain))
	s.push(f)
	return true
}

// slow ends the session of a client that does not keep up.
func (s *session) slow() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endSlow("what was missed is not read; the connection is closed")
}

// late is called when a write has timed out. It ends the session, unless it has already ended.
func (s *session) late() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endSlow("nothing was read for " + s.hub.limits.WriteWait.String() + "; the connection is closed")
	s.shedding = true
}

// noPong is called by the reader if a pong is missing. A client that does not read does not answer pings, but it may
// later read the reason for the close. So the reader stays, because the connection is closed when the
// reader returns.
func (s *session) noPong() {
	s.mu.Lock()
	first := !s.ended
	s.endSlow("no pong came for " + s.hub.limits.PongWait.String() + "; the connection is closed")
	s.mu.Unlock()
	if first {
		s.conn.discard()
	}
}

// endSlow ends the session of a client that does not read. It discards queued frames that are not written within
// WriteWait, so a connection that stays open uses little memory. The caller holds the session's lock.
func (s *session) endSlow(message string) {
	if s.ended {
		return
	}
	s.hub.metrics.slow.Inc()
	s.hub.metrics.errors.WithLabelValues(string(SlowConsumer)).Inc()
	s.end(errorMessage(SlowConsumer, message), melody.ClosePolicyViolation, string(SlowConsumer), s.hub.limits.SlowWait)
	s.shedder = time.AfterFunc(s.hub.limits.WriteWait, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.shedding = true
	})
}

// farewell is the number of frames at the end of a slow client's session: a message and a close frame.
const farewell = 2

// shed returns the frames that are still to be written, out of a writer's frames and the queue. If the session is
// shedding, these are only the farewell: nothing can be queued after it, so it is at the end.
func (s *session) shed(frames []*frame) []*frame {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.shedding || s.over {
		return frames
	}
	all := slices.Concat(frames, s.frames)
	clear(frames) // the reusable storage also refers to them and would keep them in memory
	s.frames = nil
	given := max(0, len(all)-farewell)
	s.uncount(countFrames(all[:given]))
	return slices.Clone(all[given:])
}

// queue queues a frame regardless of the limits. The caller holds the session's lock.
func (s *session) queue(f *frame) {
	s.messages++
	s.bytes += int64(len(f.plain))
	s.hub.metrics.queued.Add(1)
	s.push(f)
}

// push appends a frame and schedules a writer. The caller holds the session's lock.
func (s *session) push(f *frame) {
	s.frames = append(s.frames, f)
	// A writer checks the queue again under this lock before it releases the session (written). So a frame that is
	// pushed while it writes needs no second writer and is not left behind.
	if !s.writing {
		s.writing = true
		s.hub.writers.add(s)
	}
}

// dequeue takes all queued frames. Only the caller may write them.
func (s *session) dequeue() []*frame {
	s.mu.Lock()
	defer s.mu.Unlock()
	// Exchange the two slices: deliver appends to the spare one while the writer reads the other, which becomes the
	// spare. This is safe because a session has only one writer, which has finished the previous frames before it
	// calls dequeue again.
	frames := s.frames
	s.frames, s.free = s.free, frames[:0]
	return frames
}

// tally is the size of some frames, as counted by the queue.
type tally struct{ messages, bytes, controls int }

func countFrames(frames []*frame) (t tally) {
	for _, f := range frames {
		if isText(f.plain) {
			t.messages++
			t.bytes += len(f.plain)
		} else {
			t.controls++
		}
	}
	return t
}

// wrote is called after frames were written. It clears them.
func (s *session) wrote(frames []*frame) {
	t := countFrames(frames)
	clear(frames)
	s.hub.metrics.sent.Add(int64(t.messages))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	s.uncount(t)
	if s.room != nil && s.roomy() {
		close(s.room)
		s.room = nil
	}
}

// uncount subtracts frames from the counts. The caller holds the session's lock.
func (s *session) uncount(t tally) {
	s.messages -= t.messages
	s.bytes -= int64(t.bytes)
	s.controls -= t.controls
	s.hub.metrics.queued.Add(-int64(t.messages))
}

// written is called when a writer has written all frames that it took. If more have been queued, it schedules a
// writer.
func (s *session) written() {
	s.mu.Lock()
	if cap(s.free) > maxFree {
		s.free = nil
	}
	s.writing = len(s.frames) > 0 && !s.over
	if s.writing {
		s.hub.writers.add(s)
	} else {
		s.tellEmpty()
	}
	parted := s.parting && !s.writing
	s.mu.Unlock()
	if parted {
		_ = s.conn.Close() // the close frame was sent; the client has time to answer it
	}
}

// maxFree is the maximum capacity of the reusable queue storage.
const maxFree = 256

// tellEmpty notifies the goroutines that wait for an empty queue. The caller holds the session's lock.
func (s *session) tellEmpty() {
	if s.empty != nil {
		close(s.empty)
		s.empty = nil
	}
}

// unwritable is called when writing to the connection has failed. Nothing more is written, so writing stays true, and
// the reader ends.
func (s *session) unwritable() {
	s.conn.cut()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken, s.ended = true, true
	s.tellEmpty()
}

// isEnded reports whether nothing more may be queued.
func (s *session) isEnded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// roomy reports whether most of the queue is free. The caller holds the session's lock.
func (s *session) roomy() bool {
	return s.messages <= s.hub.limits.QueueMessages/4 && s.bytes <= s.hub.limits.QueueBytes/4
}

// waitForRoom waits until most of the queue is free. It returns false if the connection ends first or patience is
// over.
func (s *session) waitForRoom(patience time.Duration) bool {
	var late <-chan time.Time
	for {
		s.mu.Lock()
		if s.ended || s.roomy() {
			defer s.mu.Unlock()
			return !s.ended
		}
		if s.room == nil {
			s.room = make(chan struct{})
		}
		room := s.room
		s.mu.Unlock()
		if late == nil {
			timer := time.NewTimer(patience)
			defer timer.Stop()
			late = timer.C
		}
		select {
		case <-room:
		case <-late:
			return false
		case <-s.ctx.Done():
			return false
		}
	}
}

// close ends the session after the queued frames, with an optional last message.
func (s *session) close(last []byte, code int, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end(last, code, reason, s.hub.limits.WriteWait)
}

// end is close for a caller that holds the session's lock. The connection is cut after the time patience.
func (s *session) end(last []byte, code int, reason string, patience time.Duration) {
	if s.ended {
		return
	}
	// From here on, deliver and control refuse frames, so nothing is queued after the close frame and the farewell is
	// at the end of the queue, as shed requires. Set the reader's deadline before the frames are queued: when they
	// have been written, Close sets a short deadline, which must not be extended here.
	s.ended, s.closed, s.parting = true, true, true
	s.conn.part(patience)
	if last != nil {
		s.queue(textFrame(last))
	}
	s.controls++
	s.push(&frame{plain: closeFrame(melody.FormatCloseMessage(code, reason))})
	s.cutter = time.AfterFunc(patience, s.conn.cut)
	s.hub.serving.Go(s.leave) // in another goroutine, because the hub's lock must be acquired before a session's
}

// leave drops the subscriptions of a session that has ended and disarms it. The connection may stay open for a while.
func (s *session) leave() {
	s.hub.disarm(s)
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	for _, sub := range s.subscriptions {
		s.hub.drop(sub)
	}
}

// hasten shortens the time until the connection of an ended session is cut, because the server stops.
func (s *session) hasten() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cutter != nil && !s.over {
		s.cutter.Reset(s.hub.limits.WriteWait)
	}
}

// gone is called when the connection has ended.
func (s *session) gone() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended, s.over = true, true
	s.hub.metrics.queued.Add(-int64(s.messages))
	s.messages, s.bytes, s.frames = 0, 0, nil
	s.tellEmpty()
	s.cancel()
	for _, t := range []*time.Timer{s.cutter, s.shedder, s.check} {
		if t != nil {
			t.Stop()
		}
	}
}

// principal returns the session's principal, or nil if it is not authenticated.
func (s *session) principal() *web.Principal {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.who
}
