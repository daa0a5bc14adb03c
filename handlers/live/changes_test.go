package live_test

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/live"
	"github.com/perpetua-exchange/perpetua/handlers/live/livetest"
	"github.com/perpetua-exchange/perpetua/handlers/web/access"
)

// TestChangesEndWhatTheyEnd lets the identity journal change while tokens are good for long, and nobody verifies them
// again. What follows the change is told only to whom it is still for: the change has its effect before it returns.
func TestChangesEndWhatTheyEnd(t *testing.T) {
	good := access.Account{Active: true, Broker: "alpha", Scopes: []string{access.ScopeRead, access.ScopeTrade}}
	change := func(f func(*access.Account)) access.Change {
		a := good
		f(&a)
		return access.Change{Username: "u-alpha", Account: a}
	}
	other := scalar.ID{2}
	for name, test := range map[string]struct {
		change access.Change
		code   live.Code // of the end, none if nothing ends
		key    bool      // of sockets with an API key alone
		token  bool      // of sockets with a token alone
		closes bool      // any socket, not only one with an API key
	}{
		"the user is made inactive":   {change: change(func(a *access.Account) { a.Active = false }), code: live.AuthenticationRequired, closes: true},
		"the user moves to a broker":  {change: change(func(a *access.Account) { a.Broker = "beta" }), code: live.AuthenticationRequired},
		"the user gets an account":    {change: change(func(a *access.Account) { a.Customer = "A1" }), code: live.AuthenticationRequired},
		"the user loses read":         {change: change(func(a *access.Account) { a.Scopes = []string{access.ScopeTrade} }), code: live.Forbidden},
		"the user loses trade":        {change: change(func(a *access.Account) { a.Scopes = []string{access.ScopeRead} })},
		"another user changes":        {change: access.Change{Username: "u-beta"}},
		"the password is changed":     {change: change(func(a *access.Account) { a.PasswordChanged = 1 }), code: live.AuthenticationRequired, token: true},
		"the signing key is retired":  {change: access.Change{KID: "k1"}, code: live.AuthenticationRequired, token: true},
		"another is retired":          {change: access.Change{KID: "k2"}},
		"the API key is revoked":      {change: access.Change{APIKey: scalar.ID{1}}, code: live.AuthenticationRequired, key: true},
		"another API key is revoked ": {change: access.Change{APIKey: other}},
	} {
		for _, byKey := range []bool{false, true} {
			t.Run(name+", API key "+strconv.FormatBool(byKey), func(t *testing.T) {
				v := newVenue(t, live.Limits{}, nil)
				p := &access.Principal{Username: "u-alpha", Broker: "alpha", Scopes: []string{access.ScopeRead, access.ScopeTrade}, KID: "k1"}
				if byKey {
					p.KID, p.APIKey = "", scalar.ID{1}
				}
				v.known.Store("credential", func() *access.Principal { return p })
				p.Expires = time.Now().Add(time.Hour)
				c := v.dial("credential")
				c.Subscribe("orders", "orderbook-stream:"+btc)
				v.place(limit("A1", btc, order.Sell, "1", "1000"))
				c.Next("the order", func(m livetest.Message) bool { return m.Channel == "orders" })
				v.change(test.change)
				v.place(limit("A1", btc, order.Sell, "1", "1001"))
				ends := test.code != "" && !(test.key && !byKey) && !(test.token && byKey)
				switch {
				case !ends:
					c.Next("the next order", func(m livetest.Message) bool { return m.Channel == "orders" })
					return
				case (byKey || test.closes) && test.code == live.AuthenticationRequired:
					if code, reason := c.Closed(); code != websocket.ClosePolicyViolation || reason != string(test.code) {
						t.Errorf("closed with %d %s", code, reason)
					}
				default:
					c.Until("the update of the book after the change", func(all []livetest.Message) bool { return updatesOfBook(all) == 2 })
				}
				if m := c.Next("the end", func(m livetest.Message) bool { return m.Op == "error" }); m.Code != string(test.code) || m.Args[0] != "orders" {
					t.Errorf("%s", m.Raw)
				}
				if n := len(c.On("orders")); n != 1 {
					t.Errorf("%d orders, want the one of before the change", n)
				}
			})
		}
	}
}

// updatesOfBook counts the updates of order books.
func updatesOfBook(all []livetest.Message) (n int) {
	for _, m := range all {
		if m.Type == "update" && strings.HasPrefix(m.Channel, "orderbook-stream:") {
			n++
		}
	}
	return n
}

// TestAChangeWhileATokenIsVerified makes the user inactive when the token has been judged good, but the session does not
// name the user yet: over a handshake and by a message.
func TestAChangeWhileATokenIsVerified(t *testing.T) {
	v := newVenue(t, live.Limits{}, nil)
	token := v.reader("alpha")
	deactivate := func() {
		v.asked = nil
		v.known.Delete(token)
		v.change(access.Change{Username: "u-alpha", Account: access.Account{Broker: "alpha"}})
	}
	v.asked = deactivate
	c := v.dial(token)
	if m := c.Ask(livetest.Request{Op: "subscribe", Args: []string{"orders"}}); m.Code != string(live.AuthenticationRequired) {
		t.Errorf("after the handshake: %s", m.Raw)
	}
	token = v.reader("alpha")
	v.asked = deactivate
	if m := c.Ask(livetest.Request{Op: "authenticate", Data: map[string]string{"token": token}}); m.Code != string(live.AuthenticationFailed) {
		t.Errorf("by a message: %s", m.Raw)
	}
	if m := c.Ask(livetest.Request{Op: "subscribe", Args: []string{"orders"}}); m.Code != string(live.AuthenticationRequired) {
		t.Errorf("after a message: %s", m.Raw)
	}
}

// TestProlongingLeavesNoGap authenticates again and again, with tokens that end soon after, while orders come. All of them
// are told, once, in their order.
func TestProlongingLeavesNoGap(t *testing.T) {
	const tokens, each = 50, 20
	v := newVenue(t, live.Limits{VerifyEvery: time.Millisecond}, nil)
	c := v.dial(v.reader("alpha"))
	c.Subscribe("orders")
	before := ""
	for range tokens {
		var placing sync.WaitGroup
		placing.Go(func() {
			for range each {
				if _, err := v.try(trading.CommandPlaceOrder, limit("A1", btc, order.Sell, "0.001", "1000")); err != nil {
					t.Error(err)
				}
			}
		})
		fresh := v.reader("alpha")
		c.Authenticate(fresh)
		v.known.Delete(before) // the token before has ended, wherever its verification stands
		before = fresh
		placing.Wait()
	}
	const n = tokens * each // fewer than a queue holds, whoever is how fast
	c.Until("all orders", func(all []livetest.Message) bool {
		told := 0
		for _, m := range all {
			if m.Channel == "orders" && m.Op == "" {
				told++
			}
			if m.Op == "error" {
				t.Fatalf("%s", m.Raw)
			}
		}
		return told >= n
	})
	seen := make(map[string]bool)
	for _, m := range c.On("orders") {
		if code := m.Fields()["code"]; seen[code] {
			t.Errorf("%s came twice", code)
		} else {
			seen[code] = true
		}
	}
	if len(seen) != n {
		t.Errorf("%d of %d orders were told", len(seen), n)
	}
}

// TestRightsComeBackWithTheirChange: a user who has lost read and gets it back may subscribe again when the change is read, with a
// token and with an API key. Tokens are not verified again otherwise.
func TestRightsComeBackWithTheirChange(t *testing.T) {
	for _, kid := range []string{"k1", ""} {
		v := newVenue(t, live.Limits{VerifyEvery: time.Hour}, nil)
		may := func(scopes ...string) access.Change {
			p := &access.Principal{Username: "u-alpha", Broker: "alpha", Scopes: scopes, KID: kid, Expires: time.Now().Add(2 * time.Hour)}
			if kid == "" {
				p.APIKey = scalar.ID{1}
			}
			v.known.Store("credential", func() *access.Principal { return p })
			return access.Change{Username: "u-alpha", Account: access.Account{Active: true, Broker: "alpha", Scopes: scopes}}
		}
		may(access.ScopeRead, access.ScopeTrade)
		c := v.dial("credential")
		c.Subscribe("orders")
		v.change(may(access.ScopeTrade))
		subscribe := livetest.Request{Op: "subscribe", Args: []string{"orders"}}
		if m := c.Ask(subscribe); m.Code != string(live.Forbidden) {
			t.Errorf("without read: %s", m.Raw)
		}
		v.change(may(access.ScopeRead, access.ScopeTrade))
		v.until(t, "a subscription", func() bool { return c.Ask(subscribe).Code == "" })
		v.place(limit("A1", btc, order.Sell, "1", "1000"))
		c.Next("the order", func(m livetest.Message) bool { return m.Channel == "orders" && m.Op == "" })
	}
}

// TestVerificationsOfManyChanges: the changes of a user that arrive while tokens are verified cost one more verification of each
// session, however many they are. Changes that give nothing back cost none.
func TestVerificationsOfManyChanges(t *testing.T) {
	v := newVenue(t, live.Limits{VerifyEvery: time.Hour}, nil)
	p := &access.Principal{Username: "u-alpha", Broker: "alpha", Scopes: []string{access.ScopeRead}, KID: "k1", Expires: time.Now().Add(2 * time.Hour)}
	v.known.Store("credential", func() *access.Principal { return p })
	const sessions = 10
	for range sessions {
		if m := v.dial("credential").Ask(livetest.Request{Op: "ping"}); m.Op != "pong" { // the session is registered
			t.Fatalf("%s", m.Raw)
		}
	}
	var verified atomic.Int64
	began, goOn := make(chan struct{}, 1), make(chan struct{})
	v.asked = func() {
		verified.Add(1)
		select {
		case began <- struct{}{}:
		default:
		}
		<-goOn
	}
	may := func(scopes ...string) access.Change {
		return access.Change{Username: "u-alpha", Account: access.Account{Active: true, Broker: "alpha", Scopes: scopes}}
	}
	v.change(may(access.ScopeRead))
	v.change(may(access.ScopeRead, access.ScopeTrade))
	<-began
	for range 100 {
		v.change(may(access.ScopeRead, access.ScopeTrade))
	}
	close(goOn)
	v.until(t, "the verifications", func() bool { return verified.Load() >= 2*sessions })
	v.change(may(access.ScopeRead))
	v.dial("credential") // one more verification
	if n := verified.Load(); n != 2*sessions+1 {
		t.Errorf("%d tokens were verified, want %d", n, 2*sessions+1)
	}
}

// TestMoreRightsEndNothing: a user who may read more than before keeps the private subscriptions.
func TestMoreRightsEndNothing(t *testing.T) {
	v := newVenue(t, live.Limits{VerifyEvery: time.Hour}, nil)
	may := func(scopes ...string) access.Change {
		p := &access.Principal{Username: "u-alpha", Broker: "alpha", Scopes: scopes, KID: "k1", Expires: time.Now().Add(2 * time.Hour)}
		v.known.Store("credential", func() *access.Principal { return p })
		return access.Change{Username: "u-alpha", Account: access.Account{Active: true, Broker: "alpha", Scopes: scopes}}
	}
	may(access.ScopeRead)
	c := v.dial("credential")
	c.Subscribe("orders")
	v.change(may(access.ScopeRead, access.ScopeAuditor))
	others := livetest.Request{Op: "subscribe", Args: []string{"trades"}, Data: map[string]string{"customer_code": "B1"}}
	v.until(t, "a subscription to another broker's trades", func() bool { return c.Ask(others).Code == "" })
	v.place(limit("A1", btc, order.Sell, "1", "1000"))
	c.Next("the order", func(m livetest.Message) bool {
		if m.Op == "error" && slices.Contains(m.Args, "orders") {
			t.Fatalf("%s", m.Raw)
		}
		return m.Channel == "orders" && m.Op == ""
	})
	v.change(may(access.ScopeRead))
	if m := c.Next("the end", func(m livetest.Message) bool { return m.Op == "error" && slices.Contains(m.Args, "orders") }); m.Code != string(live.Forbidden) {
		t.Errorf("%s", m.Raw)
	}
}

// TestAuthenticateAtAStartingNode: a node that cannot judge a token yet says so, as over REST, and never that the limit of the network
// is exhausted: the token may be valid. It counts as a guess all the same.
func TestAuthenticateAtAStartingNode(t *testing.T) {
	starting := access.NewTokens(nil, "perpetua", time.Now)
	starting.MayLack(func() bool { return true })
	v := newVenue(t, live.Limits{}, nil, limitingNetworks)
	c := livetest.Dial(t, v.behindProxy("192.0.2.1"), "")
	_, v.unknown = starting.Verify("x", "")
	authenticate := livetest.Request{Op: "authenticate", Data: map[string]string{"token": "x"}}
	for range 4 {
		if m := c.Ask(authenticate); m.Code != string(live.UpstreamError) || !strings.Contains(string(m.Raw), "starting") {
			t.Errorf("%s", m.Raw)
		}
	}
	v.unknown = nil
	if m := c.Ask(authenticate); m.Code != string(live.RateLimited) {
		t.Errorf("after the start: %s", m.Raw)
	}
}
