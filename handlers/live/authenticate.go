package live

import (
	"errors"
	"net/http"
	"time"

	"github.com/olahol/melody"

	"github.com/perpetua-exchange/perpetua/handlers/web/access"
)

// authenticate authenticates the session with a token. A token of the same user extends the session, and its
// subscriptions continue; another user needs another connection. If the new token has fewer read rights, the private
// subscriptions end.
func (h *Hub) authenticate(s *session, r *request) {
	seen := h.changesSeen()
	p, err := h.tokens.Verify(r.token, s.address)
	if err != nil {
		h.refuseToken(s, r, err)
		return
	}
	h.mu.Lock()
	changed := h.registry.changes != seen
	before, ok := s.become(p, r.token)
	if ok && before != nil && readsLess(p, before) {
		h.expelPrivate(s, Forbidden, "the connection was authenticated with a token that may read less")
	}
	h.mu.Unlock()
	if !ok {
		h.reject(s, r.id, AuthenticationFailed, "the connection is authenticated for another user")
		return
	}
	if changed {
		s.verifyAgain()
	}
	if s.principal() == nil {
		h.reject(s, r.id, AuthenticationFailed, "the token is not valid")
		return
	}
	if r.cancels {
		if refused := h.arm(s, r); refused != nil {
			h.reject(s, r.id, refused.code, refused.message)
			return
		}
	}
	s.send(encode(ack{Op: "authenticated", ID: r.id}))
}

// refuseToken answers an authenticate request after Verify returned err. It counts the request towards the limit of the client's
// network, as REST does. While the node starts, the token may be valid.
func (h *Hub) refuseToken(s *session, r *request, err error) {
	h.logger.Debug("a token was refused", "remote", s.socket.RemoteAddr(), "error", err)
	_, exhausted := h.networks.Take(nil, s.address)
	refused := access.Refused(err)
	switch {
	case refused.Status == http.StatusServiceUnavailable:
		h.reject(s, r.id, UpstreamError, refused.Detail)
	case exhausted != nil:
		h.reject(s, r.id, RateLimited, "the token is not valid, and the rate limit of the client's network is exhausted")
	case errors.Is(err, access.ErrKeysRefused):
		h.reject(s, r.id, AuthenticationFailed, "this node takes no API keys: log in at the venue and send the token")
	case access.IsEarly(err):
		h.reject(s, r.id, AuthenticationFailed, access.Early)
	default:
		h.reject(s, r.id, AuthenticationFailed, "the token is not valid")
	}
}

// become sets the session's principal, unless the session belongs to another user, and returns the previous
// principal. The caller holds the hub's lock, so each change of the identity journal either finds the new principal
// here or was counted before.
func (s *session) become(p *access.Principal, token string) (before *access.Principal, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if before = s.auth.who; before != nil && before.Username != p.Username {
		return before, false
	}
	s.auth.who, s.auth.token = p, token
	s.watch()
	return before, true
}

// readsLess reports whether there is anything that a principal may not read and the one before could.
func readsLess(p, before *access.Principal) bool {
	switch {
	case !before.Has(access.ScopeRead):
		return false
	case !p.Has(access.ScopeRead):
		return true
	case p.Customer != "":
		return p.Broker != before.Broker || p.Customer != before.Customer
	}
	return !p.SeesAll() && (before.SeesAll() || p.Broker != before.Broker)
}

// watch schedules the next verification of the session's token: at its expiry, and periodically before that. The
// caller holds the session's lock.
func (s *session) watch() {
	if s.ending.over {
		return
	}
	if s.auth.check != nil {
		s.auth.check.Stop()
	}
	s.auth.check = time.AfterFunc(s.hub.verifyAfter(s.auth.who), s.verifyAgain)
}

func (s *session) verifyAgain() {
	s.mu.Lock()
	token, gone := s.auth.token, s.ending.ended || s.auth.who == nil
	s.mu.Unlock()
	if gone {
		return
	}
	h := s.hub
	seen := h.changesSeen()
	p, err := h.tokens.Verify(token, s.address)
	// Hold the hub's lock until the end, so that the subscriptions that are ended were made with this token and not
	// with a newer one.
	h.mu.Lock()
	defer h.mu.Unlock()
	s.mu.Lock()
	if s.auth.token != token { // authenticated again in the meantime, which scheduled another check
		s.mu.Unlock()
		return
	}
	if h.registry.changes != seen && err == nil { // the identity journal changed during the verification, so verify again
		s.mu.Unlock()
		h.verifySoon(s)
		return
	}
	s.mu.Unlock()
	if err != nil || p.Expired(time.Now()) {
		p = nil
	}
	h.narrow(s, p)
}

// changesSeen returns the number of changes of the identity journal that the hub has received.
func (h *Hub) changesSeen() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.registry.changes
}

// observe applies a change of the identity journal to all sessions, so that their rights end with the record, like
// those of requests. It runs under the identity fold's lock. While the first token of a session is being verified,
// the session has no principal; it notices the change by the counter and verifies again.
func (h *Hub) observe(change access.Change) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.registry.changes++
	for s := range h.registry.sessions {
		who := s.principal()
		if who == nil {
			continue
		}
		left := change.Leaves(who)
		if left != who {
			h.narrow(s, left)
		}
		if left != nil && change.MayReturn(left) {
			h.verifySoon(s)
		}
		if change.Username == who.Username && !change.Account.Active && who.APIKey.IsZero() { // narrow closes those with API keys
			h.closeRevoked(s, "the user is not active any more; the connection is closed")
		}
	}
}

// verifySoon verifies the token of a session again. It does so in another goroutine, because the caller may hold the lock of the
// identity fold, and in one for all sessions, because a user may have thousands. The caller holds the hub's lock.
func (h *Hub) verifySoon(s *session) {
	h.registry.unverified[s] = struct{}{}
	if !h.registry.verifying {
		h.registry.verifying = true
		go h.verifyUnverified()
	}
}

func (h *Hub) verifyUnverified() {
	for {
		h.mu.Lock()
		sessions := h.registry.unverified
		h.registry.unverified, h.registry.verifying = make(map[*session]struct{}), len(sessions) > 0
		h.mu.Unlock()
		if len(sessions) == 0 {
			return
		}
		for s := range sessions {
			s.verifyAgain()
		}
	}
}

// narrow sets the rights that remain to the session, nil for none. The caller holds the hub's lock.
func (h *Hub) narrow(s *session, left *access.Principal) {
	s.mu.Lock()
	before := s.auth.who
	if s.auth.who = left; left == nil {
		s.auth.token = ""
	} else {
		s.watch()
	}
	s.mu.Unlock()
	switch {
	case before == nil:
	case left == nil:
		h.revoke(s, before)
	case readsLess(left, before):
		h.expelPrivate(s, Forbidden, "the user may read less than before; subscribe again to what is left")
	}
}

// revoke ends the private subscriptions of a session with an invalid token. If the session used an API key, it ends
// the connection. The caller holds the hub's lock.
func (h *Hub) revoke(s *session, who *access.Principal) {
	h.expelPrivate(s, AuthenticationRequired, "the token has expired or was revoked; authenticate and subscribe again")
	if !who.APIKey.IsZero() {
		h.closeRevoked(s, "the API key has expired or was revoked; the connection is closed")
	}
}

// closeRevoked closes the connection of a session after its user was deactivated, or its API key was revoked or has
// expired.
func (h *Hub) closeRevoked(s *session, message string) {
	h.metrics.errors.WithLabelValues(string(AuthenticationRequired)).Inc()
	s.close(errorMessage(AuthenticationRequired, message), melody.ClosePolicyViolation, string(AuthenticationRequired))
}

// expelPrivate ends the session's private subscriptions in a fixed order of channels. The caller holds the hub's
// lock.
func (h *Hub) expelPrivate(s *session, code Code, message string) {
	for _, c := range channels() {
		if sub := s.subscriptions[c.name]; c.private && sub != nil {
			h.expel(sub, code, message)
		}
	}
}
