package live

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Wrap puts a net.Conn of the caller's under a socket, below the WebSocket library and below our own: tests do, to
// have a client that does not read. Its Close must write what it still holds.
type Wrap func(net.Conn) net.Conn

const (
	// lingerFor and lingerBytes bound what is read and thrown away after a connection was ended by the server. A
	// socket that is closed with unread data in it is reset, and a reset throws away what the client has not read
	// yet: the message that says why it was closed.
	lingerFor   = 2 * time.Second
	lingerBytes = 4 << 20
)

// conn is the connection below a socket. The WebSocket library makes one system call for each message, which under
// load costs more than all else that is done for it; so a message that others wait behind is held back and written
// together with them. The last of them, and whatever is no message, is written at once with all that is held.
type conn struct {
	net.Conn
	// follows reports whether another message is to be written after this one.
	follows func() bool
	out     gathered
	// tooBig returns what to write before the close frame with which the WebSocket library answers an oversized
	// message by itself; nothing if a message is being written.
	tooBig func() []byte
	linger atomic.Bool // the server ended it
	unread atomic.Bool // the reader stopped in the middle of a message
	closed sync.Once
}

// Write writes a frame, or a part of one. The library never calls it twice at once.
func (c *conn) Write(p []byte) (int, error) {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	if c.out.message(p) {
		if c.out.rest > 0 || c.follows() {
			return len(p), c.hold(p)
		}
	} else if isTooBig(p) {
		c.linger.Store(true)
		c.unread.Store(true)
		if frame := c.tooBig(); frame != nil {
			c.out.held = append(c.out.held, frame...)
		}
	}
	if len(c.out.held) == 0 {
		return c.write(p)
	}
	c.out.held = append(c.out.held, p...)
	return len(p), c.flush()
}

// SetWriteDeadline sets the deadline of the writes that follow. The library sets one for each message, so it is only
// remembered until something is written.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	c.out.deadline = t
	return nil
}

// write writes p to the connection. The lock must be held.
func (c *conn) write(p []byte) (int, error) {
	if err := c.Conn.SetWriteDeadline(c.out.deadline); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// gathered is what waits to be written together.
type gathered struct {
	mu       sync.Mutex
	held     []byte
	deadline time.Time  // of a write
	pool     *sync.Pool // of buffers for it, *[]byte: most sockets hold nothing most of the time
	rest     int        // bytes of the message at hand that are still to come
}

// gatherBytes is how much is written at once at the most, but for a single message that is longer.
const gatherBytes = 32 << 10

// message reports whether p is, or belongs to, a text message, and keeps count of what is left of it: the library
// writes a long one in two parts.
func (g *gathered) message(p []byte) bool {
	if g.rest == 0 {
		g.rest = textSize(p)
	}
	if g.rest == 0 {
		return false
	}
	g.rest = max(0, g.rest-len(p))
	return true
}

// textSize returns the length of the text frame that begins p, 0 if none does.
func textSize(p []byte) int {
	switch {
	case len(p) < 2 || p[0] != 0x81:
		return 0
	case p[1] < 126:
		return 2 + int(p[1])
	case p[1] == 126 && len(p) >= 4:
		return 4 + int(binary.BigEndian.Uint16(p[2:]))
	case p[1] == 127 && len(p) >= 10:
		return 10 + int(binary.BigEndian.Uint64(p[2:]))
	}
	return 0
}

// hold keeps p, and writes what is held if it is much.
func (c *conn) hold(p []byte) error {
	if c.out.held == nil {
		if b, ok := c.out.pool.Get().(*[]byte); ok {
			c.out.held = *b
		}
	}
	c.out.held = append(c.out.held, p...)
	if len(c.out.held) < gatherBytes {
		return nil
	}
	return c.flush()
}

// flush writes what is held. The lock must be held.
func (c *conn) flush() error {
	if len(c.out.held) == 0 {
		return nil
	}
	_, err := c.write(c.out.held)
	if b := c.out.held[:0]; cap(b) <= 2*gatherBytes {
		c.out.pool.Put(&b)
	}
	c.out.held = nil
	return err
}

// isTooBig reports whether p is a close frame with the code 1009, as the library writes it in one call.
func isTooBig(p []byte) bool {
	return len(p) >= 4 && len(p) == int(p[1])+2 && p[0] == 0x88 && p[2] == 1009>>8 && p[3] == 1009&0xff
}

// textFrame returns an unmasked text frame. The payload is shorter than 64 KiB.
func textFrame(payload []byte) []byte {
	b := []byte{0x81}
	if n := len(payload); n < 126 {
		b = append(b, byte(n))
	} else {
		b = append(b, 126, byte(n>>8), byte(n))
	}
	return append(b, payload...)
}

// Close closes the connection. If the server ended it, only what the server sends is closed, and the reader goes on for
// a while, so that the client has the time to read why; finish closes the rest.
func (c *conn) Close() error {
	var err error
	c.closed.Do(func() {
		if c.out.mu.TryLock() { // otherwise a write is under way, which writes what is held or fails
			_ = c.flush()
			c.out.mu.Unlock()
		}
		half, ok := c.Conn.(interface{ CloseWrite() error })
		if !ok || !c.linger.Load() || half.CloseWrite() != nil {
			err = c.Conn.Close()
			return
		}
		_ = c.Conn.SetReadDeadline(time.Now().Add(lingerFor))
	})
	return err
}

// finish closes the connection for good. It is called when the reader has ended: the client has answered the close
// frame, or is gone, or has had its time.
func (c *conn) finish() {
	if c.unread.Load() {
		_, _ = io.CopyN(io.Discard, c.Conn, lingerBytes)
	}
	_ = c.Conn.Close()
}

// SetReadDeadline sets the deadline unless the connection is ending, whose deadline must stand.
func (c *conn) SetReadDeadline(t time.Time) error {
	if c.linger.Load() {
		return nil
	}
	return c.Conn.SetReadDeadline(t)
}

// cut closes the connection at once.
func (c *conn) cut() { _ = c.Conn.Close() }

// hijacker hands the WebSocket library our connection instead of the server's.
type hijacker struct {
	http.ResponseWriter
	wrap func(net.Conn) net.Conn
}

var errNoHijack = errors.New("live: the server's response can't be hijacked")

// Hijack implements http.Hijacker.
func (h hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	inner, ok := h.ResponseWriter.(http.Hijacker)
	if !ok {
		return nil, nil, errNoHijack
	}
	c, rw, err := inner.Hijack()
	if err != nil {
		return nil, nil, err
	}
	return h.wrap(c), rw, nil
}
