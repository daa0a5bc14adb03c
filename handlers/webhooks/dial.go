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

// Dialing configures connections to receivers.
type Dialing struct {
	Allowed []netip.Prefix // non-public networks that may be contacted
	Roots   *x509.CertPool // authorities for receivers' certificates; nil: the system's
	Proxy   *url.URL       // HTTP proxy for all connections; nil: none
	// Lookup resolves a name; nil for the system's resolver.
	Lookup func(ctx context.Context, name string) ([]netip.Addr, error)
}

const (
	connectWithin = 5 * time.Second
	shakeWithin   = 5 * time.Second
	idleFor       = 4 * time.Second // many receivers close idle connections after 5 seconds
	maxHeader     = 64 << 10
	maxConnect    = 4 << 10 // of a proxy's response
)

// ParseProxy parses the URL of an HTTP proxy. It returns nil for "".
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

// Client returns an HTTP client for receivers. It does not follow redirects, request compression or use a proxy from
// the environment. Idle connections are reused for a short time; each connection's address was checked when it was
// established and cannot change. A change of a receiver's DNS name is therefore checked at the next connection.
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

// staying removes the Location header from responses. http.Client parses Location even if it does not follow
// redirects, and fails if it is invalid.
type staying struct{ *http.Transport }

// RoundTrip implements http.RoundTripper.
func (s staying) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := s.Transport.RoundTrip(r)
	if response != nil {
		response.Header.Del("Location")
	}
	return response, err
}

// dial connects to a receiver. The HTTP client then performs the TLS handshake with the URL's host name.
func (d Dialing) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if d.Proxy != nil {
		return d.throughProxy(ctx, network, address)
	}
	// The dialer resolves the name and tries the addresses in order. ControlContext checks each address after the
	// resolution, immediately before the connection.
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

// throughProxy connects to the receiver through the proxy. It passes an address that was checked here, because the
// proxy's resolution of the name could not be checked.
func (d Dialing) throughProxy(ctx context.Context, network, address string) (net.Conn, error) {
	addresses, port, err := d.resolve(ctx, address)
	if err != nil {
		return nil, err
	}
	var failed, refused error
	for _, a := range addresses { // the proxy may reach only some of them, for example without IPv6
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

// EgressError means that the proxy for all connections cannot be reached or refuses to connect. The receiver is not
// responsible.
type EgressError struct{ Err error }

// Error returns the proxy's error.
func (e *EgressError) Error() string { return "proxy: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *EgressError) Unwrap() error { return e.Err }

// errUnreachable means that the proxy could not connect to the receiver.
var errUnreachable = errors.New("proxy: it finds no connection to the receiver")

// resolve returns at least one address for host:port, and the port.
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
		found[i] = a.Unmap() // the resolver may return IPv4 addresses only in mapped form
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

// shake performs the CONNECT handshake with the proxy. It ends with a time limit or with the request's context.
func (d Dialing) shake(ctx context.Context, conn net.Conn, to string) error {
	// Set the time limit before registering AfterFunc. In the other order, it could overwrite the deadline set at the
	// context's end, and a silent proxy would block until the time limit.
	_ = conn.SetDeadline(time.Now().Add(connectWithin + shakeWithin))
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := d.tunnel(conn, to); err != nil {
		return err
	}
	if !stop() { // the context has ended and AfterFunc sets the final deadline
		return ctx.Err()
	}
	return conn.SetDeadline(time.Time{})
}

// tunnel sends the CONNECT request and reads the response.
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
	if errors.As(err, &late) && late.Timeout() { // the proxy accepted the request and is waiting for the receiver
		return fmt.Errorf("proxy: %w", err)
	}
	if err != nil {
		return &EgressError{Err: err}
	}
	switch answer.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout: // the receiver is unreachable
		return errUnreachable
	default:
		return &EgressError{Err: fmt.Errorf("it answers %s", answer.Status)}
	}
}

// bounded reads at most left bytes from a connection, one byte per call, because the bytes after the proxy's response
// belong to the receiver.
type bounded struct {
	from net.Conn
	left int
}

// Read reads at most one byte.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, errors.New("the answer is too long")
	}
	b.left--
	return b.from.Read(p[:min(1, len(p))])
}
