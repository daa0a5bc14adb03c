package live

import (
	"context"
	"sync"
	"time"

	"github.com/olahol/melody"

	"github.com/perpetua-exchange/perpetua/handlers/web"
)

// session is one connection.
type session struct {
	hub    *Hub
	socket *melody.Session
	conn   *conn

	// Of the goroutine that reads requests.
	bucket *bucket
	excess int

	subscriptions map[string]*subscription // by topic; under the hub's lock
	ctx           context.Context          // ends with the connection
	cancel        context.CancelFunc

	mu       sync.Mutex
	frames   [][]byte      // queued, in their order
	free     [][]byte      // the queue before it, to be used again
	writing  bool          // a writer has the session, or will come to it
	messages int           // not written yet, whether still queued or not
	bytes    int64         // of those
	controls int           // control frames not written yet
	room     chan struct{} // closed when there is much room again, if somebody waits for that
	empty    chan struct{} // closed when nothing is left to be written, if somebody waits for that
	broken   bool          // the connection can't be written any more
	ended    bool          // nothing more is sent
	closed   bool          // a close frame is queued, which is the last
	over     bool          // the connection is gone
	cutter   *time.Timer
	who      *web.Principal
	token    string
	check    *time.Timer // verifies the token again
}

// send queues a message.
func (s *session) send(message []byte) {
	if s.deliver(textFrame(message)) {
		s.hub.metrics.queued.Add(1)
	}
}

// deliver queues a message's frame, which must not change any more, and reports whether it did; the caller counts it.
// It never waits: a queue that is full ends the session. A single message may be larger than what the queue holds
// otherwise, or the snapshot of a very deep book could not be sent to anybody.
func (s *session) deliver(frame []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return false
	}
	limits := &s.hub.limits
	if s.messages >= limits.QueueMessages || s.bytes >= limits.QueueBytes {
		s.endSlow()
		return false
	}
	s.messages++
	s.bytes += int64(len(frame))
	s.push(frame)
	return true
}

// slow ends the session of a client that does not keep up.
func (s *session) slow() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endSlow()
}

func (s *session) endSlow() {
	if s.ended {
		return
	}
	s.hub.metrics.slow.Inc()
	s.hub.metrics.errors.WithLabelValues(string(SlowConsumer)).Inc()
	s.end(errorMessage(SlowConsumer, "messages come faster than they are read; the connection is closed"),
		melody.ClosePolicyViolation, string(SlowConsumer))
}

// queue queues a message's frame whatever else is queued. It is called under the session's lock.
func (s *session) queue(frame []byte) {
	s.messages++
	s.bytes += int64(len(frame))
	s.hub.metrics.queued.Add(1)
	s.push(frame)
}

// push puts a frame behind the others and sees to it that a writer comes. It is called under the session's lock.
func (s *session) push(frame []byte) {
	s.frames = append(s.frames, frame)
	if !s.writing {
		s.writing = true
		s.hub.writers.add(s)
	}
}

// taken returns all that is queued, to be written by the caller alone.
func (s *session) taken() [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	frames := s.frames
	s.frames, s.free = s.free, frames[:0]
	return frames
}

// wrote is called when frames were written, which are not used any more.
func (s *session) wrote(frames [][]byte) {
	messages, size := 0, 0
	for i, f := range frames {
		if isText(f) {
			messages++
			size += len(f)
		}
		frames[i] = nil
	}
	s.hub.metrics.sent.Add(int64(messages))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	s.messages -= messages
	s.bytes -= int64(size)
	s.controls -= len(frames) - messages
	s.hub.metrics.queued.Add(-int64(messages))
	if s.room != nil && s.roomy() {
		close(s.room)
		s.room = nil
	}
}

// written is called when all was written that was taken; what has come meanwhile waits for its turn.
func (s *session) written() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cap(s.free) > maxFree {
		s.free = nil
	}
	if s.writing = len(s.frames) > 0 && !s.over; s.writing {
		s.hub.writers.add(s)
		return
	}
	s.settle()
}

// maxFree is how many places of a queue are kept when they are not needed.
const maxFree = 256

// settle tells who waits for it that nothing is left to be written. It is called under the session's lock.
func (s *session) settle() {
	if s.empty != nil {
		close(s.empty)
		s.empty = nil
	}
}

// unwritable is called when the connection can't be written. Nothing is written to it any more, so the session keeps
// its writer, and its reader ends.
func (s *session) unwritable() {
	s.conn.cut()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken, s.ended = true, true
	s.settle()
}

// isEnded reports whether nothing more is sent.
func (s *session) isEnded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// roomy reports whether most of the queue is free. It is called under the session's lock.
func (s *session) roomy() bool {
	return s.messages <= s.hub.limits.QueueMessages/4 && s.bytes <= s.hub.limits.QueueBytes/4
}

// waitForRoom waits until most of the queue is free, and reports false if the connection ends first or it takes longer
// than so long.
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

// close ends the session after what is queued, with a last message that may be empty.
func (s *session) close(last []byte, code int, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end(last, code, reason)
}

// end is close under the session's lock. A client that does not read is cut off after a while.
func (s *session) end(last []byte, code int, reason string) {
	if s.ended {
		return
	}
	s.ended = true
	s.conn.linger.Store(true)
	if last != nil {
		s.queue(textFrame(last))
	}
	_ = s.socket.CloseWithMsg(melody.FormatCloseMessage(code, reason))
	s.cutter = time.AfterFunc(s.hub.limits.WriteWait, s.conn.cut)
}

// gone is called when the connection is over.
func (s *session) gone() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended, s.over = true, true
	s.hub.metrics.queued.Add(-int64(s.messages))
	s.messages, s.bytes, s.frames = 0, 0, nil
	s.settle()
	s.cancel()
	for _, t := range []*time.Timer{s.cutter, s.check} {
		if t != nil {
			t.Stop()
		}
	}
}

// principal returns on whose behalf the session acts, nil if it is not authenticated.
func (s *session) principal() *web.Principal {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.who
}
