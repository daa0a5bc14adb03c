package live

import (
	"context"
	"encoding/base64"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/gorilla/websocket"
	"github.com/labstack/echo/v4"
	"github.com/olahol/melody"

	"github.com/perpetua-exchange/perpetua/domain/validation"
	"github.com/perpetua-exchange/perpetua/handlers/web/access"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
)

// Path is the path of the WebSocket.
const Path = "/v1/ws"

// Register adds the route.
func (h *Hub) Register(e *echo.Echo) { e.GET(Path, h.Serve) }

// Serve upgrades a request to a WebSocket connection and serves it until it ends. A bearer token in the Authorization
// header authenticates the connection; an invalid one is an error.
func (h *Hub) Serve(c echo.Context) error {
	r := c.Request()
	if err := handshake(c); err != nil {
		return err
	}
	s := &session{
		hub: h, subscriptions: make(map[string]*subscription), address: rest.Address(c), seen: h.changesSeen(),
		reader: reader{bucket: access.NewBucket(h.limits.RequestsPerSecond, float64(h.limits.RequestBurst), time.Now())},
	}
	headers := r.Header.Values(echo.HeaderAuthorization)
	leave, err := h.admit(r.Context(), s.address, len(headers) == 0)
	if err != nil {
		return err
	}
	defer leave()
	s.ctx, s.cancel = context.WithCancel(h.ctx)
	defer s.cancel()
	if len(headers) > 0 {
		scheme, token, _ := strings.Cut(headers[0], " ")
		if len(headers) > 1 || !strings.EqualFold(scheme, "Bearer") || token == "" {
			return problem.Unauthorized("The Authorization header does not hold a bearer token.")
		}
		p, err := h.tokens.Verify(token, s.address)
		if err != nil {
			return access.Refused(err)
		}
		s.auth.who, s.auth.token = p, token
	}
	if h.compress {
		s.extension = negotiate(r.Header)
	}
	w := hijacker{c.Response(), func(nc net.Conn) net.Conn {
		s.conn = newConn(h.wrap(rest.Hijacked(nc)), s)
		return s.conn
	}}
	if err := h.melody.HandleRequestWithKeys(w, r, map[string]any{sessionKey: s}); err != nil {
		h.logger.DebugContext(r.Context(), "a WebSocket handshake failed", "error", err) // an error response was sent
	}
	return nil
}

// handshake validates the upgrade request before the WebSocket library does, because the library's errors are not
// problems.
func handshake(c echo.Context) error {
	r := c.Request()
	if r.Method != http.MethodGet || !websocket.IsWebSocketUpgrade(r) {
		return upgradeRequired(c, "This address speaks WebSocket only.")
	}
	if !slices.ContainsFunc(r.Header.Values("Sec-WebSocket-Version"), speaks13) {
		return upgradeRequired(c, "This address speaks version 13 of WebSocket only.")
	}
	if r.ContentLength != 0 { // the library would close the connection without a response
		return problem.New(http.StatusBadRequest, "BODY_NOT_ALLOWED", "A handshake must not have a body.")
	}
	if err := rest.NoQuery(c); err != nil { // it may contain a token, and the client would assume that it is authenticated
		return err
	}
	const name = "Sec-WebSocket-Key"
	if key, err := base64.StdEncoding.DecodeString(r.Header.Get(name)); err != nil || len(key) != 16 {
		return problem.Invalid(validation.FieldError{In: validation.InHeader, Path: validation.At(name), Code: validation.InvalidValue, Message: "the header must hold 16 bytes in base64"})
	}
	return nil
}

// speaks13 reports whether a list of versions contains 13.
func speaks13(list string) bool {
	return slices.ContainsFunc(strings.Split(list, ","), func(version string) bool { return strings.TrimSpace(version) == "13" })
}

func upgradeRequired(c echo.Context, detail string) error {
	h := c.Response().Header()
	h.Set("Upgrade", "websocket")
	h.Set("Sec-WebSocket-Version", "13")
	return problem.New(http.StatusUpgradeRequired, "UPGRADE_REQUIRED", detail)
}

// readyWait is how long a handshake waits for a node that has just started.
const readyWait = 5 * time.Second

// admit accepts a connection from an address, which may be anonymous: without a token. The caller MUST call leave when the
// connection has ended. admit waits until the fold has reached the log's end, because the records that a starting node replays are
// not live.
func (h *Hub) admit(ctx context.Context, address string, anonymous bool) (leave func(), err error) {
	timeout := time.NewTimer(readyWait)
	defer timeout.Stop()
	select {
	case <-h.ready:
	case <-timeout.C:
		return nil, problem.Unavailable("NOT_READY", "The server has not caught up with the log yet.", time.Second)
	case <-h.ctx.Done():
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	network, limited := h.networks.Of(address)
	limited = limited && anonymous
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.registry.closing {
		return nil, problem.Unavailable("STOPPING", "The server is stopping.", time.Second)
	}
	if h.registry.admitted >= h.limits.Connections {
		return nil, problem.Unavailable(tooMany, "The server has as many connections as it takes.", time.Second)
	}
	if limited && h.registry.anonymous[network] >= h.limits.NetworkConnections {
		return nil, problem.New(http.StatusTooManyRequests, tooMany, "The client's network has as many connections without a token as it may have. "+
			"A connection whose handshake has a token does not count.").RetryAfter(time.Second)
	}
	h.registry.admitted++
	if limited {
		h.registry.anonymous[network]++
	}
	h.serving.Add(1)
	return func() { h.dismiss(network, limited) }, nil
}

const tooMany = "TOO_MANY_CONNECTIONS"

func (h *Hub) dismiss(network netip.Prefix, limited bool) {
	h.mu.Lock()
	h.registry.admitted--
	if limited {
		if h.registry.anonymous[network]--; h.registry.anonymous[network] == 0 {
			delete(h.registry.anonymous, network)
		}
	}
	h.mu.Unlock()
	h.serving.Done()
}

// connected is called after the handshake, before the first read or write.
func (h *Hub) connected(socket *melody.Session) {
	s := sessionOf(socket)
	s.socket = socket
	s.conn.framed.Store(true)
	h.metrics.sessions.Inc()
	h.mu.Lock()
	h.registry.sessions[s] = struct{}{}
	closing, cutting, changed := h.registry.closing, h.registry.cutting, h.registry.changes != s.seen
	h.mu.Unlock()
	if closing {
		s.close(nil, melody.CloseGoingAway, "the server is stopping")
	}
	if cutting {
		s.conn.cut()
	}
	s.mu.Lock()
	if s.auth.who != nil {
		s.watch()
	}
	s.mu.Unlock()
	if changed { // since the token was verified and before observe could find the session
		s.verifyAgain()
	}
}

func (h *Hub) disconnected(socket *melody.Session) {
	s := sessionOf(socket)
	h.mu.Lock()
	delete(h.registry.sessions, s)
	for _, sub := range s.subscriptions {
		h.drop(sub)
	}
	h.mu.Unlock()
	h.disarm(s)
	s.gone()
	s.conn.finish()
	h.metrics.sessions.Dec()
}
