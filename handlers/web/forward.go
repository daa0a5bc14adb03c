package web

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/journal"
)

// headerForwarded marks a request that a node passed on to the owner of its journal. Its value is the command's id,
// a proof, by the key that the nodes share, that a node wrote it, the session that it came over and the client's address: so
// the id that the first node may have to name in an OUTCOME_UNKNOWN is the id of the record, an order is canceled with its
// session, and an API key that is for some addresses only is judged by the client's. Without a good proof the mark still
// counts, what it says does not.
const headerForwarded = "X-Perpetua-Forwarded"

// commandDeadline is within what an owner answers a command. A node that passes one on waits no longer either: by then
// the owner has answered, or it hangs.
const commandDeadline = 10 * time.Second

func newTransport() http.RoundTripper {
	return &http.Transport{
		DialContext:         (&net.Dialer{Timeout: 2 * time.Second}).DialContext,
		MaxIdleConnsPerHost: 64, IdleConnTimeout: 30 * time.Second,
	}
}

// hereOrThere has the request answered here. One whose journal another node owns is sent to that node, once: the
// handler has failed with an ElsewhereError before it wrote anything, and the body is kept.
func (s *server) hereOrThere(r *request, next echo.HandlerFunc) error {
	said := header(r.Request(), headerForwarded)
	if said != "" {
		m := provenMark(s.options.ForwardKey, said, r.Request())
		r.forwarded, r.session, r.address, r.counted = m.id, m.session, m.address, !m.id.IsZero()
	}
	err := next(r)
	if err == nil || r.Response().Committed {
		return err
	}
	var elsewhere *journal.ElsewhereError
	if !errors.As(err, &elsewhere) {
		return err
	}
	target, parseErr := url.Parse(elsewhere.URL)
	if said != "" || parseErr != nil || target.Host == "" {
		return err // answered NOT_ACCEPTED
	}
	return s.forward(r, target)
}

func (s *server) forward(c *request, target *url.URL) error {
	id, key := c.command, s.options.ForwardKey
	if id.IsZero() {
		id = NewID()
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), s.options.Patience)
	defer cancel()
	in := c.Request().WithContext(ctx)
	if c.body != nil { // a copy, since the transport may go on reading after it has answered
		in.Body = io.NopCloser(bytes.NewReader(bytes.Clone(c.body)))
	}
	// A connection is got before the first byte goes out, so without one nothing was written.
	connected := false
	in = in.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected = true }}))
	var failed error
	proxy := &httputil.ReverseProxy{
		Transport: s.options.Transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: target.Scheme, Host: target.Host})
			r.SetXForwarded()
			r.Out.Host = r.In.Host
			r.Out.Header.Set(HeaderRequestID, c.id)
			r.Out.Header.Set(headerForwarded, mark{id, sessionOf(c), Address(c)}.sign(key, r.In))
			sendOnce(r.Out.Header)
		},
		ModifyResponse: func(r *http.Response) error {
			for name := range c.Response().Header() { // set here already, by this node
				if name != echo.HeaderVary {
					r.Header.Del(name)
				}
			}
			return nil
		},
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) { failed = err },
	}
	proxy.ServeHTTP(c.Response(), in)
	if failed == nil {
		return nil
	}
	var op *net.OpError
	if errors.As(failed, &op) && op.Op == "dial" && !connected {
		return notAcceptedProblem(time.Second).Because(failed)
	}
	return OutcomeUnknown(id).Because(failed)
}

// sendOnce keeps net/http from sending a request again by itself. It does so when a connection that has served others
// breaks in the middle of a request that has no body and one of these headers. But the owner may have decided the
// command by then: a second try that nobody takes, or that is answered NOT_ACCEPTED by an owner that has just come back,
// would tell the client that nothing happened. net/http looks for the canonical names only; to the owner, case means nothing.
func sendOnce(h http.Header) {
	for _, name := range [...]string{HeaderIdempotencyKey, "X-Idempotency-Key"} {
		if values, ok := h[name]; ok {
			delete(h, name)
			h[strings.ToLower(name)] = values
		}
	}
}

// Address returns the address that a request comes from: the client's, also where another node passed it on.
func Address(c echo.Context) string {
	if address := notesOf(c).address; address != "" {
		return address
	}
	return c.RealIP()
}

// mark is what a node says of a request that it passes on.
type mark struct {
	id      scalar.ID // of the command
	session scalar.ID // that it came over, zero for none
	address string    // the client's
}

func (m mark) sign(key []byte, r *http.Request) string {
	return m.id.String() + "." + m.proof(key, r) + "." + m.session.String() + "." + m.address
}

func (m mark) proof(key []byte, r *http.Request) string {
	mac := hmac.New(sha256.New, key)
	mac.Write(m.id[:])
	mac.Write(m.session[:])
	mac.Write([]byte(m.address + " " + r.Method + " " + r.URL.RequestURI()))
	return hex.EncodeToString(mac.Sum(nil))
}

// provenMark returns what a mark says, nothing unless it is proven.
func provenMark(key []byte, text string, r *http.Request) (m mark) {
	parts := strings.SplitN(text, ".", 4) // an address has dots itself
	if len(parts) != 4 || len(key) == 0 {
		return mark{}
	}
	id, err := scalar.ParseID(parts[0])
	session, other := scalar.ParseID(parts[2])
	m = mark{id, session, parts[3]}
	if err != nil || other != nil || !hmac.Equal([]byte(parts[1]), []byte(m.proof(key, r))) {
		return mark{}
	}
	return m
}
