package web

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Call is a request that came in another way than over HTTP, and is answered as if it had come over it: by the same
// operation, with the same checks, limits, problems and metrics, and by the same owner of the journal.
type Call struct {
	Method string
	Route  string     // with parameters as :name
	Params []string   // what they are, in their order; they need no escaping
	Query  url.Values // nil for none
	Body   []byte     // JSON; nil for none
	Token  string     // the bearer's, "" for nobody
	Key    string     // the Idempotency-Key
	Keyed  bool       // there is one
	// Address is the client's.
	Address string
	Min     string // X-Min-Log-Position, "" for none; operations do not wait
	// Session is at whose end the orders are canceled that the call places, zero for none. Only operations look at it.
	Session scalar.ID
}

// Reply is the answer to a call.
type Reply struct {
	Status   int
	Position string // X-Log-Position, "" where there is none
	Body     []byte
}

// Caller answers calls; *Server does.
type Caller interface {
	Do(ctx context.Context, c *Call) Reply
}

// Over has a call answered by a handler, as a request over HTTP. A handler that was cut off in the middle of its answer,
// which was another node's then, leaves the outcome unknown.
func (c *Call) Over(ctx context.Context, h http.Handler) (r Reply) {
	w := newRecorded()
	defer func() {
		if p := recover(); p != nil {
			if !aborts(p) {
				panic(p)
			}
			r = c.aborted()
		}
	}()
	h.ServeHTTP(w, c.request(ctx))
	return w.reply()
}

// aborted is the answer in place of one that broke off.
func (c *Call) aborted() Reply { return c.Refused(OutcomeUnknown(scalar.ID{})) }

// Refused is the answer to a call that nobody is asked to answer.
func (c *Call) Refused(with *Problem) Reply {
	p := *with
	p.Instance, p.RequestID = c.Path(), NewID().String()
	return Reply{Status: p.Status, Body: p.text()}
}

// Path returns the path that the call is for, escaped.
func (c *Call) Path() string {
	var path strings.Builder
	params := c.Params
	for i, part := range strings.Split(c.Route, "/") {
		if i > 0 {
			path.WriteByte('/')
		}
		if strings.HasPrefix(part, ":") {
			part, params = url.PathEscape(params[0]), params[1:]
		}
		path.WriteString(part)
	}
	return path.String()
}

// request returns the call as a request over HTTP.
func (c *Call) request(ctx context.Context) *http.Request {
	target := &url.URL{Path: c.Path(), RawQuery: c.Query.Encode()}
	if path, err := url.PathUnescape(target.Path); err == nil && path != target.Path {
		target.Path, target.RawPath = path, target.Path
	}
	header := make(http.Header, 4)
	if c.Token != "" {
		header["Authorization"] = []string{"Bearer " + c.Token}
	}
	if c.Min != "" {
		header[HeaderMinLogPosition] = []string{c.Min}
	}
	if c.Keyed {
		header[HeaderIdempotencyKey] = []string{c.Key}
	}
	r := &http.Request{Method: c.Method, URL: target, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header, Body: http.NoBody,
		Host: "socket", RemoteAddr: net.JoinHostPort(c.Address, "0"), RequestURI: target.RequestURI()}
	if c.Body != nil {
		header["Content-Type"] = []string{jsonType}
		r.Body, r.ContentLength = readCloser{bytes.NewReader(c.Body)}, int64(len(c.Body))
	}
	// A proxy that fails in the midst of an answer panics only where it takes a server to be there, and says nothing otherwise.
	return r.WithContext(context.WithValue(ctx, http.ServerContextKey, &insideServer))
}

var insideServer http.Server

type readCloser struct{ *bytes.Reader }

// Close implements io.Closer.
func (readCloser) Close() error { return nil }

// recorded is where the answer to a request over HTTP is written that came as a call.
type recorded struct {
	header http.Header
	status int
	wrote  bool
	body   bytes.Buffer
}

func newRecorded() *recorded {
	return &recorded{header: make(http.Header, 8), status: http.StatusOK}
}

func (w *recorded) reply() Reply {
	return Reply{w.status, w.header.Get(HeaderLogPosition), w.body.Bytes()}
}

// Header implements http.ResponseWriter.
func (w *recorded) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *recorded) WriteHeader(status int) {
	if !w.wrote && status >= http.StatusOK {
		w.status, w.wrote = status, true
	}
}

// Write implements http.ResponseWriter.
func (w *recorded) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(b)
}

// Flush implements http.Flusher: a proxy flushes what it passes on.
func (*recorded) Flush() {}
