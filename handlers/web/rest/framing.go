package rest

import (
	"bytes"
	"context"
	"math"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
)

// A request with both a Content-Length and a Transfer-Encoding has two possible ends. If a proxy uses one and the
// server the other, the bytes between them can be interpreted as another client's request (RFC 9112, section 6.1).
// net/http uses the Transfer-Encoding and drops the Content-Length before a handler could see it, so connections
// detect the combination themselves.

// Listen wraps a listener: its TCP connections detect this. Call Watch for the server that uses it. While limit connections are
// open, it accepts no further one. It calls full when it begins to wait.
func Listen(l net.Listener, limit int, full func()) net.Listener {
	return &listener{Listener: l, slots: make(chan struct{}, limit), full: full, closed: make(chan struct{})}
}

type listener struct {
	net.Listener
	slots  chan struct{} // one for each open connection
	full   func()
	once   sync.Once
	closed chan struct{}
}

// Accept waits for the next connection.
func (l *listener) Accept() (net.Conn, error) {
	if err := l.acquire(); err != nil {
		return nil, err
	}
	release := sync.OnceFunc(func() { <-l.slots })
	c, err := l.Listener.Accept()
	if err != nil {
		release()
		return nil, err
	}
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		release()
		return c, nil
	}
	return &conn{socket: socket{tcp, release}}, nil
}

// acquire waits until a connection may be open.
func (l *listener) acquire() error {
	select {
	case l.slots <- struct{}{}:
		return nil
	default:
		l.full()
	}
	select {
	case l.slots <- struct{}{}:
		return nil
	case <-l.closed:
		return net.ErrClosed
	}
}

// Close closes the listener. Its connections stay open.
func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// socket is a connection that counts as open until it is closed.
type socket struct {
	*net.TCPConn
	release func()
}

// Close implements net.Conn.
func (s socket) Close() error {
	defer s.release()
	return s.TCPConn.Close()
}

type connKey struct{}

// Watch gives the server's requests access to their connection and routes all requests to the server's handler, which
// counts them. Otherwise the server would answer OPTIONS * without the handler.
func Watch(s *http.Server) {
	s.ConnContext = func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) }
	s.DisableGeneralOptionsHandler = true
}

// Hijacked returns the connection to use after a handler has hijacked c, because data on it is not HTTP any more.
func Hijacked(c net.Conn) net.Conn {
	if watched, ok := c.(*conn); ok {
		return watched.socket
	}
	return c
}

// conn tracks the requests that are read from a connection.
type conn struct {
	socket
	framing framing
	served  atomic.Int64 // requests that have reached a handler
	astray  atomic.Int64 // number of the request, from 1, at which tracking failed; 0: none
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.TCPConn.Read(b)
	if c.framing.follow(b[:n]); c.framing.part == astray {
		c.astray.CompareAndSwap(0, c.framing.heads)
	}
	return n, err
}

// ambiguous reports whether a request has both headers, of which net/http has dropped one. It must be called once for
// each request that reaches a handler. The server may already have read further requests, so ambiguous compares the
// request's number with that of the ambiguous one.
func ambiguous(r *http.Request) bool {
	c, ok := r.Context().Value(connKey{}).(*conn)
	if !ok {
		return false
	}
	n, from := c.served.Add(1), c.astray.Load()
	return len(r.TransferEncoding) > 0 && from > 0 && n >= from
}

// part is the next expected part of a request.
type part uint8

const (
	inHead    part = iota
	inLength       // a body of known length; left bytes remain
	inSize         // the line with the size of the next chunk
	inChunk        // a chunk; left bytes remain, including the line break
	inTrailer      // the lines after the last chunk
	astray         // both headers, HTTP/2, or an error for which net/http ends the connection; the rest is not tracked
)

// next returns the part that follows a body or chunk.
func (p part) next() part {
	if p == inChunk {
		return inSize
	}
	return inHead
}

// maxLine is the length up to which a line is examined. All relevant lines are shorter, or cause an error.
const maxLine = 64

// framing tracks the boundaries of requests by the rules of net/http, for input in pieces of any size. Text in a body
// that resembles a head is therefore skipped.
type framing struct {
	part  part
	heads int64  // complete heads; when astray, the number of the affected request
	left  uint64 // remaining bytes of a body or chunk

	line    [maxLine]byte           // the beginning of the line
	n       int                     // used bytes of line
	size    int                     // size of the line so far
	version [len("HTTP/1.0\r")]byte // the end of the request line

	// State of the current head:
	begun    bool  // the request line is complete
	old      bool  // HTTP/1.0 or older, where Transfer-Encoding has no meaning
	length   int64 // Content-Length, or -1
	chunked  bool
	odd      bool // one of the two headers is invalid for net/http or not understood here
	decisive bool // the previous line was one of the two headers
}

// follow processes the next bytes.
func (f *framing) follow(b []byte) {
	for len(b) > 0 && f.part != astray {
		if f.part == inLength || f.part == inChunk {
			step := min(f.left, uint64(len(b)))
			b, f.left = b[step:], f.left-step
			if f.left == 0 {
				f.part = f.part.next()
			}
			continue
		}
		line, rest, ended := bytes.Cut(b, []byte{'\n'})
		b = rest
		if ended && f.begun && f.size == 0 && len(line) < maxLine { // the usual case: a complete line
			f.end(line, true)
			continue
		}
		f.extend(line)
		if ended {
			f.end(f.line[:f.n], f.size == f.n)
			f.n, f.size = 0, 0
		}
	}
}

// extend adds bytes to the current line.
func (f *framing) extend(more []byte) {
	f.n += copy(f.line[f.n:], more)
	f.size += len(more)
	if !f.begun { // a request line may be long; only its end matters
		room := f.version[:]
		if k := len(more); k < len(room) {
			copy(room, room[k:])
			copy(room[len(room)-k:], more)
		} else {
			copy(room, more[k-len(room):])
		}
	}
}

// end processes a line that has ended. line is only its beginning unless whole is true.
func (f *framing) end(line []byte, whole bool) {
	if whole {
		line = bytes.TrimSuffix(line, []byte{'\r'})
	}
	switch {
	case f.part == inSize:
		f.chunk(line)
	case f.part == inTrailer:
		if len(line) == 0 {
			f.part = inHead
		}
	case f.begun && len(line) > 0:
		f.header(line, whole)
	case f.begun:
		f.body()
	case len(line) > 0: // skips an extra line break after the previous body
		f.begun, f.length = true, -1
		version := bytes.TrimSuffix(f.version[:], []byte{'\r'})
		switch protocol := string(version[len(version)-len("HTTP/1.0"):]); {
		case protocol == "HTTP/2.0": // the preface of another node's stream, whose frames state their lengths
			f.part = astray
		default:
			f.old = protocol <= "HTTP/1.0"
		}
	}
}

// header processes a line of a head.
func (f *framing) header(line []byte, whole bool) {
	switch line[0] {
	case ' ', '\t': // continues the previous line
		f.odd = f.odd || f.decisive
		return
	case 'c', 'C', 't', 'T':
	default: // most lines
		f.decisive = false
		return
	}
	name, value, _ := bytes.Cut(line, []byte{':'})
	value = bytes.Trim(value, " \t")
	f.decisive = true
	switch {
	case bytes.EqualFold(name, []byte("content-length")):
		n, err := strconv.ParseUint(string(value), 10, 63)
		f.odd = f.odd || err != nil || !whole || f.length >= 0 && f.length != int64(n)
		f.length = int64(n)
	case !f.old && bytes.EqualFold(name, []byte("transfer-encoding")):
		f.odd = f.odd || f.chunked || !whole || !bytes.EqualFold(value, []byte("chunked"))
		f.chunked = true
	default:
		f.decisive = false
	}
}

// body starts the part after a head.
func (f *framing) body() {
	f.heads++
	switch {
	case f.odd, f.chunked && f.length >= 0:
		f.part = astray
	case f.chunked:
		f.part = inSize
	case f.length > 0:
		f.part, f.left = inLength, uint64(f.length)
	}
	f.begun, f.old, f.chunked, f.odd, f.decisive = false, false, false, false, false
}

// chunk processes a chunk-size line and starts the chunk or the trailer.
func (f *framing) chunk(line []byte) {
	size, _, _ := bytes.Cut(line, []byte{';'})
	n, err := strconv.ParseUint(string(bytes.TrimRight(size, " \t")), 16, 64)
	switch {
	case err != nil || n > math.MaxInt64: // this request fails in net/http; the next one cannot be tracked
		f.part = astray
		f.heads++
	case n == 0:
		f.part = inTrailer
	default:
		f.part, f.left = inChunk, n+uint64(len("\r\n"))
	}
}
