package web

import (
	"bytes"
	"context"
	"net"
	"net/http"
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

// conn watches what is read from a connection.
type conn struct {
	*net.TCPConn
	head      head
	ambiguous atomic.Bool // set by who reads, which may be the server while a handler runs
}

// Read reads.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.TCPConn.Read(b)
	if c.head.scan(b[:n]) {
		c.ambiguous.Store(true)
	}
	return n, err
}

// ambiguous reports whether a head with both headers has come in on the request's connection. Only for a chunked request
// does it matter; a body that holds such a head may make it true as well, and then a chunked request that follows on the
// connection is refused for nothing. None is let through.
func ambiguous(r *http.Request) bool {
	if len(r.TransferEncoding) == 0 {
		return false
	}
	c, ok := r.Context().Value(connKey{}).(*conn)
	return ok && c.ambiguous.Load()
}

// head looks for the two headers between one empty line and the next. What is read ends anywhere.
type head struct {
	line             [len("transfer-encoding:")]byte // how the line begins
	n                int
	length, encoding bool
}

// scan reports whether an empty line was met after both.
func (h *head) scan(b []byte) (both bool) {
	for len(b) > 0 {
		line, rest, ended := bytes.Cut(b, []byte{'\n'})
		h.n += copy(h.line[h.n:], line)
		if !ended {
			return both
		}
		begins := h.line[:h.n]
		switch {
		case len(bytes.TrimSuffix(begins, []byte{'\r'})) == 0:
			both = both || h.length && h.encoding
			h.length, h.encoding = false, false
		case hasPrefixFold(begins, "content-length:"):
			h.length = true
		case hasPrefixFold(begins, "transfer-encoding:"):
			h.encoding = true
		}
		h.n, b = 0, rest
	}
	return both
}

func hasPrefixFold(b []byte, prefix string) bool {
	return len(b) >= len(prefix) && bytes.EqualFold(b[:len(prefix)], []byte(prefix))
}
