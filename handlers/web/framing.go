package web

import (
	"bytes"
	"context"
	"math"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
)

// A request that gives both a Content-Length and a Transfer-Encoding has two ends. Proxies have taken one and servers the
// other, and let what lies between pass for a request of somebody else (RFC 9112, section 6.1). net/http takes the second
// and drops the first before a handler could see it, so connections look for the two themselves.

// Listen makes a listener whose TCP connections do so. Their server is to be watched (Watch).
func Listen(l net.Listener) net.Listener { return listener{l} }

type listener struct{ net.Listener }

// Accept waits for the next connection.
func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if tcp, ok := c.(*net.TCPConn); ok && err == nil {
		return &conn{TCPConn: tcp}, nil
	}
	return c, err
}

type connKey struct{}

// Watch has the requests of a server know their connection, and all come to its handler, by which they are counted: the
// server would answer OPTIONS * by itself.
func Watch(s *http.Server) {
	s.ConnContext = func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) }
	s.DisableGeneralOptionsHandler = true
}

// Hijacked returns the connection to go on with where it was taken from its server: what comes on it is no HTTP any more.
func Hijacked(c net.Conn) net.Conn {
	if watched, ok := c.(*conn); ok {
		return watched.TCPConn
	}
	return c
}

// conn follows the requests that are read from a connection.
type conn struct {
	*net.TCPConn
	framing framing
	served  atomic.Int64 // requests that have come to a handler
	astray  atomic.Int64 // which request it went astray with, from 1; 0 for none
}

// Read reads.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.TCPConn.Read(b)
	if c.framing.follow(b[:n]); c.framing.part == astray {
		c.astray.CompareAndSwap(0, c.framing.heads)
	}
	return n, err
}

// ambiguous reports whether a request has both headers, of which net/http has dropped one. It is asked once for each that
// comes to a handler. The server may have read on by then: what was sent behind a request is no fault of it.
func ambiguous(r *http.Request) bool {
	c, ok := r.Context().Value(connKey{}).(*conn)
	if !ok {
		return false
	}
	n, from := c.served.Add(1), c.astray.Load()
	return len(r.TransferEncoding) > 0 && from > 0 && n >= from
}

// part is what of a request comes next.
type part uint8

const (
	inHead    part = iota
	inLength       // of a known length, left
	inSize         // the line that says how large the next chunk is
	inChunk        // left bytes, the line break after them included
	inTrailer      // the lines after the last chunk
	astray         // a head has both headers, or what net/http ends the connection for: nothing after it is followed
)

// next is what comes after bytes that were counted.
func (p part) next() part {
	if p == inChunk {
		return inSize
	}
	return inHead
}

// maxLine is how much of a line is looked at. The lines that matter are shorter, or go astray.
const maxLine = 64

// framing follows where requests begin and end, however the bytes come in, by the rules that net/http reads them by. So
// what looks like a head in a body is passed over.
type framing struct {
	part  part
	heads int64  // that have come whole; astray, the one from which on
	left  uint64 // of a body or chunk

	line    [maxLine]byte           // how the line begins
	n       int                     // bytes of that
	size    int                     // of the line so far
	version [len("HTTP/1.0\r")]byte // how the request line ends

	// Of the head so far.
	begun    bool  // the request line has come
	old      bool  // HTTP/1.0 or older, for which a Transfer-Encoding means nothing
	length   int64 // -1 without one
	chunked  bool
	odd      bool // a header of the two that net/http refuses, or that is not understood here
	decisive bool // the line before was one of the two
}

// follow takes in what was read next.
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
		if ended && f.begun && f.size == 0 && len(line) < maxLine { // as nearly all lines come
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

// extend adds what was read of a line.
func (f *framing) extend(more []byte) {
	f.n += copy(f.line[f.n:], more)
	f.size += len(more)
	if !f.begun { // of a request line, which may be long, the end matters
		room := f.version[:]
		if k := len(more); k < len(room) {
			copy(room, room[k:])
			copy(room[len(room)-k:], more)
		} else {
			copy(room, more[k-len(room):])
		}
	}
}

// end takes in a line that has ended, or how it began.
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
	case len(line) > 0: // else a line break too many behind the last body
		f.begun, f.length = true, -1
		version := bytes.TrimSuffix(f.version[:], []byte{'\r'})
		f.old = string(version[len(version)-len("HTTP/1.0"):]) <= "HTTP/1.0"
	}
}

// header takes in a line of a head.
func (f *framing) header(line []byte, whole bool) {
	switch line[0] {
	case ' ', '\t': // goes on with the line before
		f.odd = f.odd || f.decisive
		return
	case 'c', 'C', 't', 'T':
	default: // nearly all lines
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

// body begins what comes after a head.
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

// chunk begins a chunk, or what comes after the last one.
func (f *framing) chunk(line []byte) {
	size, _, _ := bytes.Cut(line, []byte{';'})
	n, err := strconv.ParseUint(string(bytes.TrimRight(size, " \t")), 16, 64)
	switch {
	case err != nil || n > math.MaxInt64: // the request fails by itself: what can't be followed is the next one
		f.part = astray
		f.heads++
	case n == 0:
		f.part = inTrailer
	default:
		f.part, f.left = inChunk, n+uint64(len("\r\n"))
	}
}
