package main

import (
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/perpetua-exchange/perpetua/domain/identity"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/admin"
	"github.com/perpetua-exchange/perpetua/handlers/console"
	"github.com/perpetua-exchange/perpetua/handlers/live"
	"github.com/perpetua-exchange/perpetua/handlers/login"
	trade "github.com/perpetua-exchange/perpetua/handlers/trading"
	"github.com/perpetua-exchange/perpetua/handlers/web"
	"github.com/perpetua-exchange/perpetua/schemas"
	"github.com/perpetua-exchange/perpetua/streams/follow"
	"github.com/perpetua-exchange/perpetua/streams/journal"
)

// newRegistry returns a registry that knows the process and the Go runtime.
func newRegistry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// wire connects the handlers to what they serve from.
func (n *node) wire() error {
	proxies, err := n.settings.proxies()
	if err != nil {
		return err
	}
	e, err := web.New(web.Options{TrustedProxies: proxies, Logger: n.log.With("part", "http"), Metrics: n.metrics, ForwardKey: n.box.Derive("forward"), Quiet: n.quiet, Tracer: n.tracer})
	if err != nil {
		return err
	}
	identities := login.FromFold(n.identity)
	tokens := web.NewTokens(login.NewDirectory(identities), login.DefaultIssuer, time.Now)
	auth := web.NewAuth(tokens)

	n.hub = live.New(live.Config{Follower: n.trading, Journal: trading.Rules().Journal(), Tokens: tokens,
		Log: live.NewLog(n.client, trading.Rules(), 0), Logger: n.log.With("part", "live"), Seed: n.seeds[trading.Rules().Journal()]})
	n.metrics.MustRegister(n.hub.Collectors()...)
	n.metrics.MustRegister(newGauges(n))
	n.hub.Trace(n.tracer)

	if n.roles.api || n.roles.engine { // an owner answers what the others pass on to it
		login.New(login.Options{Identity: identities, Box: n.box, Issuer: login.DefaultIssuer, Now: time.Now}).Register(e)
		trade.New(n.tradingInterface(auth)).Register(e)
		admin.New(n.adminInterface(auth)).Register(e)
		if err := console.Register(e); err != nil {
			return err
		}
		e.GET("/asyncapi.yaml", func(c echo.Context) error {
			return c.Blob(http.StatusOK, "application/yaml", schemas.AsyncAPI)
		})
	}
	if n.roles.live {
		n.hub.Register(e)
	}
	n.peers = newPeers(n.journals, n.box)
	if n.roles.engine {
		e.POST(peerPath, n.peers.serve)
	}
	e.GET("/healthz", n.healthz)
	e.GET("/readyz", n.readyz)
	e.GET("/metrics", echo.WrapHandler(promhttp.HandlerFor(n.metrics, promhttp.HandlerOpts{})))
	// A slow body or reader holds a goroutine for no longer than this. Sockets lift the deadlines when they are upgraded.
	n.server = &http.Server{Handler: e, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second,
		WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute}
	return nil
}

// tradingInterface says what the trading interface serves from.
func (n *node) tradingInterface(auth *web.Auth) trade.Config {
	return trade.Config{
		Auth: auth, Journals: n.journals, Venue: n.trading, Records: trade.NewRecords(n.pool, n.rows[1]),
		Commands: []trade.CommandLog{
			trade.NewCommandLog(n.pool, "identity", n.rows[0]), trade.NewCommandLog(n.pool, "trading", n.rows[1]),
		},
		Now: time.Now,
	}
}

// adminInterface says what the operator's interface serves from.
func (n *node) adminInterface(auth *web.Auth) admin.Config {
	c := admin.Config{Auth: auth, Journals: n.journals, Venue: n.trading, Identity: n.identity, MAC: n.box.MAC,
		SealPassword: func(username, password string) (identity.Sealed, error) {
			return login.SealPassword(n.box, username, password)
		},
		NewSigningKey: func() (*identity.AddSigningKey, error) { return login.NewSigningKey(n.box) }}
	for i, fold := range []*follow.Fold{n.identity, n.trading} {
		name := journalNames()[i]
		tail := admin.NewTail(name, 0)
		if seed := n.seeds[name]; seed != nil {
			tail.Start(seed)
		}
		n.tails = append(n.tails, tail)
		fold.Listen(tail.Observe)
		c.Tails = append(c.Tails, tail)
		c.Readers = append(c.Readers,
			admin.Reader{Name: "fold", Journal: name, Position: fold.Position, Err: fold.Err},
			admin.Reader{Name: "projections", Journal: name, Position: n.rows[i].Position, Err: n.rows[i].Err})
	}
	return c
}

// state is the body of /healthz and /readyz.
type state struct {
	Status   string            `json:"status"`
	Journals map[string]string `json:"journals,omitempty"`
	// LogAway says since when a journal's log can't be read, or not be written by this node, which owns it.
	LogAway map[string]scalar.Time `json:"log_away,omitempty"`
}

// logAway returns since when the log of each journal is out of reach, nothing where all are there.
func (n *node) logAway(now time.Time) map[string]scalar.Time {
	away := make(map[string]scalar.Time)
	for _, name := range journalNames() {
		since, lost := n.client.Contact(name).Lost(now)
		if n.engine != nil {
			if at, stalled := n.engine.Stalled(name, 0); stalled && (!lost || at.Before(since)) {
				since, lost = at, true
			}
		}
		if lost {
			away[name] = scalar.TimeOf(since)
		}
	}
	return away
}

// healthz answers as long as the process lives.
func (n *node) healthz(c echo.Context) error {
	return c.JSON(http.StatusOK, state{Status: "ok"})
}

// readyz answers 200 once the node serves, and where its follower of each journal stands.
func (n *node) readyz(c echo.Context) error {
	s := state{Status: "starting", Journals: map[string]string{}}
	for name, at := range map[string]journal.Position{"identity": n.identity.Position(), "trading": n.trading.Position()} {
		s.Journals[name] = journal.LogPosition{Journal: name, Sequence: at.Sequence}.String()
	}
	s.LogAway = n.logAway(time.Now())
	if !n.ready.Load() {
		return c.JSON(http.StatusServiceUnavailable, s)
	}
	s.Status = "ready"
	return c.JSON(http.StatusOK, s)
}
