package rest

import (
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/handlers/web/access"
)

// proxies determines the addresses of clients, and warns of an untrusted proxy: the address of all its clients is
// the proxy's, so they share one rate limit, or have none if the proxy's address is loopback.
type proxies struct {
	trusted []*net.IPNet
	logger  *slog.Logger
	now     func() time.Time

	mu       sync.Mutex
	warnings access.Bucket
}

// warningInterval is the shortest time between two warnings. Any client can cause one, so they are few.
const warningInterval = time.Hour

// newProxies returns the proxies of a server with the options.
func newProxies(o Options, now func() time.Time) *proxies {
	return &proxies{trusted: o.TrustedProxies, logger: o.Logger, now: now, warnings: access.NewBucket(1/warningInterval.Seconds(), 1, now())}
}

// addresses returns the function that determines a request's address. Without trusted proxies, it is the connection's
// peer: a client must not be able to choose the address under which failed logins are counted.
func (p *proxies) addresses() echo.IPExtractor {
	if len(p.trusted) == 0 {
		return echo.ExtractIPDirect()
	}
	options := []echo.TrustOption{echo.TrustLoopback(false), echo.TrustLinkLocal(false), echo.TrustPrivateNet(false)}
	for _, n := range p.trusted {
		options = append(options, echo.TrustIPRange(n))
	}
	return echo.ExtractIPFromXFFHeader(options...)
}

// check logs a warning, at most once an hour, if an untrusted peer sends the client's address.
func (p *proxies) check(r *http.Request) {
	name := echo.HeaderXForwardedFor
	if header(r, name) == "" {
		if name = "Forwarded"; header(r, name) == "" {
			return
		}
	}
	peer, _, _ := net.SplitHostPort(r.RemoteAddr)
	if ip := net.ParseIP(peer); ip == nil || slices.ContainsFunc(p.trusted, func(n *net.IPNet) bool { return n.Contains(ip) }) {
		return
	}
	p.mu.Lock()
	warn := p.warnings.Take(p.now())
	p.mu.Unlock()
	if warn {
		p.logger.WarnContext(r.Context(), "a header with the client's address is ignored, because its sender is not a trusted proxy; if it is a proxy, "+
			"name its network in --trusted-proxies, or the rate limit and the address lists of API keys see one address for all its clients",
			"peer", peer, "header", name)
	}
}
