package live

import (
	"bytes"
	"encoding/binary"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// recorder is a connection that keeps what is written to it, write by write, and can't be written without waiting.
type recorder struct {
	net.Conn
	mu        sync.Mutex
	entered   chan struct{} // one for each write that has begun
	proceed   chan struct{} // closed when writes may end
	writes    [][]byte
	deadlines []time.Time
	failing   bool
}

func (r *recorder) Write(p []byte) (int, error) {
	r.entered <- struct{}{}
	<-r.proceed
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failing {
		return 0, net.ErrClosed
	}
	r.writes = append(r.writes, bytes.Clone(p))
	return len(p), nil
}

func (r *recorder) SetWriteDeadline(t time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deadlines = append(r.deadlines, t)
	return nil
}

func (r *recorder) Close() error { return nil }

// recorded returns a session that writes to a recorder.
func recorded() (*session, *recorder, *Hub) {
	h := &Hub{limits: Limits{}.withDefaults(), metrics: newMetrics()}
	h.writers = &writers{most: 2, serving: &h.serving}
	r := &recorder{entered: make(chan struct{}, 100), proceed: make(chan struct{})}
	s := &session{hub: h}
	s.conn = newConn(r, s)
	s.conn.framed.Store(true)
	return s, r, h
}

// TestWritesAreGathered lets a first message be on its way while others come: they are written together, as many as
// are good for one write, in their order.
func TestWritesAreGathered(t *testing.T) {
	long := strings.Repeat("x", 5000)
	for name, test := range map[string]struct {
		push    func(s *session, c *conn)
		written []string // after the first message
	}{
		"nothing": {func(*session, *conn) {}, nil},
		"messages": {func(s *session, _ *conn) {
			s.send([]byte("b"))
			s.send([]byte("c"))
		}, []string{"\x81\x01b\x81\x01c"}},
		"a ping between messages": {func(s *session, c *conn) {
			s.send([]byte("b"))
			_, _ = c.Write([]byte{0x89, 0})
			s.send([]byte("c"))
		}, []string{"\x81\x01b\x89\x00\x81\x01c"}},
		"no more than is good": {func(s *session, _ *conn) {
			for range 10 {
				s.send([]byte(long))
			}
		}, []string{strings.Repeat("\x81\x7e\x13\x88"+long, 6), strings.Repeat("\x81\x7e\x13\x88"+long, 4)}},
		"one that is longer": {func(s *session, _ *conn) { s.send([]byte(strings.Repeat(long, 20))) },
			[]string{"\x81\x7f\x00\x00\x00\x00\x00\x01\x86\xa0" + strings.Repeat(long, 20)}},
		"pings without end": {func(_ *session, c *conn) {
			for range 1000 {
				_, _ = c.Write([]byte{0x8a, 0})
			}
		}, []string{strings.Repeat("\x8a\x00", maxControls)}},
	} {
		t.Run(name, func(t *testing.T) {
			s, r, h := recorded()
			s.send([]byte("a"))
			<-r.entered
			test.push(s, s.conn)
			close(r.proceed)
			h.serving.Wait()
			want := append([]string{"\x81\x01a"}, test.written...)
			if len(r.writes) != len(want) {
				t.Fatalf("%d writes, want %d: %.200q", len(r.writes), len(want), r.writes)
			}
			for i, w := range r.writes {
				if string(w) != want[i] {
					t.Errorf("write %d is %.100q, want %.100q", i, w, want[i])
				}
			}
			if len(r.deadlines) != 2*len(want) || r.deadlines[0].IsZero() || !r.deadlines[1].IsZero() {
				t.Errorf("the deadlines are %v, want one for each write", r.deadlines)
			}
			if s.out.messages != 0 || s.out.bytes != 0 || s.out.controls != 0 || s.out.writing || h.metrics.queued.Load() != 0 {
				t.Errorf("%d messages, %d bytes, %d control frames are left, writing %v", s.out.messages, s.out.bytes, s.out.controls, s.out.writing)
			}
		})
	}
}

// TestACloseFrameEndsTheStream writes one behind messages: it is the last, and whoever writes it waits for that.
func TestACloseFrameEndsTheStream(t *testing.T) {
	s, r, h := recorded()
	s.send([]byte("a"))
	<-r.entered
	s.send([]byte("b"))
	_ = s.conn.SetWriteDeadline(time.Now().Add(time.Minute))
	wrote := make(chan error)
	go func() {
		_, err := s.conn.Write([]byte{0x88, 2, 0x03, 0xe8})
		wrote <- err
	}()
	for ended := false; !ended; ended = s.isEnded() {
	}
	s.send([]byte("c"))
	select {
	case err := <-wrote:
		t.Errorf("the close frame counts as written with %v before it is", err)
	default:
	}
	close(r.proceed)
	if err := <-wrote; err != nil {
		t.Error(err)
	}
	h.serving.Wait()
	if got := string(bytes.Join(r.writes, nil)); got != "\x81\x01a\x81\x01b\x88\x02\x03\xe8" {
		t.Errorf("%q", got)
	}
}

// halfClosing is a recorder that notes the last time until which it may be read.
type halfClosing struct {
	*recorder
	halfClosed bool
	readUntil  time.Time
}

func (h *halfClosing) CloseWrite() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.halfClosed = true
	return nil
}

func (h *halfClosing) SetReadDeadline(t time.Time) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.readUntil = t
	return nil
}

// TestTheTimeToReadTheReason: all is written when a connection ends. A slow client, which may have much to read before that, gets
// more time than others, until the server stops.
func TestTheTimeToReadTheReason(t *testing.T) {
	for name, test := range map[string]struct {
		end  func(*session)
		time time.Duration
	}{
		"a slow client": {func(s *session) { s.slow() }, Limits{}.withDefaults().SlowWait},
		"another":       {func(s *session) { s.close(nil, 1001, "") }, lingerFor},
		"a slow client of a server that stops": {func(s *session) {
			s.slow()
			s.hub.serving.Wait()
			s.hasten()
		}, lingerFor},
		"a server that stops before all is written": {func(s *session) {
			s.slow()
			s.hasten()
		}, lingerFor},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, r, h := recorded()
				s.cancel = func() {}
				c := &halfClosing{recorder: r}
				s.conn.Conn = c
				close(r.proceed)
				test.end(s)
				h.serving.Wait()
				if took := time.Until(c.readUntil); !c.halfClosed || took != test.time {
					t.Errorf("the sending half is closed: %v; the client has %v, want %v", c.halfClosed, took, test.time)
				}
				s.gone()
			})
		})
	}
}

// TestAConnectionThatFails gives up what waits for it.
func TestAConnectionThatFails(t *testing.T) {
	s, r, h := recorded()
	r.failing = true
	s.send([]byte("a"))
	<-r.entered
	_ = s.conn.SetWriteDeadline(time.Now().Add(time.Minute))
	wrote := make(chan error)
	go func() {
		_, err := s.conn.Write([]byte{0x88, 0})
		wrote <- err
	}()
	for ended := false; !ended; ended = s.isEnded() {
	}
	close(r.proceed)
	<-wrote
	h.serving.Wait()
	if s.deliver(textFrame([]byte("b"))) {
		t.Error("a message was queued for a connection that can't be written")
	}
	if _, err := s.conn.Write([]byte{0x89, 0}); err == nil {
		t.Error("a ping was written")
	}
	s.cancel = func() {}
	s.gone()
	if n := h.metrics.queued.Load(); n != 0 {
		t.Errorf("%d messages count as queued", n)
	}
}

func TestTextFrames(t *testing.T) {
	for _, n := range []int{0, 1, 125, 126, 65535, 65536, 200_000} {
		f := textFrame(bytes.Repeat([]byte("x"), n)).plain
		header, size := 2, int(f[1])
		switch f[1] {
		case 126:
			header, size = 4, int(binary.BigEndian.Uint16(f[2:]))
		case 127:
			header, size = 10, int(binary.BigEndian.Uint64(f[2:]))
		}
		if f[0] != 0x81 || size != n || len(f) != header+n {
			t.Errorf("a frame of %d bytes begins % x", n, f[:header])
		}
	}
}
