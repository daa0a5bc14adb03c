package live

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/olahol/melody"
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

// conn is the connection below a socket. What the WebSocket library writes of its own accord, which are control frames
// alone, goes into the session's queue with everything else.
type conn struct {
	net.Conn
	raw     syscall.RawConn // nil if the connection can't be written without waiting
	session *session
	framed  atomic.Bool // the handshake is over
	linger  atomic.Bool // the server ended it
	unread  atomic.Bool // the reader stopped in the middle of a message
	closed  sync.Once

	// Of the reader.
	in    io.Reader // of plain frames
	scan  frameScan
	fault *frameFault

	deadline atomic.Int64 // of the library's writes, in nanoseconds of the clock

	// Of whoever writes.
	attempt func(fd uintptr) bool // writes some of p
	p       []byte
	n       int
	err     error
}

func newConn(c net.Conn, s *session) *conn {
	out := &conn{Conn: c, session: s, in: c}
	if s.extension != "" {
		out.in = &inflater{raw: c, limit: s.hub.limits.MessageBytes}
	}
	if below, ok := c.(syscall.Conn); ok {
		if raw, err := below.SyscallConn(); err == nil {
			out.raw, out.attempt = raw, out.once
		}
	}
	return out
}

// Read returns what the client sent before its first fault. After that the library, which would let the fault pass, is
// told that the connection has failed, as it says itself of the faults that it knows: by a close frame.
func (c *conn) Read(p []byte) (int, error) {
	if c.fault != nil {
		return 0, c.fail()
	}
	n, err := c.in.Read(p)
	good, fault := c.scan.next(p[:n])
	if fault == nil && !errors.As(err, &fault) {
		return n, err
	}
	if c.fault = fault; good == 0 {
		return 0, c.fail()
	}
	return good, nil
}

// fail has the client told of its fault.
func (c *conn) fail() error {
	_ = c.SetWriteDeadline(time.Now().Add(echoWait))
	_, _ = c.Write(closeFrame(melody.FormatCloseMessage(c.fault.code, c.fault.reason)))
	return c.fault
}

// Write is called by the WebSocket library, which writes a whole frame at a time, and the answer to the handshake
// before.
func (c *conn) Write(p []byte) (int, error) {
	if !c.framed.Load() {
		if _, err := c.Conn.Write(withExtension(p, c.session.extension)); err != nil {
			return 0, err
		}
		return len(p), nil
	}
	// The client may be amid a message that nobody reads any more. What is left of it is thrown away in finish, or closing
	// would reset the connection and take the close frame along.
	if isClose(p) { // about a fault of the client's: other ends, and answers to the client's, don't come this way
		c.linger.Store(true)
		c.unread.Store(true)
	}
	if isTooBig(p) {
		c.session.tooBig()
	}
	if err := c.session.control(p, time.Unix(0, c.deadline.Load())); err != nil {
		return 0, err
	}
	return len(p), nil
}

// SetWriteDeadline sets the deadline of what the library writes.
func (c *conn) SetWriteDeadline(t time.Time) error {
	if !c.framed.Load() {
		return c.Conn.SetWriteDeadline(t)
	}
	c.deadline.Store(t.UnixNano())
	return nil
}

// writeSome writes what the connection takes without waiting, which may be nothing.
func (c *conn) writeSome(p []byte) (int, error) {
	if c.raw == nil {
		return 0, nil
	}
	c.p, c.n, c.err = p, 0, nil
	err := c.raw.Write(c.attempt)
	c.p = nil
	return c.n, errors.Join(err, c.err)
}

// once calls the system once, and never asks to be called again when the connection takes more.
func (c *conn) once(fd uintptr) bool {
	for {
		n, err := syscall.Write(int(fd), c.p)
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.EAGAIN:
		case err != nil:
			c.err = err
		default:
			c.n = n
		}
		return true
	}
}

// writeAll writes p, which may take so long, and returns what it did not come to.
func (c *conn) writeAll(p []byte, patience time.Duration) (rest []byte, err error) {
	if err := c.Conn.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		return p, err
	}
	if n, err := c.Conn.Write(p); err != nil {
		return p[n:], err
	}
	return nil, c.Conn.SetWriteDeadline(time.Time{})
}

// resumable reports whether a write that ended with the error may go on where it stopped. One over TLS may not.
func (c *conn) resumable(err error) bool {
	return c.raw != nil && errors.Is(err, os.ErrDeadlineExceeded)
}

// part prepares for an end by the server: the client has so long to read what it is sent, and the reader stays for it.
func (c *conn) part(patience time.Duration) {
	c.linger.Store(true)
	_ = c.Conn.SetReadDeadline(time.Now().Add(patience))
}

// discard reads until the connection ends, or its deadline passes.
func (c *conn) discard() { _, _ = io.Copy(io.Discard, c.Conn) }

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
