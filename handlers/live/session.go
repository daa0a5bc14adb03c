package live

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/olahol/melody"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/web/access"
)

// session is the state of one connection. Without another note, a field is constant once the connection is open.
type session struct {
	hub       *Hub
	socket    *melody.Session
	conn      *conn
	address   string          // of the client
	seen      uint64          // changes of the identity journal before the token was verified
	extension string          // negotiated permessage-deflate parameters, or ""
	ctx       context.Context // ends with the connection
	cancel    context.CancelFunc

	reader         reader
	inFlightOrders atomic.Int64             // order entry requests in progress
	subscriptions  map[string]*subscription // by topic; guarded by the hub's lock

	// mu guards the rest.
	mu     sync.Mutex
	out    outbox
	ending ending
	engine engineSession
	auth   authentication
}

// reader is the state of the goroutine that reads a session's requests.
type reader struct {
	bucket access.Bucket
	excess int
	turn   <-chan struct{} // closed when the last order entry cannot be overtaken any more; nil before the first
}

// outbox is the queue of a session's frames.
type outbox struct {
	frames   []*frame      // in order
	free     []*frame      // storage of the previous queue, for reuse
	writing  bool          // a writer has the session or will take it
	messages int           // not written yet, including those taken by a writer
	bytes    int64         // of those messages, before compression
	controls int           // control frames not written yet
	room     chan struct{} // closed when most of the queue is free; nil if not awaited
	empty    chan struct{} // closed when nothing is left to write; nil if not awaited
	broken   bool          // writing to the connection is impossible
	shedding bool          // discard queued frames except the last message and the close frame
	shedder  *time.Timer   // starts shedding
}

// ending is how far the end of a session has come.
type ending struct {
	ended   bool        // nothing more may be queued
	closed  bool        // a close frame, the last frame, is queued
	parting bool        // the server initiated the close
	over    bool        // the connection has ended
	cutter  *time.Timer // cuts the connection
}

// engineSession names a session of the engine. When it ends, the engine cancels the connection's orders.
type engineSession struct {
	id     scalar.ID // zero if orders stay when the connection ends
	opened int64     // sequence of the record that opened it
}

// authentication says as whom a session is authenticated. It is zero if the session is anonymous.
type authentication struct {
	who   *access.Principal
	token string
	check *time.Timer // verifies the token again
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
	if s.ending.ended {
		return false
	}
	limits := &s.hub.limits
	if s.out.messages >= limits.QueueMessages || s.out.bytes >= limits.QueueBytes {
		s.endSlow("messages come faster than they are read; the connection is closed")
		return false
	}
	s.out.messages++
	s.out.bytes += int64(len(f.plain))
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
	s.out.shedding = true
}

// noPong is called by the reader if a pong is missing. A client that does not read does not answer pings, but it may
// later read the reason for the close. So the reader stays, because the connection is closed when the
// reader returns.
func (s *session) noPong() {
	s.mu.Lock()
	first := !s.ending.ended
	s.endSlow("no pong came for " + s.hub.limits.PongWait.String() + "; the connection is closed")
	s.mu.Unlock()
	if first {
		s.conn.discard()
	}
}

// endSlow ends the session of a client that does not read. It discards queued frames that are not written within
// WriteWait, so a connection that stays open uses little memory. The caller holds the session's lock.
func (s *session) endSlow(message string) {
	if s.ending.ended {
		return
	}
	s.hub.metrics.slow.Inc()
	s.hub.metrics.errors.WithLabelValues(string(SlowConsumer)).Inc()
	s.conn.slow.Store(true)
	s.end(errorMessage(SlowConsumer, message), melody.ClosePolicyViolation, string(SlowConsumer), s.hub.limits.SlowWait)
	s.out.shedder = time.AfterFunc(s.hub.limits.WriteWait, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.out.shedding = true
	})
}

// farewell is the number of frames at the end of a slow client's session: a message and a close frame.
const farewell = 2

// shed returns the frames that are still to be written, out of a writer's frames and the queue. If the session is
// shedding, these are only the farewell: nothing can be queued after it, so it is at the end.
func (s *session) shed(frames []*frame) []*frame {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.out.shedding || s.ending.over {
		return frames
	}
	all := slices.Concat(frames, s.out.frames)
	clear(frames) // the reusable storage also refers to them and would keep them in memory
	s.out.frames = nil
	given := max(0, len(all)-farewell)
	s.uncount(countFrames(all[:given]))
	return slices.Clone(all[given:])
}

// queue queues a frame regardless of the limits. The caller holds the session's lock.
func (s *session) queue(f *frame) {
	s.out.messages++
	s.out.bytes += int64(len(f.plain))
	s.hub.metrics.queued.Add(1)
	s.push(f)
}

// push appends a frame and schedules a writer. The caller holds the session's lock.
func (s *session) push(f *frame) {
	s.out.frames = append(s.out.frames, f)
	// A writer checks the queue again under this lock before it releases the session (written). So a frame that is
	// pushed while it writes needs no second writer and is not left behind.
	if !s.out.writing {
		s.out.writing = true
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
	frames := s.out.frames
	s.out.frames, s.out.free = s.out.free, frames[:0]
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
	if s.ending.over {
		return
	}
	s.uncount(t)
	if s.out.room != nil && s.roomy() {
		close(s.out.room)
		s.out.room = nil
	}
}

// uncount subtracts frames from the counts. The caller holds the session's lock.
func (s *session) uncount(t tally) {
	s.out.messages -= t.messages
	s.out.bytes -= int64(t.bytes)
	s.out.controls -= t.controls
	s.hub.metrics.queued.Add(-int64(t.messages))
}

// written is called when a writer has written all frames that it took. If more have been queued, it schedules a
// writer.
func (s *session) written() {
	s.mu.Lock()
	if cap(s.out.free) > maxFree {
		s.out.free = nil
	}
	s.out.writing = len(s.out.frames) > 0 && !s.ending.over
	if s.out.writing {
		s.hub.writers.add(s)
	} else {
		s.tellEmpty()
	}
	parted := s.ending.parting && !s.out.writing
	s.mu.Unlock()
	if parted {
		_ = s.conn.Close() // the close frame was sent; the client has time to answer it
	}
}

// maxFree is the maximum capacity of the reusable queue storage.
const maxFree = 256

// tellEmpty notifies the goroutines that wait for an empty queue. The caller holds the session's lock.
func (s *session) tellEmpty() {
	if s.out.empty != nil {
		close(s.out.empty)
		s.out.empty = nil
	}
}

// unwritable is called when writing to the connection has failed. Nothing more is written, so writing stays true, and
// the reader ends.
func (s *session) unwritable() {
	s.conn.cut()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out.broken, s.ending.ended = true, true
	s.tellEmpty()
}

// isEnded reports whether nothing more may be queued.
func (s *session) isEnded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ending.ended
}

// roomy reports whether most of the queue is free. The caller holds the session's lock.
func (s *session) roomy() bool {
	return s.out.messages <= s.hub.limits.QueueMessages/4 && s.out.bytes <= s.hub.limits.QueueBytes/4
}

// waitForRoom waits until most of the queue is free. It returns false if the connection ends first or patience is
// over.
func (s *session) waitForRoom(patience time.Duration) bool {
	var late <-chan time.Time
	for {
		s.mu.Lock()
		if s.ending.ended || s.roomy() {
			defer s.mu.Unlock()
			return !s.ending.ended
		}
		if s.out.room == nil {
			s.out.room = make(chan struct{})
		}
		room := s.out.room
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
	if s.ending.ended {
		return
	}
	// From here on, deliver and control refuse frames, so nothing is queued after the close frame and the farewell is
	// at the end of the queue, as shed requires. Set the reader's deadline before the frames are queued: when they
	// have been written, Close sets a short deadline, which must not be extended here.
	s.ending.ended, s.ending.closed, s.ending.parting = true, true, true
	s.conn.part(patience)
	if last != nil {
		s.queue(textFrame(last))
	}
	s.out.controls++
	s.push(&frame{plain: closeFrame(melody.FormatCloseMessage(code, reason))})
	s.ending.cutter = time.AfterFunc(patience, s.conn.cut)
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
	if s.ending.cutter != nil && !s.ending.over {
		s.ending.cutter.Reset(s.hub.limits.WriteWait)
		s.conn.hasten(!s.out.writing)
	}
}

// gone is called when the connection has ended.
func (s *session) gone() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ending.ended, s.ending.over = true, true
	s.hub.metrics.queued.Add(-int64(s.out.messages))
	s.out.messages, s.out.bytes, s.out.frames = 0, 0, nil
	s.tellEmpty()
	s.cancel()
	for _, t := range []*time.Timer{s.ending.cutter, s.out.shedder, s.auth.check} {
		if t != nil {
			t.Stop()
		}
	}
}

// principal returns the session's principal, or nil if it is not authenticated.
func (s *session) principal() *access.Principal {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.auth.who
}
