package web

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// headerForwarded marks a request that a node forwarded to the owner of a journal. The value is a mark, with an
// HMAC by the key that the nodes share. The mark carries the command's ID, so that an OUTCOME_UNKNOWN of the
// forwarding node names the record's command; the session, so that an order is canceled with its session; the
// position of the forwarding node's fold of the identity journal, so that the owner accepts a key that the forwarding
// node accepts; and the client's address, so that an API key's networks are compared with it. If the HMAC is invalid,
// the request still counts as forwarded, but the content of the mark is ignored.
const headerForwarded = "X-Perpetua-Forwarded"

// headerNotOwner is set by a node in the response to a forwarded request if it does not own the journal. The request
// has changed nothing, and the forwarding node looks up the owner again.
const headerNotOwner = "X-Perpetua-Not-Owner"

// maxOwners limits the nodes to which a request is forwarded. A further node is tried only if the one before it is
// not the owner.
const maxOwners = 3

// supersededGrace is how long a node waits for an owner's response after the log has named another owner. An owner
// that hands over its journal still responds to decided commands; an owner that was stopped never does.
const supersededGrace = 500 * time.Millisecond

// commandDeadline is the time within which an owner answers a command. A forwarding node waits no longer, because an
// owner that has not answered within this time hangs.
const commandDeadline = 10 * time.Second

func newTransport() http.RoundTripper {
	return &http.Transport{
		DialContext:         (&net.Dialer{Timeout: 2 * time.Second}).DialContext,
		MaxIdleConnsPerHost: 64, IdleConnTimeout: 30 * time.Second,
	}
}

// hereOrThere runs the handler and, if another node owns the journal, forwards the request to it, unless it was
// already forwarded. Forwarding is possible because the handler fails with an ElsewhereError before it writes
// anything, and because the body is kept.
func (s *Server) hereOrThere(r *request, next echo.HandlerFunc) error {
	said := header(r.Request(), headerForwarded)
	if said != "" {
		m := provenMark(s.options.ForwardKey, said, r.Request())
		r.forwarded, r.session, r.address, r.rateCharged = m.id, m.session, m.address, m.proven()
		// Catch up before the handler authorizes the request again. A new key may be known to the forwarding node but
		// not to this one, and the request would be refused after the forwarding node had accepted it.
		if err := s.catchUp(r, m); err != nil {
			return err
		}
		r.SetRequest(r.Request().WithContext(submit.OnlyHere(r.Request().Context())))
	}
	err := next(r)
	if err == nil || r.Response().Committed {
		return err
	}
	if said != "" {
		if r.rateCharged && notOwner(err) {
			r.Response().Header().Set(headerNotOwner, "true")
		}
		return err // an ElsewhereError is answered with NOT_ACCEPTED
	}
	owner := ownerNamed(err)
	if owner == nil {
		return err
	}
	return s.forward(RequestOf(r), r.Request(), r.Response(), owner)
}

// notOwner reports whether a request failed because this node does not own its journal.
func notOwner(err error) bool {
	var (
		elsewhere *submit.ElsewhereError
		busy      *submit.NotAcceptedError
	)
	return errors.As(err, &elsewhere) || errors.As(err, &busy) && busy.Unowned
}

// ownerNamed returns the error's information about the node that must answer the request, or nil if it has none.
func ownerNamed(err error) *submit.ElsewhereError {
	var elsewhere *submit.ElsewhereError
	if !errors.As(err, &elsewhere) || nodeURL(elsewhere.URL) == nil {
		return nil
	}
	return elsewhere
}

// nodeURL parses the URL of a node. It returns nil if the URL is invalid or has no host.
func nodeURL(text string) *url.URL {
	target, err := url.Parse(text)
	if err != nil || target.Host == "" {
		return nil
	}
	return target
}

// catchUp waits until this node's fold of the identity journal has reached the position at which the forwarding node
// authorized the request. It waits as long as a read, up to waitLimit. This node authorizes the request again, so a
// key that is already revoked here is refused. catchUp ignores a mark without a valid HMAC; otherwise any client
// could delay requests.
func (s *Server) catchUp(r *request, m mark) error {
	if !m.proven() || s.options.Identity == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(r.Request().Context(), waitLimit)
	defer cancel()
	err := s.options.Identity.Wait(ctx, m.identity)
	if gone := r.Request().Context().Err(); err != nil && gone != nil {
		return gone
	}
	if err != nil { // correct, because nothing of the request was read or submitted yet
		return notAcceptedProblem(time.Second).Because(err)
	}
	return nil
}

// letInAt returns the sequence of this node's identity fold, or -1 if the request was not authenticated. It is read
// after the authorization; an earlier reading could precede the record on which the authorization depends.
func (s *Server) letInAt(a Request) int64 {
	if a.principal == nil || s.options.Identity == nil {
		return -1
	}
	return s.options.Identity.Position().Sequence
}

// errNotOwner means that the node did not take a forwarded request, which has changed nothing there.
var errNotOwner = errors.New("the node does not own the journal")

// forward proxies a request to the owner of the journal. If that node is not the owner or cannot be reached, it has
// not taken the request, and forward tries the next owner that it finds. Options.Patience limits the total time.
func (s *Server) forward(a Request, in *http.Request, out http.ResponseWriter, owner *submit.ElsewhereError) error {
	id := a.command
	if id.IsZero() {
		id = NewID()
	}
	says := mark{id: id, session: a.session, identity: s.letInAt(a), address: a.client()}
	ctx, cancel := context.WithTimeout(in.Context(), s.options.Patience)
	defer cancel()
	for tries := 1; ; tries++ {
		err := s.forwardTo(ctx, a, in, out, owner, says)
		if !errors.Is(err, errNotOwner) {
			return err
		}
		repeatable := a.body != nil || in.ContentLength == 0 // otherwise the first node may have consumed the body
		if tries == maxOwners || owner.Next == nil || !repeatable {
			return notAcceptedProblem(time.Second).Because(err)
		}
		next := owner.Next(ctx)
		if next == nil || nodeURL(next.URL) == nil {
			return notAcceptedProblem(time.Second).Because(err)
		}
		owner = next
	}
}

// forwardTo proxies a request to one node. It returns errNotOwner if the request has changed nothing there.
func (s *Server) forwardTo(ctx context.Context, a Request, in *http.Request, out http.ResponseWriter, owner *submit.ElsewhereError, says mark) error {
	key, target := s.options.ForwardKey, nodeURL(owner.URL)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if owner.Superseded != nil {
		go cancelAfter(ctx, cancel, owner.Superseded)
	}
	// The transport obtains a connection before it writes the first byte. Without one, nothing was sent.
	connected := false
	in = in.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected = true }}))
	if a.body != nil { // a copy, because the transport may read after it has returned
		in.Body = io.NopCloser(bytes.NewReader(bytes.Clone(a.body)))
	}
	var failed error
	proxy := &httputil.ReverseProxy{
		Transport: s.options.Transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: target.Scheme, Host: target.Host})
			r.SetXForwarded()
			r.Out.Host = r.In.Host
			r.Out.Header.Set(HeaderRequestID, a.id)
			r.Out.Header.Set(headerForwarded, says.sign(key, r.In))
			sendOnce(r.Out.Header)
		},
		ModifyResponse: func(r *http.Response) error {
			if r.StatusCode == http.StatusServiceUnavailable && r.Header.Get(headerNotOwner) != "" {
				return errNotOwner
			}
			a.answered.wroteElsewhere(r.Header)
			for name := range out.Header() { // this node has set them already
				if name != echo.HeaderVary {
					r.Header.Del(name)
				}
			}
			return nil
		},
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) { failed = err },
	}
	proxy.ServeHTTP(out, in)
	var op *net.OpError
	switch {
	case failed == nil:
		return nil
	case errors.Is(failed, errNotOwner):
		return fmt.Errorf("%s: %w", owner.URL, failed)
	case errors.As(failed, &op) && op.Op == "dial" && !connected:
		return fmt.Errorf("%w: %w", errNotOwner, failed)
	}
	return OutcomeUnknown(says.id).Because(failed)
}

// cancelAfter cancels a request to an owner supersededGrace after the log has named another owner.
func cancelAfter(ctx context.Context, cancel context.CancelFunc, superseded <-chan struct{}) {
	select {
	case <-ctx.Done():
		return
	case <-superseded:
	}
	grace := time.NewTimer(supersededGrace)
	defer grace.Stop()
	select {
	case <-ctx.Done():
	case <-grace.C:
		cancel()
	}
}

// sendOnce prevents net/http from sending a request twice. net/http repeats a request without a body that has one of
// these headers if a reused connection breaks. By then the owner may have decided the command. If the repeated
// request reached no owner, or was answered NOT_ACCEPTED by an owner that had just started, the client would be
// informed wrongly that nothing happened. net/http recognizes only canonical header names; the owner accepts any
// case.
func sendOnce(h http.Header) {
	for _, name := range [...]string{HeaderIdempotencyKey, "X-Idempotency-Key"} {
		if values, ok := h[name]; ok {
			delete(h, name)
			h[strings.ToLower(name)] = values
		}
	}
}

// Address returns the client's address, even if another node forwarded the request.
func Address(c echo.Context) string { return RequestOf(c).client() }

// mark is the information that a forwarding node adds to a request.
type mark struct {
	id       scalar.ID // of the command; zero: the mark has no valid HMAC
	session  scalar.ID // of the WebSocket session, or zero
	identity int64     // sequence of the identity fold that authorized the request, or -1
	address  string    // the client's address
}

func (m mark) proven() bool { return !m.id.IsZero() }

func (m mark) sign(key []byte, r *http.Request) string {
	return strings.Join([]string{m.id.String(), m.proof(key, r), m.session.String(), strconv.FormatInt(m.identity, 10), m.address}, ".")
}

func (m mark) proof(key []byte, r *http.Request) string {
	mac := hmac.New(sha256.New, key)
	mac.Write(m.id[:])
	mac.Write(m.session[:])
	mac.Write([]byte(strconv.FormatInt(m.identity, 10) + " " + m.address + " " + r.Method + " " + r.URL.RequestURI()))
	return hex.EncodeToString(mac.Sum(nil))
}

// provenMark parses a mark and verifies its HMAC. It returns the zero mark if either fails.
func provenMark(key []byte, text string, r *http.Request) (m mark) {
	parts := strings.SplitN(text, ".", 5) // addresses contain dots
	if len(parts) != 5 || len(key) == 0 {
		return mark{}
	}
	id, badID := scalar.ParseID(parts[0])
	session, badSession := scalar.ParseID(parts[2])
	identity, badIdentity := strconv.ParseInt(parts[3], 10, 64)
	if errors.Join(badID, badSession, badIdentity) != nil {
		return mark{}
	}
	m = mark{id, session, identity, parts[4]}
	if !hmac.Equal([]byte(parts[1]), []byte(m.proof(key, r))) {
		return mark{}
	}
	return m
}
