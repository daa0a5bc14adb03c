package node

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/version"
	"github.com/perpetua-exchange/perpetua/domain/identity"
	"github.com/perpetua-exchange/perpetua/handlers/admin"
	"github.com/perpetua-exchange/perpetua/handlers/apikeys"
	"github.com/perpetua-exchange/perpetua/handlers/console"
	"github.com/perpetua-exchange/perpetua/handlers/docs"
	"github.com/perpetua-exchange/perpetua/handlers/intake"
	"github.com/perpetua-exchange/perpetua/handlers/live"
	"github.com/perpetua-exchange/perpetua/handlers/login"
	"github.com/perpetua-exchange/perpetua/handlers/marketdata"
	"github.com/perpetua-exchange/perpetua/handlers/onboarding"
	"github.com/perpetua-exchange/perpetua/handlers/process"
	"github.com/perpetua-exchange/perpetua/handlers/proofpage"
	"github.com/perpetua-exchange/perpetua/handlers/tlog"
	trade "github.com/perpetua-exchange/perpetua/handlers/trading"
	"github.com/perpetua-exchange/perpetua/handlers/web/access"
	"github.com/perpetua-exchange/perpetua/handlers/web/asof"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/handlers/web/proofs"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/handlers/web/rows"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/peer"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// wire creates the handlers and connects them to their data sources.
func (n *Node) wire() error {
	identities, err := n.followers.of(journals.Identity)
	if err != nil {
		return err
	}
	venue, err := n.followers.of(journals.Trading)
	if err != nil {
		return err
	}
	owners, err := n.followers.of(journals.Onboarding)
	if err != nil {
		return err
	}
	server, forSockets, err := n.servers()
	if err != nil {
		return err
	}
	e := server.Echo
	// Requests read the fold as soon as the server runs, and until Run starts the fold it is at its beginning. It then
	// contains no users, so no request is authorized.
	tokens := access.NewTokens(login.NewDirectory(identities.fold), login.DefaultIssuer, time.Now)
	if n.Follow == nil {
		tokens.For(n.audience)
	} else {
		// The keys in the venue's identity journal suffice: a copy of the venue signs with other keys.
		tokens.RefuseKeys()
	}
	tokens.Follows(identities.fold)
	tokens.MayLack(n.starting)
	if n.engine.served != nil {
		n.engine.served.JudgedBy(tokens.Judge)
	}
	auth := rest.NewAuth(tokens)
	auth.ReadsFrom(n.sources())
	perSecond, burst, err := n.Settings.PublicRateLimit()
	if err != nil {
		return err
	}
	networks := access.NewNetworks(perSecond, burst, time.Now)
	for _, s := range []*rest.Server{server, forSockets} {
		s.LimitRequests(auth, networks, rulesPath, termPath, peer.Path, olderPath)
	}
	n.serving.uses = apikeys.NewUses(n.engine.commands, n.Logger.With("part", "api keys"))
	tokens.Used(n.serving.uses.Note)

	// The hub is created before Run, like everything that listens to a fold: a socket must receive every record after
	// the state that it starts with.
	n.serving.hub = live.New(live.Config{Follower: venue.fold, Journal: venue.Name(), Tokens: tokens, Changes: login.Changes{Follower: identities.fold}, Answered: auth,
		Log: live.NewLog(n.stores.client, venue.Rules, 0, n.followers.marksOf(venue.Name())), REST: forSockets, Nodes: n.engine.commands,
		Logger: n.Logger.With("part", "live"), Seed: venue.seed, Compression: n.Settings.HTTP.Deflate, ReadOnly: n.Follow.refusal(), Networks: networks})
	n.serving.hub.Trace(n.telemetry.tracer)
	if n.Roles.Process {
		n.managers = process.New(process.Config{Onboarding: owners.fold, Trading: venue.fold, Journals: n.engine.commands, Keys: n.stores.owners,
			Files: blob.NewStore(n.stores.snapshots.bucket), Logger: n.Logger.With("part", "process")})
		n.telemetry.metrics.MustRegister(n.managers.Collectors()...)
	}
	if err := n.wireSender(owners); err != nil {
		return err
	}
	n.measure()

	states := asof.NewStates(n.past) // shared, so that one who asks has one turn at all interfaces
	interfaces := trade.New(n.tradingInterface(auth, venue, states))
	interfaces.Register(forSockets)
	if n.Roles.API || n.Roles.Engine { // an engine serves REST too, so that it can be operated without an API node
		login.New(login.Options{Identity: identities.fold, Box: n.Box, Issuer: login.DefaultIssuer, Audience: n.audience, Now: time.Now,
			PasswordMemory: n.Settings.PasswordMemory, Starting: n.starting}).Register(e)
		apikeys.New(apikeys.Config{Auth: auth, Journals: n.engine.commands, Identity: identities.fold, Venue: venue.fold}).Register(e)
		from, err := n.onboardingInterface(auth, owners, states)
		if err != nil {
			return err
		}
		clients := onboarding.New(from)
		clients.Register(e)
		reads := slices.Concat(clients.Operated(admin.Base), interfaces.Operated(admin.Base))
		operator := n.adminInterface(auth, reads, venue, identities, owners)
		operator.VenueAsOf, operator.OnboardingAsOf = interfaces.AsOf(), clients.AsOf()
		admin.New(operator).Register(e)
		tlog.Register(e, n.tlogInterface(auth))
		marketdata.Register(e, n.dataInterface(venue))
		if err := console.Register(e); err != nil {
			return err
		}
		if err := intake.Register(e); err != nil {
			return err
		}
		if err := proofpage.Register(e); err != nil {
			return err
		}
		if err := docs.Register(e); err != nil {
			return err
		}
	}
	n.registerOwn(e)
	log := n.Logger.With("part", "http")
	n.serving.full = tellFull(log)
	n.serving.handle(e, n.engine.served != nil, log)
	return nil
}

// servers returns the server of the node's port, and the REST interface that its sockets use, for example to enter
// orders. They are the same if the node serves the REST interface; otherwise the sockets have a separate one.
func (n *Node) servers() (e, forSockets *rest.Server, err error) {
	proxies, err := n.Settings.TrustedProxies()
	if err != nil {
		return nil, nil, err
	}
	options := rest.Options{TrustedProxies: proxies, CORSOrigins: n.Settings.CORSOrigins(), Logger: n.Logger.With("part", "http"),
		Metrics: n.telemetry.metrics, Quiet: n.Quiet, Tracer: n.telemetry.tracer,
		Polled: []string{termPath, peer.Path}, ReadOnly: n.readOnly()}
	if e, err = rest.New(options); err != nil || n.Roles.API || n.Roles.Engine {
		return e, e, err
	}
	options.Metrics = nil // metrics can be registered only once
	forSockets, err = rest.New(options)
	return e, forSockets, err
}

// registerOwn registers the routes about the node itself, its sockets, and the routes for other nodes.
func (n *Node) registerOwn(e *echo.Echo) {
	if n.Roles.Live {
		n.serving.hub.Register(e)
	}
	if n.Roles.Engine {
		e.GET(rulesPath, serveRules(n.Journals))
		e.POST(termPath, termServer{n.engine.engine, newTermKey(n.Box)}.serve)
		e.POST(peer.Path, echo.WrapHandler(n.engine.served))
		e.POST(olderPath, refuseOlder)
	}
	e.GET("/healthz", n.healthz)
	e.GET("/readyz", n.readyz)
	e.GET("/metrics", echo.WrapHandler(promhttp.HandlerFor(n.telemetry.metrics, promhttp.HandlerOpts{})))
}

// measure registers the metrics of the node's parts.
func (n *Node) measure() {
	n.telemetry.metrics.MustRegister(n.serving.hub.Collectors()...)
	for _, f := range n.followers {
		n.telemetry.metrics.MustRegister(f.runner)
	}
	if n.engine.streams != nil {
		n.telemetry.metrics.MustRegister(n.engine.streams.Collectors()...)
	}
	if n.Follow != nil {
		n.telemetry.metrics.MustRegister(newFollowMetrics(n))
	}
	if n.engine.engine != nil {
		n.telemetry.metrics.MustRegister(n.engine.engine.Collectors()...)
	}
	n.telemetry.metrics.MustRegister(newGauges(n), newTreeGauges(n), newArchiveMetrics(n), newDailyMetrics(n), buildInfo(version.Current()))
}

// tradingInterface returns the configuration of the trading interface.
func (n *Node) tradingInterface(auth *rest.Auth, venue *follower, states *asof.States) trade.Config {
	c := trade.Config{Auth: auth, Journals: n.engine.commands, Venue: venue.fold, Rows: n.rowsOf(venue), Past: n.past, States: states, Proofs: n.roots.prover, Now: time.Now, Version: version.Current().Version,
		Receipts: n.receipts(venue), Roots: n.logs}
	sockets := live.DefaultLimits()
	c.Sockets = trade.SocketLimits{MessageBytes: trade.Limit(sockets.MessageBytes), Subscriptions: trade.Limit(sockets.Subscriptions),
		RequestsPerSecond: trade.Limit(sockets.RequestsPerSecond), RequestBurst: trade.Limit(sockets.RequestBurst),
		QueuedMessages: trade.Limit(sockets.QueueMessages), QueuedBytes: trade.Limit(sockets.QueueBytes),
		OrdersUnderWay: trade.Limit(sockets.Entries), ResumeRecords: trade.Limit(sockets.ResumeRecords)}
	for _, f := range n.followers {
		c.Commands = append(c.Commands, n.rowsOf(f))
		c.Folds = append(c.Folds, trade.Fold{Journal: f.Name(), Follower: f.fold})
	}
	return c
}

// onboardingInterface returns the configuration of the onboarding interface.
func (n *Node) onboardingInterface(auth *rest.Auth, owners *follower, states *asof.States) (onboarding.Config, error) {
	scanner, badScanner := n.Settings.Scanner()
	lifetime, badLifetime := n.Settings.Lifetime()
	return onboarding.Config{Auth: auth, Journals: n.engine.commands, Onboarding: owners.fold, Past: n.past, States: states, Rows: n.rowsOf(owners), Owners: n.stores.owners, Box: n.Box,
		KeyOverlap: n.keyOverlap, Now: time.Now, Files: n.stores.files, Scanner: scanner, LinkLifetime: lifetime, Audience: n.audience,
		Receipts: n.receipts(owners), Roots: n.logs}, errors.Join(badScanner, badLifetime)
}

// receipts returns the source of the receipts of a journal.
func (n *Node) receipts(f *follower) proofs.Source {
	for _, l := range n.logs {
		if l.follower == f {
			return l
		}
	}
	return nil
}

// sources returns the data sources of the interfaces, by journal.
func (n *Node) sources() map[string][]operation.Positioned {
	sources := make(map[string][]operation.Positioned, len(n.followers))
	for _, f := range n.followers {
		sources[f.Name()] = []operation.Positioned{f.fold, f.rows}
	}
	return sources
}

// rowsOf returns the source of a journal's rows.
func (n *Node) rowsOf(f *follower) rows.Source {
	return rows.Source{Journal: f.Name(), DB: n.stores.reads, Waiter: f.rows}
}

// adminInterface returns the configuration of the operator's interface.
func (n *Node) adminInterface(auth *rest.Auth, reads []rest.Route, venue, identities, owners *follower) admin.Config {
	c := admin.Config{Auth: auth, Journals: n.engine.commands, Venue: venue.fold, Identity: identities.fold, People: n.rowsOf(identities), MAC: n.Box.MAC, Now: time.Now,
		Onboarding: owners.fold, Owners: n.stores.owners, Box: n.Box, Reads: reads,
		SealPassword: func(username, password string) (identity.Sealed, error) {
			return login.SealPassword(n.Box, username, password, n.Settings.PasswordMemory)
		},
		NewSigningKey: func() (*identity.AddSigningKey, error) { return login.NewSigningKey(n.Box) },
		Nodes:         func(ctx context.Context) ([]admin.Node, error) { return n.engine.rules(ctx, n.URL()) }, NextCheckpointKey: n.nextCheckpointKey}
	c.Folds = make(map[string]record.Follower, len(n.followers))
	for _, f := range n.followers {
		c.Folds[f.Name()] = f.fold
		c.Tails = append(c.Tails, f.tail)
		c.Readers = append(c.Readers,
			admin.Reader{Name: "fold", Journal: f.Name(), Position: f.fold.Position, Err: f.fold.Err},
			admin.Reader{Name: "projections", Journal: f.Name(), Position: f.rows.Position, Err: f.rows.Err})
	}
	return c
}
