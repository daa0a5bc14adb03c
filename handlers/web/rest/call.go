package rest

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
)

// Call is a request made inside the process, for example by a WebSocket session. It is answered like an HTTP request:
// by the same operation, with the same checks, limits, problems and metrics.
type Call struct {
	Method string
	Route  string     // parameters are written :name
	Params []string   // values of the parameters, in order and unescaped
	Query  url.Values // nil: none
	Body   []byte     // JSON; nil: none
	Token  string     // the bearer token; "": anonymous
	Key    string     // the Idempotency-Key, if Keyed
	Keyed  bool       // the call has an Idempotency-Key
	// Address is the client's address.
	Address string
	Min     string // X-Min-Log-Position or ""; operations do not wait for it
	// Session is the session with which the orders of this call are canceled, or zero. Only operations use it.
	Session scalar.ID
}

// Reply is the response to a call.
type Reply struct {
	Status   int
	Position string // X-Log-Position or ""
	Body     []byte
}

// Caller executes calls. *Server implements it.
type Caller interface {
	Do(ctx context.Context, c *Call) Reply
}

// Over executes the call on an HTTP handler.
func (c *Call) Over(ctx context.Context, h http.Handler) Reply {
	w := &recorded{header: make(http.Header, 8), status: http.StatusOK}
	h.ServeHTTP(w, c.request(ctx))
	return Reply{w.status, w.header.Get(operation.HeaderLogPosition), w.body.Bytes()}
}

// Refused returns the reply to a call that is refused without being executed.
func (c *Call) Refused(with *problem.Problem) Reply {
	p := *with
	p.Instance, p.RequestID = c.Path(), operation.NewID().String()
	return Reply{Status: p.Status, Body: p.JSON()}
}

// Path returns the escaped path of the call.
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

// request returns the call as an HTTP request.
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
		header[operation.HeaderMinLogPosition] = []string{c.Min}
	}
	if c.Keyed {
		header[operation.HeaderIdempotencyKey] = []string{c.Key}
	}
	r := &http.Request{Method: c.Method, URL: target, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header, Body: http.NoBody,
		Host: "socket", RemoteAddr: net.JoinHostPort(c.Address, "0"), RequestURI: target.RequestURI()}
	if c.Body != nil {
		header["Content-Type"] = []string{jsonType}
		r.Body, r.ContentLength = readCloser{bytes.NewReader(c.Body)}, int64(len(c.Body))
	}
	return r.WithContext(ctx)
}

type readCloser struct{ *bytes.Reader }

// Close implements io.Closer.
func (readCloser) Close() error { return nil }

// recorded is the ResponseWriter of a call that is executed as an HTTP request.
type recorded struct {
	header http.Header
	status int
	wrote  bool
	body   bytes.Buffer
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
