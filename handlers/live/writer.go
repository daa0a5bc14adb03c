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

// gatherBytes is the maximum size of one write, except for a single longer frame.
const gatherBytes = 32 << 10

// writers write the queued frames of a hub's sessions. There are at most as many as processors, and they visit the
// sessions without ever waiting for a client. All frames queued for a session are written with one system call, and
// no goroutine is woken for them. A connection that accepts no more data, or does not support nonblocking writes,
// gets a separate goroutine until it has caught up.
type writers struct {
	most    int
	serving *sync.WaitGroup // also counts the writers
	buffers sync.Pool       // *[]byte of size gatherBytes

	mu      sync.Mutex
	ready   []*session // sessions that wait for a writer, from index next
	next    int
	running int
}

// add schedules a session for writing. The session must be counted in serving, and must not be added again before it
// was written.
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

// take returns the session that has waited longest. It returns nil if there is none, and the writer must then end.
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

// write writes the queued frames, as far as the connection accepts them without blocking.
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
			// A slow client must not delay this writer, which serves other sessions. The session stays marked as
			// being written, so no other writer takes it until writeSlowly has finished.
			if n > 1 { // the buffer is reused for the next session
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

// writeSlowly continues to write p, the rest of the first n frames, and waits for the client if necessary.
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
			// The current frame must be completed first; otherwise the client could not read the reason for the
			// close. The loop ends when the session's cutter cuts the connection.
			s.late()
			p, left = rest, s.shed(left)
		default:
			s.unwritable()
			return
		}
	}
}

// gather returns the first n frames as one slice, in buffer if there are several.
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

// tooBig informs the client that its message was too large.
func (s *session) tooBig() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hub.metrics.errors.WithLabelValues(string(InvalidMessage)).Inc()
	if !s.ending.ended && !s.ending.over {
		s.queue(textFrame(errorMessage(InvalidMessage, "the message is larger than "+sizeText(s.hub.limits.MessageBytes))))
	}
}

// echoWait is the time limit for writing the response to a client's close frame.
const echoWait = time.Second

// echo answers a client's close frame with the same code. The library would do the same, but then a code of 1009
// could not be distinguished from the library's close frame.
func (s *session) echo(code int) {
	_ = s.control(closeFrame(melody.FormatCloseMessage(code, "")), time.Now().Add(echoWait))
}

// maxControls limits the queued control frames, because a client may send pings without reading the pongs.
const maxControls = 16

// control queues a control frame for the WebSocket library. Nothing can be queued after a close frame; for a close
// frame, control returns when it is written, when writing has failed, or when the deadline has passed.
func (s *session) control(p []byte, deadline time.Time) error {
	s.mu.Lock()
	switch {
	case s.ending.over || s.out.broken || s.ending.closed:
		s.mu.Unlock()
		return net.ErrClosed
	case !isClose(p) && s.out.controls >= maxControls:
		s.mu.Unlock()
		return nil
	}
	s.out.controls++
	s.push(&frame{plain: bytes.Clone(p)})
	if !isClose(p) {
		s.mu.Unlock()
		return nil
	}
	s.ending.ended, s.ending.closed = true, true
	if s.out.empty == nil {
		s.out.empty = make(chan struct{})
	}
	empty := s.out.empty
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
