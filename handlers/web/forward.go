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

// headerForwarded marks a request that a node passed on to the owner of its journal. Its value is the command's id,
// a proof, by the key that the nodes share, that a node wrote it, the session that it came over, how far that node's fold of
// the identity journal had come when it let the request in, and the client's address: so the id that the first node may have
// to name in an OUTCOME_UNKNOWN is the id of the record, an order is canceled with its session, a key that the first node
// knows is known to the owner too, and an API key that is for some addresses only is judged by the client's. Without a good
// proof the mark still counts, what it says does not.
const headerForwarded = "X-Perpetua-Forwarded"

// headerNotOwner is set by a node in its answer to a request that was passed on to it: it does not own the journal, so the
// request has changed nothing and the node that passed it on looks for the owner again.
const headerNotOwner = "X-Perpetua-Not-Owner"

// maxOwners is how many nodes a request is passed on to, each after the one before it has turned out not to be the owner.
const maxOwners = 3

// supersededGrace is how long the answer of an owner is waited for after the log has named another one: a node that hands its
// journal over answers what it has decided. One that was stopped never does.
const supersededGrace = 500 * time.Millisecond

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
func (s *Server) hereOrThere(r *request, next echo.HandlerFunc) error {
	said := header(r.Request(), headerForwarded)
	if said != "" {
		m := provenMark(s.options.ForwardKey, said, r.Request())
		r.forwarded, r.session, r.address, r.counted = m.id, m.session, m.address, m.proven()
		// Before the handler judges the request again. A key made a moment ago may be known to the node that passed the
		// request on and not here yet: judged now, it would be refused after its reads were answered there.
		if err := s.catchUp(r, m); err != nil {
			return err
		}
	}
	err := next(r)
	if err == nil || r.Response().Committed {
		return err
	}
	if said != "" {
		if r.counted && notOwner(err) {
			r.Response().Header().Set(headerNotOwner, "true")
		}
		return err // an ElsewhereError is answered NOT_ACCEPTED
	}
	owner := ownerNamed(err)
	if owner == nil {
		return err
	}
	return s.forward(AskOf(r), r.Request(), r.Response(), owner)
}

// notOwner reports whether a request failed because this node does not own its journal.
func notOwner(err error) bool {
	var (
		elsewhere *submit.ElsewhereError
		busy      *submit.NotAcceptedError
	)
	return errors.As(err, &elsewhere) || errors.As(err, &busy) && busy.Unowned
}

// ownerNamed returns an error's word on which node is to answer the request, nil where it names none.
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

// catchUp waits until this node's fold of the identity journal is as far as that of the node which let a request in, for
// as long as a read waits. The request is judged here all the same: a key that this node already knows to be revoked is
// refused. A mark without a good proof is waited for by nobody, or any client could hold requests up.
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
	if err != nil { // true: nothing was read of the request yet, still less submitted
		return notAcceptedProblem(time.Second).Because(err)
	}
	return nil
}

// letInAt returns the sequence of the identity journal that a request was let in by, -1 for one that nobody judged. It is
// read after the judgement, since before it the fold could be short of the very record that the judgement rests on.
func (s *Server) letInAt(a Ask) int64 {
	if a.principal == nil || s.options.Identity == nil {
		return -1
	}
	return s.options.Identity.Position().Sequence
}

// errNotOwner says that a request was not taken by the node that it was passed on to, and has changed nothing there.
var errNotOwner = errors.New("the node does not own the journal")

// forward proxies a request to the owner of its journal. If the node is not the owner or can't be reached, it has not taken the
// request, and forward sends it to the next owner that it finds within the request's timeout.
func (s *Server) forward(a Ask, in *http.Request, out http.ResponseWriter, owner *submit.ElsewhereError) error {
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
		repeatable := a.body != nil || in.ContentLength == 0 // else the first node may have read it
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
func (s *Server) forwardTo(ctx context.Context, a Ask, in *http.Request, out http.ResponseWriter, owner *submit.ElsewhereError, says mark) error {
	key, target := s.options.ForwardKey, nodeURL(owner.URL)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if owner.Superseded != nil {
		go cancelAfter(ctx, cancel, owner.Superseded)
	}
	// A connection is got before the first byte goes out, so without one nothing was written.
	connected := false
	in = in.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected = true }}))
	if a.body != nil { // a copy, since the transport may go on reading after it has answered
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
			for name := range out.Header() { // set here already, by this node
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

// cancelAfter cancels a request to an owner some time after the log has named another one.
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
func Address(c echo.Context) string { return AskOf(c).client() }

// mark is what a node says of a request that it passes on.
type mark struct {
	id       scalar.ID // of the command; zero: the mark is not proven
	session  scalar.ID // that it came over, zero for none
	identity int64     // the sequence of the identity journal that it was let in by, -1 if nobody judged it
	address  string    // the client's
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

// provenMark returns what a mark says, nothing unless it is proven.
func provenMark(key []byte, text string, r *http.Request) (m mark) {
	parts := strings.SplitN(text, ".", 5) // an address has dots itself
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
