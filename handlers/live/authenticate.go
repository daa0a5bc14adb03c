package live

import (
	"time"

	"github.com/perpetua-exchange/perpetua/handlers/web"
)

// authenticate makes the session act for the principal of a token. A token for the same principal prolongs the
// session; another one ends the private subscriptions, which it did not ask for.
func (h *Hub) authenticate(s *session, r *request) {
	p, err := h.tokens.Verify(r.token)
	if err != nil {
		h.logger.Debug("a token was refused", "remote", s.socket.RemoteAddr(), "error", err)
		h.reject(s, r.id, AuthenticationFailed, "the token is not valid")
		return
	}
	s.mu.Lock()
	before := s.who
	s.who, s.token = p, r.token
	s.watch()
	s.mu.Unlock()
	if before != nil && !sameReader(before, p) {
		h.mu.Lock()
		h.expelPrivate(s, Forbidden, "the connection was authenticated for somebody else")
		h.mu.Unlock()
	}
	s.send(encode(ack{Op: "authenticated", ID: r.id}))
}

// sameReader reports whether both principals may read the same.
func sameReader(a, b *web.Principal) bool {
	return a.Broker == b.Broker && a.Customer == b.Customer && a.Has(web.ScopeRead) == b.Has(web.ScopeRead) &&
		a.SeesAll() == b.SeesAll()
}

// watch sees to it that the session's token is verified again: when it expires, and now and then before that, since
// a user may be deactivated, a scope taken away and a key retired. It is called under the session's lock.
func (s *session) watch() {
	if s.over {
		return
	}
	if s.check != nil {
		s.check.Stop()
	}
	s.check = time.AfterFunc(s.hub.verifyAfter(s.who), s.verifyAgain)
}

func (s *session) verifyAgain() {
	s.mu.Lock()
	token, gone := s.token, s.ended || s.who == nil
	s.mu.Unlock()
	if gone {
		return
	}
	p, err := s.hub.tokens.Verify(token)
	// The hub's lock is held throughout, so that what is ended was subscribed to with this token and not with one
	// that comes now.
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	s.mu.Lock()
	if s.token != token { // authenticated anew meanwhile, and watched for that
		s.mu.Unlock()
		return
	}
	before, expired := s.who, err != nil || !time.Now().Before(p.Expires)
	if expired {
		s.who, s.token = nil, ""
	} else {
		s.who = p
		s.watch()
	}
	s.mu.Unlock()
	switch {
	case expired:
		s.hub.expelPrivate(s, AuthenticationRequired, "the token has expired or was withdrawn; authenticate and subscribe again")
	case !sameReader(before, p):
		s.hub.expelPrivate(s, Forbidden, "the user may read less than before; subscribe again to what is left")
	}
}

// expelPrivate ends the session's private subscriptions, in a fixed order of the channels. It is called under the
// hub's lock.
func (h *Hub) expelPrivate(s *session, code Code, message string) {
	for _, c := range channels() {
		if sub := s.subscriptions[c.name]; c.private && sub != nil {
			h.expel(sub, code, message)
		}
	}
}
