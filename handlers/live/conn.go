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

// Wrap inserts a net.Conn below the WebSocket library and below conn. Tests use it to simulate a client that does not
// read. Its Close must write buffered data first.
type Wrap func(net.Conn) net.Conn

const (
	// After the server has ended a connection, it reads and discards input for at most lingerFor and lingerBytes. For a
	// slow client, Limits.SlowWait replaces lingerFor.
	// Closing a socket with unread input resets it, and a reset discards data that the client has not read: the
	// message with the reason for the end.
	lingerFor   = 2 * time.Second
	lingerBytes = 4 << 20
)

// conn is the connection below the WebSocket library. The library writes only control frames, which conn puts into
// the session's queue.
type conn struct {
	net.Conn
	raw     syscall.RawConn // nil if the connection does not support nonblocking writes
	session *session
	framed  atomic.Bool // the handshake is complete
	linger  atomic.Bool // the server ended the connection
	slow    atomic.Bool // the client has SlowWait to read the reason, also after everything is written
	unread  atomic.Bool // the reader stopped in the middle of a message
	closed  sync.Once

	// Fields of the reader:
	in    io.Reader // plain frames
	scan  frameScan
	fault *frameFault

	deadline atomic.Int64 // write deadline set by the library, in Unix nanoseconds

	// Fields of the writer:
	attempt func(fd uintptr) bool // writes a part of p
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

// Read returns the input up to the first invalid frame. The library does not detect all such errors. At an error that
// it misses, Read queues the close frame, as the library does for others, and returns an error.
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

// fail sends a close frame for the client's error and returns the error.
func (c *conn) fail() error {
	_ = c.SetWriteDeadline(time.Now().Add(echoWait))
	_, _ = c.Write(closeFrame(melody.FormatCloseMessage(c.fault.code, c.fault.reason)))
	return c.fault
}

// Write is called by the WebSocket library, first with the handshake response and then with one complete frame per
// call.
func (c *conn) Write(p []byte) (int, error) {
	if !c.framed.Load() {
		if _, err := c.Conn.Write(withExtension(p, c.session.extension)); err != nil {
			return 0, err
		}
		return len(p), nil
	}
	// The client may be in the middle of a message. finish discards the rest, because closing with unread input would
	// reset the connection and the client would not receive the close frame.
	if isClose(p) { // a client error: other close frames, including responses, do not pass through here
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

// SetWriteDeadline sets the deadline for frames of the library.
func (c *conn) SetWriteDeadline(t time.Time) error {
	if !c.framed.Load() {
		return c.Conn.SetWriteDeadline(t)
	}
	c.deadline.Store(t.UnixNano())
	return nil
}

// writeSome writes as much as the connection accepts without blocking, possibly nothing.
func (c *conn) writeSome(p []byte) (int, error) {
	if c.raw == nil {
		return 0, nil
	}
	c.p, c.n, c.err = p, 0, nil
	err := c.raw.Write(c.attempt)
	c.p = nil
	return c.n, errors.Join(err, c.err)
}

// once makes one write system call. It always returns true, so the runtime does not wait until the socket is
// writable.
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

// writeAll writes p within the timeout patience. After an error it returns the unwritten rest.
func (c *conn) writeAll(p []byte, patience time.Duration) (rest []byte, err error) {
	if err := c.Conn.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		return p, err
	}
	if n, err := c.Conn.Write(p); err != nil {
		return p[n:], err
	}
	return nil, c.Conn.SetWriteDeadline(time.Time{})
}

// resumable reports whether a failed write may be continued where it stopped. Over TLS it may not.
func (c *conn) resumable(err error) bool {
	return c.raw != nil && errors.Is(err, os.ErrDeadlineExceeded)
}

// part prepares for an end by the server: the client gets the time patience to read the last frames, and the reader
// continues for that time.
func (c *conn) part(patience time.Duration) {
	c.linger.Store(true)
	_ = c.Conn.SetReadDeadline(time.Now().Add(patience))
}

// discard reads and discards input until the connection ends or its deadline passes.
func (c *conn) discard() { _, _ = io.Copy(io.Discard, c.Conn) }

// Close closes the connection. If the server ended it, Close closes only the sending direction, and the reader
// continues for a while, so that the client has time to read the reason. finish closes the rest.
//
// For a slow client, Close does not shorten the deadline that part has set. The kernels' buffers may hold much that the client
// has not read, with pings in it. A pong that arrives after finish resets the connection, and the client loses the rest.
func (c *conn) Close() error {
	var err error
	c.closed.Do(func() {
		half, ok := c.Conn.(interface{ CloseWrite() error })
		if !ok || !c.linger.Load() || half.CloseWrite() != nil {
			err = c.Conn.Close()
			return
		}
		if !c.slow.Load() {
			_ = c.Conn.SetReadDeadline(time.Now().Add(lingerFor))
		}
	})
	return err
}

// hasten ends the extra time of a slow client. written reports whether everything has been written.
func (c *conn) hasten(written bool) {
	if c.slow.Swap(false) && written {
		_ = c.Conn.SetReadDeadline(time.Now().Add(lingerFor))
	}
}

// finish closes the connection completely. It is called after the reader has ended: the client has answered the close
// frame, has disconnected, or has exceeded its time.
func (c *conn) finish() {
	if c.unread.Load() {
		_, _ = io.CopyN(io.Discard, c.Conn, lingerBytes)
	}
	_ = c.Conn.Close()
}

// SetReadDeadline sets the read deadline, unless the connection is ending, which has set a final one.
func (c *conn) SetReadDeadline(t time.Time) error {
	if c.linger.Load() {
		return nil
	}
	return c.Conn.SetReadDeadline(t)
}

// cut closes the connection immediately.
func (c *conn) cut() { _ = c.Conn.Close() }

// hijacker returns a conn to the WebSocket library instead of the server's connection.
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
