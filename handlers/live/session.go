package live

import (
	"context"
	"sync"
	"time"

	"github.com/olahol/melody"

	"github.com/perpetua-exchange/perpetua/handlers/web"
)

// spare is how many messages melody's buffer holds beyond the queue's limit: the error that ends a session and the
// close frame always fit.
const spare = 8

// session is one connection.
type session struct {
	hub    *Hub
	socket *melody.Session
	conn   *conn

	// Of the goroutine that reads requests.
	bucket *bucket
	excess int

	subscriptions map[string]*subscription // by topic; under the hub's lock
	drained       chan struct{}            // holds a token when there is much room again
	ctx           context.Context          // ends with the connection
	cancel        context.CancelFunc

	mu       sync.Mutex
	messages int   // in melody's buffer
	bytes    int64 // of those
	ended    bool  // nothing more is sent
	over     bool  // the connection is gone
	cutter   *time.Timer
	who      *web.Principal
	token    string
	check    *time.Timer // verifies the token again
}

// send queues a message. It never waits: a queue that is full ends the session. A single message may be larger than
// what the queue holds otherwise, or the snapshot of a very deep book could not be sent to anybody.
func (s *session) send(message []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	limits := &s.hub.limits
	if s.messages >= limits.QueueMessages || s.bytes >= limits.QueueBytes {
		s.endSlow()
		return
	}
	s.queue(message)
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

// queue hands a message to melody. It is called under the session's lock, after room was made sure of.
func (s *session) queue(message []byte) {
	s.messages++
	s.bytes += int64(len(message))
	s.hub.metrics.queued.Add(1)
	if s.socket.Write(message) != nil { // the socket is closed
		s.wrote(len(message))
	}
}

// sent is called when a message was written to the connection.
func (s *session) sent(size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wrote(size)
	s.hub.metrics.sent.Add(1)
}

func (s *session) wrote(size int) {
	if s.over {
		return
	}
	s.messages--
	s.bytes -= int64(size)
	s.hub.metrics.queued.Add(-1)
	if s.roomy() {
		select {
		case s.drained <- struct{}{}:
		default:
		}
	}
}

// isEnded reports whether nothing more is sent.
func (s *session) isEnded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// follows reports whether a message is queued behind the one that is being written.
func (s *session) follows() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.messages > 1
}

// idle reports whether nothing is being written.
func (s *session) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.messages == 0
}

// roomy reports whether most of the queue is free. It is called under the session's lock.
func (s *session) roomy() bool {
	return s.messages <= s.hub.limits.QueueMessages/4 && s.bytes <= s.hub.limits.QueueBytes/4
}

// waitForRoom waits until most of the queue is free, and reports false if the connection ends first.
func (s *session) waitForRoom() bool {
	for {
		s.mu.Lock()
		roomy, ended := s.roomy(), s.ended
		s.mu.Unlock()
		if roomy || ended {
			return !ended
		}
		select {
		case <-s.drained:
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
		s.queue(last)
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
	s.messages, s.bytes = 0, 0
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
