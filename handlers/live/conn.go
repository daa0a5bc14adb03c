package live

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Wrap puts a net.Conn of the caller's under a socket, below the WebSocket library: for example one that coalesces
// writes. Its Close must write what it still holds.
type Wrap func(net.Conn) net.Conn

const (
	// lingerFor and lingerBytes bound what is read and thrown away after a connection was ended by the server. A
	// socket that is closed with unread data in it is reset, and a reset throws away what the client has not read
	// yet: the message that says why it was closed.
	lingerFor   = 2 * time.Second
	lingerBytes = 4 << 20
)

// conn is the connection below a socket.
type conn struct {
	net.Conn
	// tooBig returns what to write before the close frame with which the WebSocket library answers an oversized
	// message by itself; nothing if a message is being written.
	tooBig func() []byte
	linger atomic.Bool // the server ended it
	unread atomic.Bool // the reader stopped in the middle of a message
	closed sync.Once
}

// Write writes a frame, or a part of one.
func (c *conn) Write(p []byte) (int, error) {
	if isTooBig(p) {
		c.linger.Store(true)
		c.unread.Store(true)
		if frame := c.tooBig(); frame != nil {
			if _, err := c.Conn.Write(frame); err != nil {
				return 0, err
			}
		}
	}
	return c.Conn.Write(p)
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
