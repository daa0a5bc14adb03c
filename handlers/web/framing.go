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

// Listen makes a listener whose TCP connections do so. Their server needs Remember, too.
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

// Remember is a server's ConnContext: its requests know their connection.
func Remember(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
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
	framing   framing
	ambiguous atomic.Bool // set by who reads, which may be the server while a handler runs
}

// Read reads.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.TCPConn.Read(b)
	if c.framing.follow(b[:n]); c.framing.part == astray {
		c.ambiguous.Store(true)
	}
	return n, err
}

// ambiguous reports whether a head with both headers has come in on the request's connection. Only for a chunked request
// does it matter. The head may also be that of a request which was sent behind this one already: it is refused with this
// one, and nothing that follows is served.
func ambiguous(r *http.Request) bool {
	if len(r.TransferEncoding) == 0 {
		return false
	}
	c, ok := r.Context().Value(connKey{}).(*conn)
	return ok && c.ambiguous.Load()
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
	part part
	left uint64 // of a body or chunk

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
		f.extend(line)
		if b = rest; ended {
			f.end()
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

// end takes in a line that has ended.
func (f *framing) end() {
	line := f.line[:f.n]
	if f.size == f.n { // else what ends it was not kept
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
		f.header(line)
	case f.begun:
		f.body()
	case len(line) > 0: // else a line break too many behind the last body
		f.begun, f.length = true, -1
		version := bytes.TrimSuffix(f.version[:], []byte{'\r'})
		f.old = string(version[len(version)-len("HTTP/1.0"):]) <= "HTTP/1.0"
	}
}

// header takes in a line of a head.
func (f *framing) header(line []byte) {
	if line[0] == ' ' || line[0] == '\t' { // goes on with the line before
		f.odd = f.odd || f.decisive
		return
	}
	name, value, _ := bytes.Cut(line, []byte{':'})
	value = bytes.Trim(value, " \t")
	f.decisive = true
	switch {
	case bytes.EqualFold(name, []byte("content-length")):
		n, err := strconv.ParseUint(string(value), 10, 63)
		f.odd = f.odd || err != nil || f.size > f.n || f.length >= 0 && f.length != int64(n)
		f.length = int64(n)
	case !f.old && bytes.EqualFold(name, []byte("transfer-encoding")):
		f.odd = f.odd || f.chunked || f.size > f.n || !bytes.EqualFold(value, []byte("chunked"))
		f.chunked = true
	default:
		f.decisive = false
	}
}

// body begins what comes after a head.
func (f *framing) body() {
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
	case err != nil || n > math.MaxInt64:
		f.part = astray
	case n == 0:
		f.part = inTrailer
	default:
		f.part, f.left = inChunk, n+uint64(len("\r\n"))
	}
}
