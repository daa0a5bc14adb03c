package webhooks

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// nobody is an address at which nobody listens. The system gives its port to no process that leaves the choice to it.
const nobody = "127.0.0.1:1"

// receiver is an HTTPS server for example.com on loopback, and what vouches for it.
func receiver(t *testing.T, h http.HandlerFunc) (*httptest.Server, *x509.CertPool) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return s, roots
}

func portOf(t *testing.T, s *httptest.Server) string {
	t.Helper()
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// names is a resolver that knows what it is told, and counts what it is asked.
type names struct {
	told  atomic.Pointer[[]netip.Addr]
	asked atomic.Int64
}

func (n *names) tell(addresses ...string) {
	var told []netip.Addr
	for _, a := range addresses {
		told = append(told, netip.MustParseAddr(a))
	}
	n.told.Store(&told)
}

func (n *names) lookup(context.Context, string) ([]netip.Addr, error) {
	n.asked.Add(1)
	return append([]netip.Addr{}, *n.told.Load()...), nil
}

func try(t *testing.T, d Dialing, to string) attempt {
	t.Helper()
	client := d.Client(1, 10*time.Second)
	t.Cleanup(client.CloseIdleConnections)
	return post(t.Context(), client, to, make(http.Header), []byte("{}"))
}

// TestPrivateAddresses: whatever a URL's text looks like, the address that would be dialled decides; nothing arrives there.
func TestPrivateAddresses(t *testing.T) {
	var arrived atomic.Int64
	s, roots := receiver(t, func(http.ResponseWriter, *http.Request) { arrived.Add(1) })
	port := portOf(t, s)
	for _, host := range []string{"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "[0:0:0:0:0:ffff:7f00:1]", "0.0.0.0", "[::]"} {
		if a := try(t, Dialing{Roots: roots}, "https://"+host+":"+port+"/"); a.status != 0 || !strings.HasPrefix(a.failure, "ADDRESS_FORBIDDEN") {
			t.Errorf("%s: %d, %s", host, a.status, a.failure)
		}
	}
	// What inet_aton would read as 127.0.0.1 is a name here, and digits and dots of Unicode are no digits and dots: whoever
	// resolves them, what comes out is checked.
	for _, host := range []string{"2130706433", "0x7f.1", "017700000001", "127.1", "１２７.0.0.1", "127。0。0。1"} {
		if a := try(t, Dialing{Roots: roots}, "https://"+host+":"+port+"/"); a.status != 0 || a.failure == "" {
			t.Errorf("%s: %d, %s", host, a.status, a.failure)
		}
	}
	if n := arrived.Load(); n != 0 {
		t.Errorf("%d requests arrived at a private address", n)
	}
	if a := try(t, Dialing{Roots: roots, Allowed: loopback}, "https://127.0.0.1:"+port+"/"); a.status != 200 {
		t.Errorf("an allowed network: %d, %s", a.status, a.failure)
	}
}

// TestRebinding: a name that comes to mean a private address is not followed there, neither by a new connection nor by one
// that was kept; and one of several addresses that may be sent to is enough.
func TestRebinding(t *testing.T) {
	s, roots := receiver(t, func(http.ResponseWriter, *http.Request) {})
	n := new(names)
	d := Dialing{Roots: roots, Allowed: loopback, Lookup: n.lookup}
	client := d.Client(1, 10*time.Second)
	send := func() attempt {
		return post(t.Context(), client, "https://example.com:"+portOf(t, s)+"/", make(http.Header), []byte("{}"))
	}
	n.tell("10.255.255.1", "127.0.0.1")
	if a := send(); a.status != 200 {
		t.Fatalf("%d, %s", a.status, a.failure)
	}
	n.tell("10.255.255.1")
	if a := send(); a.status != 200 || n.asked.Load() != 1 {
		t.Errorf("over the connection to the address that was checked: %d, %s, %d questions", a.status, a.failure, n.asked.Load())
	}
	client.CloseIdleConnections()
	if a := send(); a.status != 0 || !strings.HasPrefix(a.failure, "ADDRESS_FORBIDDEN") {
		t.Errorf("over a new connection: %d, %s", a.status, a.failure)
	}
}

// proxy is an HTTP proxy that notes what it is asked to connect to.
func proxy(t *testing.T, answer string) (at *url.URL, asked chan *http.Request) {
	t.Helper()
	asked = make(chan *http.Request, 10)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r
		near, buffered, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer near.Close()
		if answer != "" {
			_, _ = near.Write([]byte(answer))
			return
		}
		far, err := net.Dial("tcp", r.Host)
		if err != nil {
			_, _ = near.Write([]byte("HTTP/1.1 502 Bad Gateway\r\n\r\n"))
			return
		}
		defer far.Close()
		_, _ = near.Write([]byte("HTTP/1.1 200 Connection established\r\n\r\n"))
		go func() { _, _ = io.Copy(far, buffered) }()
		_, _ = io.Copy(near, far)
	}))
	t.Cleanup(s.CloseClientConnections)
	t.Cleanup(s.Close)
	at, err := ParseProxy(strings.Replace(s.URL, "http://", "http://user:word@", 1))
	if err != nil {
		t.Fatal(err)
	}
	return at, asked
}

// TestEgressProxy: the proxy is told the address that was checked here, never a name; TLS is the receiver's, by its name.
func TestEgressProxy(t *testing.T) {
	s, roots := receiver(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.TLS.ServerName) })
	n := new(names)
	n.tell("10.0.0.1", "::ffff:127.0.0.1")
	at, asked := proxy(t, "")
	d := Dialing{Roots: roots, Allowed: loopback, Proxy: at, Lookup: n.lookup}
	a := try(t, d, "https://example.com:"+portOf(t, s)+"/")
	if a.status != 200 || string(a.reply) != "example.com" {
		t.Fatalf("%d, %s, the receiver was asked for %q", a.status, a.failure, a.reply)
	}
	if r := <-asked; r.Method != http.MethodConnect || r.Host != "127.0.0.1:"+portOf(t, s) || r.Header.Get("Proxy-Authorization") != "Basic dXNlcjp3b3Jk" {
		t.Errorf("the proxy was asked for %s %s with %v", r.Method, r.Host, r.Header)
	}
	// Nobody listens at the first address: the proxy can't reach it, but the second one.
	n.tell("127.0.0.9", "127.0.0.1")
	if a := try(t, d, "https://example.com:"+portOf(t, s)+"/"); a.status != 200 {
		t.Fatalf("two addresses: %d, %s", a.status, a.failure)
	}
	if first, second := (<-asked).Host, (<-asked).Host; !strings.HasPrefix(first, "127.0.0.9:") || !strings.HasPrefix(second, "127.0.0.1:") {
		t.Errorf("the proxy was asked for %s, then for %s", first, second)
	}
	for _, host := range []string{"127.0.0.2", "[::1]", "example.com"} {
		n.tell("10.0.0.1", "169.254.169.254", "::1")
		d.Allowed = nil
		if a := try(t, d, "https://"+host+"/"); !strings.HasPrefix(a.failure, "ADDRESS_FORBIDDEN") {
			t.Errorf("%s: %d, %s", host, a.status, a.failure)
		}
	}
	if len(asked) > 0 {
		t.Errorf("the proxy was asked for %s", (<-asked).Host)
	}
	// What fails on this side of the network is told apart from what fails at the receiver.
	for answer, want := range map[string]string{
		"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n":         webhook.EgressFailed,
		"HTTP/1.1 403 Forbidden\r\n\r\n":                             webhook.EgressFailed,
		"HTTP/1.1 500 Internal Server Error\r\n\r\n":                 webhook.EgressFailed,
		"nonsense\r\n\r\n":                                           webhook.EgressFailed,
		"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 2*maxConnect): webhook.EgressFailed,
		"HTTP/1.1 502 Bad Gateway\r\n\r\n":                           "UNREACHABLE",
		"HTTP/1.1 503 Service Unavailable\r\n\r\n":                   "UNREACHABLE",
		"HTTP/1.1 504 Gateway Timeout\r\n\r\n":                       "UNREACHABLE",
		"HTTP/1.1 200 Connection established\r\n\r\n":                "CONNECTION_LOST",
	} {
		d.Allowed = loopback
		d.Proxy, _ = proxy(t, answer)
		if a := try(t, d, "https://127.0.0.1:"+portOf(t, s)+"/"); a.status != 0 || !strings.HasPrefix(a.failure, want+": ") || (a.outcome() == unsent) != (want == webhook.EgressFailed) {
			t.Errorf("a proxy that answers %.40q: %d, %s, counted as %s", answer, a.status, a.failure, a.outcome())
		}
	}
	d.Proxy, _ = ParseProxy("http://" + nobody)
	if a := try(t, d, "https://127.0.0.1:"+portOf(t, s)+"/"); !strings.HasPrefix(a.failure, webhook.EgressFailed+": ") {
		t.Errorf("a proxy that is away: %d, %s", a.status, a.failure)
	}
	for _, bad := range []string{"https://proxy:1", "proxy:1", "http://", "http://proxy/path", "socks5://proxy:1"} {
		if u, err := ParseProxy(bad); err == nil {
			t.Errorf("%q is read as %v", bad, u)
		}
	}
}

// TestNoProxyFromTheEnvironment: what the environment says of proxies is for other programs.
func TestNoProxyFromTheEnvironment(t *testing.T) {
	at, asked := proxy(t, "HTTP/1.1 502 Bad Gateway\r\n\r\n")
	t.Setenv("HTTPS_PROXY", at.String())
	s, roots := receiver(t, func(http.ResponseWriter, *http.Request) {})
	n := new(names)
	n.tell("127.0.0.1")
	if a := try(t, Dialing{Roots: roots, Allowed: loopback, Lookup: n.lookup}, "https://example.com:"+portOf(t, s)+"/"); a.status != 200 || len(asked) > 0 {
		t.Errorf("%d, %s, and the proxy was asked %d times", a.status, a.failure, len(asked))
	}
}

// TestAnswers: what a receiver may do to an attempt, and what the attempt says of it.
func TestAnswers(t *testing.T) {
	var elsewhere atomic.Int64
	other, _ := receiver(t, func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) })
	release := make(chan struct{})
	s, roots := receiver(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/redirect":
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		case "/nowhere":
			w.Header().Set("Location", "https://%zz")
			w.WriteHeader(http.StatusFound)
		case "/busy":
			w.Header().Set("Retry-After", "120")
			w.WriteHeader(http.StatusTooManyRequests)
		case "/long":
			for range 1000 {
				if _, err := w.Write(make([]byte, 1<<10)); err != nil {
					return
				}
			}
		case "/bomb":
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write([]byte("not read"))
		case "/header":
			w.Header().Set("X", strings.Repeat("x", maxHeader+1))
		case "/trickle":
			w.WriteHeader(200)
			_, _ = w.Write([]byte("first"))
			w.(http.Flusher).Flush()
			<-release
		case "/silent":
			<-release
		case "/ssh":
			say(w, "SSH-2.0-OpenSSH_9.6\r\n")
		case "/cut":
			say(w, "HTTP/1.1 200 OK\r\nContent-Le")
		case "/reset":
			conn, _, _ := w.(http.Hijacker).Hijack()
			_ = conn.(interface{ NetConn() net.Conn }).NetConn().(*net.TCPConn).SetLinger(0)
			conn.Close()
		}
	})
	defer close(release)
	client := Dialing{Roots: roots, Allowed: loopback}.Client(1, patience)
	t.Cleanup(client.CloseIdleConnections)
	// A machine that is busy may be silent for a while itself: what is cut off had its beginning, in the end.
	cut := func(path string, got func(attempt) bool) (a attempt) {
		for within := 300 * time.Millisecond; within < patience; within *= 2 {
			client := Dialing{Roots: roots, Allowed: loopback}.Client(1, within)
			a = post(t.Context(), client, s.URL+path, make(http.Header), []byte("{}"))
			client.CloseIdleConnections()
			if got(a) {
				break
			}
		}
		return a
	}
	for path, want := range map[string]attempt{
		"/fine":     {status: 200},
		"/redirect": {status: 307},
		"/nowhere":  {status: 302},
		"/busy":     {status: 429, retryAfter: 120 * scalar.Second},
		"/long":     {status: 200, reply: make([]byte, 256)},
		"/bomb":     {status: 200, reply: []byte("not read")},
		"/trickle":  {status: 200, reply: []byte("first")},
		"/silent":   {failure: "TIMEOUT: no answer came in time"},
		"/reset":    {failure: "CONNECTION_LOST: the connection ended without an answer"},
		"/header":   {failure: "ANSWER_INVALID: the answer is not HTTP/1.1, breaks off, or has more than 64 KiB of headers"},
		"/ssh":      {failure: "ANSWER_INVALID: the answer is not HTTP/1.1, breaks off, or has more than 64 KiB of headers"},
		"/cut":      {failure: "ANSWER_INVALID: the answer is not HTTP/1.1, breaks off, or has more than 64 KiB of headers"},
	} {
		var a attempt
		switch path {
		case "/silent":
			a = cut(path, func(attempt) bool { return true })
		case "/trickle":
			a = cut(path, func(a attempt) bool { return len(a.reply) > 0 })
		default:
			for range 5 { // a busy machine may be late for a handshake
				a = post(t.Context(), client, s.URL+path, make(http.Header), []byte("{}"))
				if !strings.HasPrefix(a.failure, "TIMEOUT") {
					break
				}
			}
		}
		if path == "/redirect" {
			a.reply = nil // net/http's words
		}
		if a.status != want.status || a.failure != want.failure || string(a.reply) != string(want.reply) || a.retryAfter != want.retryAfter || a.took <= 0 {
			t.Errorf("%s: %+v, want %+v", path, a, want)
		}
	}
	if elsewhere.Load() != 0 {
		t.Error("a redirect was followed")
	}
	if a := try(t, Dialing{Allowed: loopback}, s.URL); a.failure != "TLS_FAILED: the receiver's certificate is not valid for it" {
		t.Errorf("a receiver that nobody vouches for: %+v", a)
	}
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	if a := try(t, Dialing{Allowed: loopback}, strings.Replace(plain.URL, "http:", "https:", 1)); a.status != 0 || a.failure == "" {
		t.Errorf("a receiver without TLS: %+v", a)
	}
	if a := try(t, Dialing{Allowed: loopback}, "https://"+nobody); !strings.HasPrefix(a.failure, "CONNECTION_REFUSED") {
		t.Errorf("nobody there: %+v", a)
	}
	failing := Dialing{Lookup: func(context.Context, string) ([]netip.Addr, error) { return nil, errors.New("no answer") }}
	if a := try(t, failing, "https://example.com"); a.status != 0 || strings.Contains(a.failure, "no answer\"") {
		t.Errorf("no resolver: %+v", a)
	}
}

// say sends text in place of an answer, and closes the connection.
func say(w http.ResponseWriter, text string) {
	conn, out, _ := w.(http.Hijacker).Hijack()
	_, _ = out.WriteString(text)
	_ = out.Flush()
	conn.Close()
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]scalar.Time{"": 0, "0": 0, "7": 7 * scalar.Second, "-7": 0, "1.5": 0, "soon": 0, "4294967295": maxAfter, "99999999999": 0,
		"Sun, 22 Nov 2026 12:01:00 GMT": scalar.Minute, "Sun, 22 Nov 2026 11:59:00 GMT": 0} {
		if got := retryAfter(text, now); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}
