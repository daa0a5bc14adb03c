package access

import (
	"crypto/sha256"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
)

// admit passes a request through a Gate.
func admit(g *Gate, token string, h http.Header) (Admission, error) {
	a, err := g.Check(token, "")
	if err == nil {
		err = g.Take(h, a)
	}
	return a, err
}

// asked is what a sender learns from a Gate.
func asked(g *Gate, token string) (status int, h http.Header) {
	h = make(http.Header)
	status = http.StatusOK
	if _, err := admit(g, token, h); err != nil {
		p := problem.Of(err)
		status = p.Status
		if p.Wait > 0 {
			h.Set("Retry-After", strconv.FormatInt(p.Wait, 10))
		}
	}
	return status, h
}

func TestRateLimit(t *testing.T) {
	d := newDesk()
	g := NewGate(d.tokens)
	d.people.accounts["u"] = active(RateLimit{PerSecond: 2, Burst: 3})
	get := func() (int, string) {
		status, h := asked(g, d.good())
		return status, strings.TrimSpace(h.Get("RateLimit-Policy") + " " + h.Get("RateLimit") + " " + h.Get("Retry-After"))
	}
	want := func(status int, headers string) {
		t.Helper()
		if s, h := get(); s != status || h != headers {
			t.Errorf("got %d %q, want %d %q", s, h, status, headers)
		}
	}
	want(200, `"user";q=3;w=2 "user";r=2;t=1`)
	want(200, `"user";q=3;w=2 "user";r=1;t=1`)
	want(200, `"user";q=3;w=2 "user";r=0;t=2`)
	want(429, `"user";q=3;w=2 "user";r=0;t=2 1`)
	d.clock.at = d.clock.at.Add(500 * time.Millisecond)
	want(200, `"user";q=3;w=2 "user";r=0;t=2`)
	want(429, `"user";q=3;w=2 "user";r=0;t=2 1`)
	d.clock.at = d.clock.at.Add(time.Hour - time.Minute)
	want(200, `"user";q=3;w=2 "user";r=2;t=1`)
	d.people.accounts["u"] = active(RateLimit{PerSecond: 1, Burst: 1})
	want(200, `"user";q=1;w=1 "user";r=0;t=1`)
	want(429, `"user";q=1;w=1 "user";r=0;t=1 1`)
	d.people.accounts["u"] = active(RateLimit{})
	want(200, "")
}

// TestGateOfAStartingNode: a node that has not read all users cannot say that a token is invalid.
func TestGateOfAStartingNode(t *testing.T) {
	d := newDesk()
	starting := true
	d.tokens.MayLack(func() bool { return starting })
	g := NewGate(d.tokens)
	token := d.good()
	known := d.people.accounts["u"]
	delete(d.people.accounts, "u")
	if status, h := asked(g, token); status != 503 || h.Get("Retry-After") != "1" {
		t.Errorf("an unknown user, while the node starts: %d %v", status, h)
	}
	d.people.accounts["u"] = known
	if status, _ := asked(g, token); status != 200 {
		t.Errorf("a known user, while the node starts: %d", status)
	}
	if status, _ := asked(g, ""); status != 401 {
		t.Errorf("no token, while the node starts: %d", status)
	}
	delete(d.people.accounts, "u")
	starting = false
	if status, _ := asked(g, token); status != 401 {
		t.Errorf("an unknown user: %d", status)
	}
}

// TestRateLimitOfAnAPIKey: a key with a limit of its own has a bucket of its own, whatever its user and other keys ask for;
// without one it counts towards its user's.
func TestRateLimitOfAnAPIKey(t *testing.T) {
	d := newDesk()
	g := NewGate(d.tokens)
	d.people.accounts["u"] = active(RateLimit{PerSecond: 1, Burst: 2})
	secrets := map[string]string{"one": NewSecret(), "two": NewSecret(), "plain": NewSecret(), "token": d.good()}
	limit := func(key string, id byte, to RateLimit) {
		d.people.apiKeys[HashOf(secrets[key])] = APIKey{ID: scalar.ID{id}, Username: "u", Scopes: []string{"read"}, Limit: to}
	}
	d.people.apiKeys = make(map[[sha256.Size]byte]APIKey)
	limit("one", 1, RateLimit{PerSecond: 1, Burst: 1})
	limit("two", 2, RateLimit{PerSecond: 1, Burst: 1})
	limit("plain", 3, RateLimit{})
	want := func(with string, status int, remains string) {
		t.Helper()
		got, h := asked(g, secrets[with])
		if left, _, _ := strings.Cut(h.Get("RateLimit"), ";t="); got != status || left != remains {
			t.Errorf("%s: %d %q, want %d %q", with, got, left, status, remains)
		}
		if told := h.Get("Retry-After") == "1"; told != (status == 429) {
			t.Errorf("%s: %d %v", with, got, h)
		}
	}
	want("one", 200, `"api_key";r=0`)
	want("one", 429, `"api_key";r=0`)
	want("two", 200, `"api_key";r=0`)
	want("token", 200, `"user";r=1`)
	want("plain", 200, `"user";r=0`)
	want("token", 429, `"user";r=0`)
	limit("one", 1, RateLimit{})
	want("one", 429, `"user";r=0`) // like the rest of its user's
	limit("two", 2, RateLimit{PerSecond: 1, Burst: 3})
	want("two", 200, `"api_key";r=2`)
	d.people.accounts["u"] = active(RateLimit{})
	want("two", 200, `"api_key";r=1`)
	want("token", 200, "")
	d.people.accounts["u"] = Account{}
	want("two", 401, "")
}

// TestBucketsAreGivenUp: keys come and go, and what is kept of them does not grow for ever; a bucket that is not full
// stays.
func TestBucketsAreGivenUp(t *testing.T) {
	const each, owes = 1000, 1 << 20
	at := &clock{time.Unix(1_800_000_000, 0)}
	l := newLimits(at.now, 0)
	take := func(n int) error {
		limit := RateLimit{PerSecond: 1, Burst: 1, APIKey: scalar.ID{byte(n), byte(n >> 8), byte(n >> 16), 1}}
		return l.take(nil, nameOf("u", limit), limit, false)
	}
	owing := RateLimit{PerSecond: 1, Burst: 1}
	if err := l.take(nil, nameOf("u", owing), owing, false); err != nil {
		t.Fatal(err)
	}
	l.charge(nil, nameOf("u", owing), owing, 100)
	most := 0
	for n := range 10 * each {
		if n%each == 0 {
			at.at = at.at.Add(time.Second) // so that all of those before are full
		}
		if err := take(n); err != nil {
			t.Fatal(err)
		}
		most = max(most, len(l.buckets))
	}
	if most > 2*each {
		t.Errorf("there were %d buckets at once", most)
	}
	if err := l.take(nil, nameOf("u", owing), owing, false); err == nil {
		t.Error("a bucket that owes has been given up")
	}
}

// TestChargedAlthoughGivenUp: a request whose bucket became full and was removed while its body was on the way still pays for it.
func TestChargedAlthoughGivenUp(t *testing.T) {
	at := &clock{time.Unix(1_800_000_000, 0)}
	l := newLimits(at.now, 0)
	slow, other := RateLimit{PerSecond: 1, Burst: 2}, RateLimit{PerSecond: 1, Burst: 1}
	if err := l.take(nil, nameOf("slow", slow), slow, false); err != nil {
		t.Fatal(err)
	}
	at.at = at.at.Add(time.Minute)
	if err := l.take(nil, nameOf("other", other), other, false); err != nil {
		t.Fatal(err)
	}
	l.charge(nil, nameOf("slow", slow), slow, 49)
	if err := l.take(nil, nameOf("slow", slow), slow, false); err == nil {
		t.Error("the charge is lost")
	}
}

// TestChargedForMore: what a request is charged for in addition is owed by the next ones.
func TestChargedForMore(t *testing.T) {
	d := newDesk()
	g := NewGate(d.tokens)
	d.people.accounts["u"] = active(RateLimit{PerSecond: 1, Burst: 2})
	ask := func(more int) error {
		admitted, err := admit(g, d.good(), nil)
		g.Charge(nil, admitted, more)
		return err
	}
	if err := ask(3); err != nil {
		t.Fatal(err)
	}
	for range 3 { // two tokens less than none
		if err := ask(0); problem.Of(err).Code != "RATE_LIMITED" {
			t.Errorf("%v", err)
		}
		d.clock.at = d.clock.at.Add(time.Second)
	}
	if err := ask(0); err != nil {
		t.Errorf("all is paid: %v", err)
	}
}
