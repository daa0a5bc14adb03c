package webhooks

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"
)

// Dialing is how receivers are reached.
type Dialing struct {
	Allowed []netip.Prefix // networks that are not public and may be sent to all the same
	Roots   *x509.CertPool // who vouches for receivers; nil for the system's
	Proxy   *url.URL       // an HTTP proxy that connections go out by; nil for none
	// Lookup resolves a name; nil for the system's resolver.
	Lookup func(ctx context.Context, name string) ([]netip.Addr, error)
}

const (
	connectWithin = 5 * time.Second
	shakeWithin   = 5 * time.Second
	idleFor       = 4 * time.Second // many receivers close a connection after 5
	maxHeader     = 64 << 10
	maxConnect    = 4 << 10 // of a proxy's answer
)

// ParseProxy reads the URL of an HTTP proxy; "" is none.
func ParseProxy(text string) (*url.URL, error) {
	if text == "" {
		return nil, nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" || u.Host == "" || u.Path != "" && u.Path != "/" {
		return nil, errors.New("a proxy is told as http://host:port, with user:password@ where it wants that")
	}
	return u, nil
}

// Client returns a client for receivers. It follows no redirect, asks for no compression and takes no proxy from the
// environment. Connections are kept for a while between the attempts; the address of each was checked when it was made, and a
// connection's address never changes. So whoever has a name mean another address meets the check at the next one.
func (d Dialing) Client(perReceiver int, within time.Duration) *http.Client {
	return &http.Client{
		Timeout:       within,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: staying{&http.Transport{
			DialContext:            d.dial,
			TLSClientConfig:        &tls.Config{RootCAs: d.Roots, MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout:    shakeWithin,
			MaxIdleConnsPerHost:    perReceiver,
			IdleConnTimeout:        idleFor,
			MaxResponseHeaderBytes: maxHeader,
			DisableCompression:     true,
		}},
	}
}

// staying goes nowhere else. A client reads where an answer leads even if it does not follow, and takes an answer for none whose
// Location it cannot read.
type staying struct{ *http.Transport }

// RoundTrip implements http.RoundTripper.
func (s staying) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := s.Transport.RoundTrip(r)
	if response != nil {
		response.Header.Del("Location")
	}
	return response, err
}

// dial connects to a receiver. TLS is spoken over the connection by the client that called, with the name of the URL.
func (d Dialing) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if d.Proxy != nil {
		return d.throughProxy(ctx, network, address)
	}
	// The name is resolved by the dialler, which tries one address after the other. The check comes with each of them, after the
	// last time that anybody looks at a name.
	dialer := &net.Dialer{Timeout: connectWithin, Resolver: net.DefaultResolver,
		ControlContext: func(_ context.Context, _, at string, _ syscall.RawConn) error {
			to, err := netip.ParseAddrPort(at)
			if err != nil {
				return err
			}
			return check(to.Addr(), d.Allowed)
		}}
	if d.Lookup == nil {
		return dialer.DialContext(ctx, network, address)
	}
	addresses, port, err := d.resolve(ctx, address)
	if err != nil {
		return nil, err
	}
	var failed error
	for _, a := range addresses {
		conn, err := dialer.DialContext(ctx, network, net.JoinHostPort(a.String(), port))
		if err == nil {
			return conn, nil
		}
		failed = err
	}
	return nil, failed
}

// throughProxy has a proxy connect to the receiver: to an address that was checked here, since what the proxy would find under
// the name nobody here sees.
func (d Dialing) throughProxy(ctx context.Context, network, address string) (net.Conn, error) {
	addresses, port, err := d.resolve(ctx, address)
	if err != nil {
		return nil, err
	}
	var failed, refused error
	for _, a := range addresses { // a proxy may reach one of them and not another, as where it has no IPv6
		if err := check(a, d.Allowed); err != nil {
			refused = err
			continue
		}
		conn, err := d.connect(ctx, network, net.JoinHostPort(a.String(), port))
		if err == nil {
			return conn, nil
		}
		failed = err
	}
	return nil, cmp.Or(failed, refused)
}

// EgressError says that the proxy which all connections go out by cannot be reached, or makes none for us. No receiver can help it.
type EgressError struct{ Err error }

// Error says what is wrong with the proxy.
func (e *EgressError) Error() string { return "proxy: " + e.Err.Error() }

// Unwrap returns what happened.
func (e *EgressError) Unwrap() error { return e.Err }

// errUnreachable says that the proxy found no way to the receiver.
var errUnreachable = errors.New("proxy: it finds no connection to the receiver")

// resolve returns at least one address of host:port.
func (d Dialing) resolve(ctx context.Context, address string) ([]netip.Addr, string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, "", err
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, port, nil
	}
	lookup := d.Lookup
	if lookup == nil {
		lookup = func(ctx context.Context, name string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", name)
		}
	}
	found, err := lookup(ctx, host)
	if err == nil && len(found) == 0 {
		err = &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	for i, a := range found {
		found[i] = a.Unmap() // the resolver has no other form for IPv4
	}
	return found, port, err
}

// connect asks the proxy for a connection to an address.
func (d Dialing) connect(ctx context.Context, network, to string) (net.Conn, error) {
	at := d.Proxy.Host
	if d.Proxy.Port() == "" {
		at = net.JoinHostPort(d.Proxy.Hostname(), "80")
	}
	conn, err := (&net.Dialer{Timeout: connectWithin}).DialContext(ctx, network, at)
	if err != nil {
		return nil, &EgressError{Err: err}
	}
	if err := d.shake(ctx, conn, to); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// shake has the proxy at the other end of a connection pass on what follows to an address. It ends with its limit, or with the
// request.
func (d Dialing) shake(ctx context.Context, conn net.Conn, to string) error {
	// The limit of the handshake comes first: set after the other, it would take back what the end of the request has set, and a
	// silent proxy would be waited for all the same.
	_ = conn.SetDeadline(time.Now().Add(connectWithin + shakeWithin))
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := d.tunnel(conn, to); err != nil {
		return err
	}
	if !stop() { // the request's time was up, and the deadline is about to be set for good
		return ctx.Err()
	}
	return conn.SetDeadline(time.Time{})
}

// tunnel asks for that, and reads the answer.
func (d Dialing) tunnel(conn net.Conn, to string) error {
	var ask strings.Builder
	fmt.Fprintf(&ask, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n", to, to)
	if u := d.Proxy.User; u != nil {
		password, _ := u.Password()
		fmt.Fprintf(&ask, "Proxy-Authorization: Basic %s\r\n", base64.StdEncoding.EncodeToString([]byte(u.Username()+":"+password)))
	}
	if _, err := conn.Write([]byte(ask.String() + "\r\n")); err != nil {
		return &EgressError{Err: err}
	}
	answer, err := http.ReadResponse(bufio.NewReader(&bounded{conn, maxConnect}), &http.Request{Method: http.MethodConnect}) //nolint:bodyclose // it has none: what follows is the receiver's
	var late net.Error
	if errors.As(err, &late) && late.Timeout() { // it took the request and waits itself, for the receiver
		return fmt.Errorf("proxy: %w", err)
	}
	if err != nil {
		return &EgressError{Err: err}
	}
	switch answer.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout: // as proxies say that nobody is there
		return errUnreachable
	default:
		return &EgressError{Err: fmt.Errorf("it answers %s", answer.Status)}
	}
}

// bounded reads at most so many bytes of a connection, one at a time: what comes after a proxy's answer is the receiver's.
type bounded struct {
	from net.Conn
	left int
}

// Read reads one byte.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, errors.New("the answer is too long")
	}
	b.left--
	return b.from.Read(p[:min(1, len(p))])
}
