package web

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Call is a request that came in another way than over HTTP, and is answered as if it had come over it: by the same
// handler, with the same checks, limits, problems and metrics, and by the same owner of the journal.
type Call struct {
	Method string
	// Path are its parts, which need no escaping.
	Path    []string
	Query   url.Values // nil for none
	Body    []byte     // JSON; nil for none
	Token   string     // the bearer's, "" for nobody
	Key     string     // the Idempotency-Key
	Keyed   bool       // there is one
	Address string     // the client's
	Min     string     // X-Min-Log-Position, "" for none
	Session scalar.ID  // at whose end its orders are canceled; zero for none
}

// Reply is the answer to a call.
type Reply struct {
	Status   int
	Position string // X-Log-Position, "" where there is none
	Body     []byte
}

// Do has a call answered. It returns when the handler has. A handler that was cut off in the middle of its answer, which
// was another node's then, leaves the outcome unknown.
func (c *Call) Do(ctx context.Context, h http.Handler) (r Reply) {
	w := &inside{header: make(http.Header, 8), status: http.StatusOK}
	defer func() {
		if p := recover(); p == http.ErrAbortHandler { //nolint:errorlint // net/http compares it so
			r = c.aborted()
		} else if p != nil {
			panic(p)
		}
	}()
	h.ServeHTTP(w, c.request(ctx))
	return Reply{w.status, w.header.Get(HeaderLogPosition), w.body.Bytes()}
}

// aborted is the answer in place of one that broke off.
func (c *Call) aborted() Reply {
	p := *OutcomeUnknown(scalar.ID{})
	p.Instance, p.RequestID = "/"+strings.Join(c.Path, "/"), NewID().String()
	body, err := json.Marshal(&p, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		panic("web: a problem has no JSON form: " + err.Error())
	}
	return Reply{Status: p.Status, Body: body}
}

func (c *Call) request(ctx context.Context) *http.Request {
	target := &url.URL{Path: "/" + strings.Join(c.Path, "/"), RawQuery: c.Query.Encode()}
	escaped := make([]string, len(c.Path))
	for i, part := range c.Path {
		escaped[i] = url.PathEscape(part)
	}
	if raw := "/" + strings.Join(escaped, "/"); raw != target.Path {
		target.RawPath = raw
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
	ctx = context.WithValue(ctx, http.ServerContextKey, &insideServer)
	if !c.Session.IsZero() {
		ctx = context.WithValue(ctx, sessionKey{}, c.Session)
	}
	return r.WithContext(ctx)
}

var insideServer http.Server

type sessionKey struct{}

// sessionOf returns the session that a request came over, zero for none.
func sessionOf(c echo.Context) scalar.ID {
	if n := notesOf(c); !n.session.IsZero() { // as the node said that passed it on
		return n.session
	}
	id, _ := c.Request().Context().Value(sessionKey{}).(scalar.ID)
	return id
}

type readCloser struct{ *bytes.Reader }

func (readCloser) Close() error { return nil }

// inside is where the answer to a call is written.
type inside struct {
	header http.Header
	status int
	wrote  bool
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (w *inside) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *inside) WriteHeader(status int) {
	if !w.wrote && status >= http.StatusOK {
		w.status, w.wrote = status, true
	}
}

// Write implements http.ResponseWriter.
func (w *inside) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(b)
}

// Flush implements http.Flusher: a proxy flushes what it passes on.
func (*inside) Flush() {}
