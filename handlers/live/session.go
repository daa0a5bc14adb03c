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

// session is one connection.
type session struct {
	hub    *Hub
	socket *melody.Session
	conn   *conn

	address string // of the client
	seen    uint64 // changes of the identity journal before its token was verified

	extension string // that was negotiated, which is permessage-deflate; "" for none

	// Of the goroutine that reads requests.
	bucket *bucket
	excess int
	turn   <-chan struct{} // closed once the order entry begun last can't be overtaken any more; nil before the first

	entering atomic.Int64 // requests for order entry that are under way

	subscriptions map[string]*subscription // by topic; under the hub's lock
	ctx           context.Context          // ends with the connection
	cancel        context.CancelFunc

	mu       sync.Mutex
	frames   []*frame      // queued, in their order
	free     []*frame      // the queue before it, to be used again
	writing  bool          // a writer has the session, or will come to it
	messages int           // not written yet, whether still queued or not
	bytes    int64         // of those, before they are compressed
	controls int           // control frames not written yet
	room     chan struct{} // closed when there is much room again, if somebody waits for that
	empty    chan struct{} // closed when nothing is left to be written, if somebody waits for that
	broken   bool          // the connection can't be written any more
	ended    bool          // nothing more is sent
	closed   bool          // a close frame is queued, which is the last
	parting  bool          // it is the server's
	shedding bool          // what is queued before the last message and the close frame is given up
	over     bool          // the connection is gone
	cutter   *time.Timer   // cuts the connection
	shedder  *time.Timer   // begins to shed
	id       scalar.ID     // as the engine knows the session; zero if its orders stay when it ends
	opened   int64         // the record that opened it there
	who      *web.Principal
	token    string
	check    *time.Timer // verifies the token again
}

// compressed reports whether the client takes compressed messages.
func (s *session) compressed() bool { return s.extension != "" }

// send queues a message.
func (s *session) send(message []byte) {
	if s.deliver(textFrame(message)) {
		s.hub.metrics.queued.Add(1)
	}
}

// deliver queues a message's frame, which must not change any more, and reports whether it did; the caller counts it.
// It never waits: a queue that is full ends the session. A single message may be larger than what the queue holds
// otherwise, or the snapshot of a very deep book could not be sent to anybody.
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

// late is called when a write has taken too long, which ends the session unless it was ended before.
func (s *session) late() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endSlow("nothing was read for " + s.hub.limits.WriteWait.String() + "; the connection is closed")
	s.shedding = true
}

// noPong is called by the reader when no pong came in time. Whoever does not read sends none: it may still read why it
// was closed. The reader stays until then, since the connection is closed as soon as it ends.
func (s *session) noPong() {
	s.mu.Lock()
	first := !s.ended
	s.endSlow("no pong came for " + s.hub.limits.PongWait.String() + "; the connection is closed")
	s.mu.Unlock()
	if first {
		s.conn.discard()
	}
}

// endSlow ends the session of a client that does not read. What is queued is written if the client takes it soon, and
// otherwise given up, so that a connection which is kept for long holds little. It is called under the session's lock.
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

// farewell is how many frames end a session whose client is slow: a message and a close frame.
const farewell = 2

// shed returns the frames that are left to be written of those that a writer has, and what is queued with them, if the
// session sheds. Nothing can be queued behind the farewell, so that is what the last of them are.
func (s *session) shed(frames []*frame) []*frame {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.shedding || s.over {
		return frames
	}
	all := slices.Concat(frames, s.frames)
	clear(frames) // they are in the queue's spare room, too, and would be kept alive there
	s.frames = nil
	given := max(0, len(all)-farewell)
	s.uncount(countFrames(all[:given]))
	return slices.Clone(all[given:])
}

// queue queues a message's frame whatever else is queued. It is called under the session's lock.
func (s *session) queue(f *frame) {
	s.messages++
	s.bytes += int64(len(f.plain))
	s.hub.metrics.queued.Add(1)
	s.push(f)
}

// push puts a frame behind the others and sees to it that a writer comes. It is called under the session's lock.
func (s *session) push(f *frame) {
	s.frames = append(s.frames, f)
	// A writer that has the session looks at the queue again, under this lock, before it lets go of it (written): so a frame
	// that comes while it writes needs no second writer, and none is left behind.
	if !s.writing {
		s.writing = true
		s.hub.writers.add(s)
	}
}

// dequeue returns all that is queued, to be written by the caller alone.
func (s *session) dequeue() []*frame {
	s.mu.Lock()
	defer s.mu.Unlock()
	// The two slices change places: deliver goes on into the spare one while the writer reads this one, which becomes the
	// spare. That is safe since a session has one writer, which has done with the frames before it comes for more.
	frames := s.frames
	s.frames, s.free = s.free, frames[:0]
	return frames
}

// tally is what some frames count as in a queue.
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

// wrote is called when frames were written, which are not used any more.
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

// uncount takes frames out of the count of what is to be written. It is called under the session's lock.
func (s *session) uncount(t tally) {
	s.messages -= t.messages
	s.bytes -= int64(t.bytes)
	s.controls -= t.controls
	s.hub.metrics.queued.Add(-int64(t.messages))
}

// written is called when all was written that was taken; what has come meanwhile waits for its turn.
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
		_ = s.conn.Close() // the close frame is out: the client is given the time to answer it
	}
}

// maxFree is how many places of a queue are kept when they are not needed.
const maxFree = 256

// tellEmpty tells who waits for it that nothing is left to be written. It is called under the session's lock.
func (s *session) tellEmpty() {
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
	s.tellEmpty()
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
	s.end(last, code, reason, s.hub.limits.WriteWait)
}

// end is close under the session's lock. A client that has not read for so long is cut off.
func (s *session) end(last []byte, code int, reason string, patience time.Duration) {
	if s.ended {
		return
	}
	// From now on deliver and control refuse, so that nothing comes behind the close frame, and the farewell is what the
	// queue ends with, which shed counts on. The deadline of the reader is set before the frames are queued: once they are
	// written the client has only the short time of Close to answer, and that one must not be lengthened here.
	s.ended, s.closed, s.parting = true, true, true
	s.conn.part(patience)
	if last != nil {
		s.queue(textFrame(last))
	}
	s.controls++
	s.push(&frame{plain: closeFrame(melody.FormatCloseMessage(code, reason))})
	s.cutter = time.AfterFunc(patience, s.conn.cut)
	s.hub.serving.Go(s.leave) // elsewhere: the hub's lock is taken before a session's
}

// leave drops the subscriptions of a session that has ended, and has its orders canceled if it asked for that. Its
// connection may stay for a while.
func (s *session) leave() {
	s.hub.disarm(s)
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	for _, sub := range s.subscriptions {
		s.hub.drop(sub)
	}
}

// hasten has the connection of a session that has ended cut soon, since the server stops.
func (s *session) hasten() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cutter != nil && !s.over {
		s.cutter.Reset(s.hub.limits.WriteWait)
	}
}

// gone is called when the connection is over.
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

// principal returns on whose behalf the session acts, nil if it is not authenticated.
func (s *session) principal() *web.Principal {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.who
}
