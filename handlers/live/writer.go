package live

import (
	"bytes"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/olahol/melody"
)

// gatherBytes is how much is written at once at the most, but for a single frame that is longer.
const gatherBytes = 32 << 10

// writers write what the sessions of a hub have queued. They are few, as many as there are processors, and go from
// session to session without ever waiting for a client: what has gathered for a session meanwhile is written with one
// system call, and no goroutine is woken for it. A connection that takes no more for now, and one that can't be written
// without waiting, has a goroutine of its own for as long as that lasts.
type writers struct {
	most    int
	serving *sync.WaitGroup // counts the writers too
	buffers sync.Pool       // *[]byte of gatherBytes

	mu      sync.Mutex
	ready   []*session // that wait for a writer, from next on
	next    int
	running int
}

// add has a session written. The session must be counted in serving, and is added again only when it was written.
func (w *writers) add(s *session) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ready = append(w.ready, s)
	if w.running < w.most {
		w.running++
		w.serving.Go(w.run)
	}
}

func (w *writers) run() {
	buffer := w.buffer()
	defer w.buffers.Put(buffer)
	for s := w.take(); s != nil; s = w.take() {
		s.write(*buffer)
	}
}

func (w *writers) buffer() *[]byte {
	if b, ok := w.buffers.Get().(*[]byte); ok {
		return b
	}
	b := make([]byte, gatherBytes)
	return &b
}

// take returns the session that has waited longest, nil if none waits, which ends a writer.
func (w *writers) take() *session {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.next == len(w.ready) {
		w.running--
		return nil
	}
	s := w.ready[w.next]
	w.ready[w.next] = nil
	w.next++
	switch left := len(w.ready) - w.next; {
	case left == 0:
		w.ready, w.next = w.ready[:0], 0
	case w.next >= 1024 && w.next > left:
		w.ready, w.next = slices.Delete(w.ready, 0, w.next), 0
	}
	return s
}

// write writes what is queued, as far as the connection takes it at once.
func (s *session) write(buffer []byte) {
	frames := s.dequeue()
	for len(frames) > 0 {
		if s.compressed() && len(frames[0].plain) > gatherBytes {
			// Compressing a large snapshot takes milliseconds. Other sessions must not wait for it.
			s.hub.serving.Go(func() { s.writeSlowly(frames, 1, frames[0].wire(true)) })
			return
		}
		p, n := gather(frames, s.compressed(), buffer)
		done, err := s.conn.writeSome(p)
		switch {
		case err != nil:
			s.unwritable()
			return
		case done < len(p):
			// A client that reads slowly must not hold up this writer, which has others to serve. The session stays marked
			// as being written, so no other writer takes it, until writeSlowly has caught up.
			if n > 1 { // the buffer goes on to the next session
				p = bytes.Clone(p[done:])
			} else {
				p = p[done:]
			}
			s.hub.serving.Go(func() { s.writeSlowly(frames, n, p) })
			return
		}
		s.wrote(frames[:n])
		frames = frames[n:]
	}
	s.written()
}

// writeSlowly goes on with p, which ends the first n of the frames, and waits for the client where it must.
func (s *session) writeSlowly(frames []*frame, n int, p []byte) {
	buffer := s.hub.writers.buffer()
	defer s.hub.writers.buffers.Put(buffer)
	begun, left := frames[:n], frames[n:]
	for {
		rest, err := s.conn.writeAll(p, s.hub.limits.WriteWait)
		switch {
		case err == nil:
			s.wrote(begun)
			if left = s.shed(left); len(left) == 0 {
				s.written()
				return
			}
			p, n = gather(left, s.compressed(), *buffer)
			begun, left = left[:n], left[n:]
		case s.conn.resumable(err):
			// The frame that was begun has to be ended before anything else, or the client could not read what
			// says why it is closed. This goes on until the session's cutter cuts the connection.
			s.late()
			p, left = rest, s.shed(left)
		default:
			s.unwritable()
			return
		}
	}
}

// gather returns the first n frames as one piece, in the buffer if they are several.
func gather(frames []*frame, compressed bool, buffer []byte) (p []byte, n int) {
	p = frames[0].wire(compressed)
	for n = 1; n < len(frames) && len(frames[n].plain) <= len(buffer); n++ {
		next := frames[n].wire(compressed)
		if len(p)+len(next) > len(buffer) {
			break
		}
		if n == 1 {
			p = append(buffer[:0], p...)
		}
		p = append(p, next...)
	}
	return p, n
}

// tooBig tells the client that it has sent too large a message.
func (s *session) tooBig() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hub.metrics.errors.WithLabelValues(string(InvalidMessage)).Inc()
	if !s.ended && !s.over {
		s.queue(textFrame(errorMessage(InvalidMessage, "the message is larger than "+sizeText(s.hub.limits.MessageBytes))))
	}
}

// echoWait is how long the answer to a client's close frame may take to be written.
const echoWait = time.Second

// echo answers a client's close frame with the client's own code. The library would write the same, but a code of 1009
// could then not be told from the library's own.
func (s *session) echo(code int) {
	_ = s.control(closeFrame(melody.FormatCloseMessage(code, "")), time.Now().Add(echoWait))
}

// maxControls bounds the control frames that wait to be written: a client may ask for a pong with each ping that it
// sends, and not read any.
const maxControls = 16

// control queues a control frame, which the WebSocket library writes whenever it likes. After a close frame nothing is
// sent any more, and it returns once that is written, or can't be, or the deadline has passed.
func (s *session) control(p []byte, deadline time.Time) error {
	s.mu.Lock()
	switch {
	case s.over || s.broken || s.closed:
		s.mu.Unlock()
		return net.ErrClosed
	case !isClose(p) && s.controls >= maxControls:
		s.mu.Unlock()
		return nil
	}
	s.controls++
	s.push(&frame{plain: bytes.Clone(p)})
	if !isClose(p) {
		s.mu.Unlock()
		return nil
	}
	s.ended, s.closed = true, true
	if s.empty == nil {
		s.empty = make(chan struct{})
	}
	empty := s.empty
	s.mu.Unlock()
	timeout := time.NewTimer(time.Until(deadline))
	defer timeout.Stop()
	select {
	case <-empty:
		return nil
	case <-timeout.C:
		return os.ErrDeadlineExceeded
	}
}
