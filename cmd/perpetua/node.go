package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/identity"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/admin"
	"github.com/perpetua-exchange/perpetua/handlers/live"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/streams/follow"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/ownership"
	"github.com/perpetua-exchange/perpetua/streams/seal"
	"github.com/perpetua-exchange/perpetua/streams/trace"
)

// build names this build in the terms that it takes.
const build = "perpetua/1"

// node is one process of the system, in whatever roles: it owns journals, follows them, projects them and serves
// them. It is given its Kafka and Postgres, and does not care whether they are embedded.
type node struct {
	settings *settings
	log      *slog.Logger
	id       string
	roles    roles
	alone    bool // no other node is there: what this one lacks, nobody does

	client   *journal.Client
	engine   *ownership.Node // nil without the role
	journals owners
	peers    *peers
	terms    *terms
	saved    *snapshots
	tails    []*admin.Tail            // by journal, identity first
	seeds    map[string]*journal.Seed // that the folds start from, by journal, where there are any
	identity *follow.Fold
	trading  *follow.Fold
	pool     *pgxpool.Pool
	runners  []*projections.Runner // by journal, identity first; they run where the node has the role
	rows     []readModels          // where the rows of each journal stand
	hub      *live.Hub
	box      *seal.Box
	quiet    func(*http.Request) bool
	metrics  *prometheus.Registry
	tracer   *trace.Tracer // nil unless asked for

	listener net.Listener
	server   *http.Server
	debug    *debugServer // nil unless asked for
	ready    atomic.Bool
}

// owners is how commands get to whoever owns a journal: this node, or by way of it another.
type owners interface {
	journal.Submitter
	// Owner returns the URL of the node that the group of engines has assigned a partition to, or "".
	Owner(ctx context.Context, name string, partition int32) (string, error)
	Close()
}

// readModels tells where the rows of a journal stand: a runner of them in this process, or a watch of the database.
type readModels interface {
	Wait(ctx context.Context, sequence int64) error
	Position() journal.Position
	Err() error
}

// nodeConfig is what a node needs of whoever starts it.
type nodeConfig struct {
	settings    *settings
	log         *slog.Logger
	id          string
	roles       roles
	alone       bool
	brokers     []string
	dial        func(ctx context.Context, network, addr string) (net.Conn, error) // to the brokers; nil for the usual way
	databaseURL func() string
	box         *seal.Box
	quiet       func(*http.Request) bool // requests that the log need not tell of; nil for none
}

// openNode makes a node: it listens, but serves and follows nothing before run.
func openNode(ctx context.Context, c nodeConfig) (_ *node, err error) {
	n := &node{settings: c.settings, log: c.log, id: c.id, roles: c.roles, alone: c.alone, box: c.box, quiet: c.quiet, metrics: newRegistry()}
	defer func() {
		if err != nil {
			n.close()
		}
	}()
	if n.tracer, err = openTracer(ctx, c, n.metrics); err != nil {
		return nil, err
	}
	options, err := kafkaOptions(c.settings)
	if err != nil {
		return nil, err
	}
	if c.dial != nil && !c.settings.KafkaTLS {
		options = append(options, kgo.Dialer(c.dial))
	}
	measured := journal.NewMetrics()
	n.client, err = journal.NewClient(journal.Config{Brokers: c.brokers, Prefix: c.settings.TopicPrefix, Options: options,
		Logger: c.log.With("part", "journal"), Metrics: measured, Tracer: n.tracer})
	if err != nil {
		return nil, err
	}
	n.metrics.MustRegister(measured)
	if n.pool, err = projections.OpenMoving(ctx, c.databaseURL); err != nil {
		return nil, err
	}
	if n.listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", c.settings.Listen); err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	if c.settings.DebugListen != "" {
		if n.debug, err = listenDebug(ctx, c.settings.DebugListen); err != nil {
			return nil, err
		}
	}
	if n.saved, err = openSnapshots(ctx, c.settings, c.box, c.log.With("part", "snapshot")); err != nil {
		return nil, err
	}
	n.metrics.MustRegister(n.saved.store)
	if err := n.joinOwners(); err != nil {
		return nil, err
	}
	if err := n.startFolds(ctx); err != nil {
		return nil, err
	}
	n.runners = []*projections.Runner{
		projections.NewRunner(n.pool, n.client, identity.Rules(), projectionsOf("identity")...),
		projections.NewRunner(n.pool, n.client, trading.Rules(), projectionsOf("trading")...),
	}
	for i, r := range n.runners {
		n.metrics.MustRegister(r)
		if n.roles.projector {
			n.rows = append(n.rows, r)
		} else {
			n.rows = append(n.rows, projections.Watch{Pool: n.pool, Journal: journalNames()[i]})
		}
	}
	return n, n.wire()
}

// startFolds makes the followers of the journals, each from the newest snapshot.
func (n *node) startFolds(ctx context.Context) error {
	n.seeds = make(map[string]*journal.Seed)
	for _, f := range []struct {
		fold  **follow.Fold
		rules decide.Rules
	}{{&n.identity, identity.Rules()}, {&n.trading, trading.Rules()}} {
		fold, seed, err := n.saved.fold(ctx, n.client, f.rules, n.id)
		if err != nil {
			return err
		}
		*f.fold = fold
		if seed != nil {
			n.seeds[f.rules.Journal()] = seed
		}
	}
	n.terms = newTerms(n.seeds, n.identity, n.trading)
	return nil
}

// joinOwners makes the node one of the owners, or one that only finds them.
func (n *node) joinOwners() (err error) {
	if !n.roles.engine {
		n.journals, err = ownership.NewFinder(n.client, journalNames()...)
		return err
	}
	n.engine, err = ownership.New(ownership.Config{Client: n.client, NodeID: n.id, URL: n.url(), Build: build,
		Rules: rulesOfJournals(), Known: []journal.Known{knownToPostgres{n.pool}, n.saved.store}, Seed: n.saved.seed})
	if err != nil {
		return err
	}
	n.journals = n.engine
	return nil
}

// url returns the address under which other nodes reach this one.
func (n *node) url() string {
	if n.settings.Advertise != "" {
		return strings.TrimSuffix(n.settings.Advertise, "/")
	}
	return "http://" + n.listener.Addr().String()
}

// localURL returns an address of this node for clients in the same process, whatever others are told.
func (n *node) localURL() string {
	addr := n.listener.Addr().(*net.TCPAddr)
	if addr.IP.IsUnspecified() {
		return fmt.Sprintf("http://localhost:%d", addr.Port)
	}
	return "http://" + addr.String()
}

// knownToPostgres tells owners which positions the read models remember.
type knownToPostgres struct{ pool *pgxpool.Pool }

// Positions returns the checkpoints and anchors of a partition.
func (k knownToPostgres) Positions(ctx context.Context, name string, partition int32) ([]journal.Position, error) {
	return projections.Known(ctx, k.pool, name, partition)
}

// drain is how long requests and connections may take to end at a stop.
const drain = 10 * time.Second

// run works until the context ends or something fails for good, and then stops in order: first the engine, which
// answers what it has in flight and hands its journals over, then the interfaces, which until then pass requests on to
// the next owner, then those who follow. The port closes last for one more reason: by it the other engines tell a node
// that has died from one that is stopping.
func (n *node) run(ctx context.Context) error {
	following, stopFollowing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopFollowing()
	owning, stopOwning := context.WithCancel(following)
	defer stopOwning()

	g, failed := errgroup.WithContext(ctx)
	follow := func(what string, run func(context.Context) error) {
		g.Go(func() error {
			err := run(following)
			if err == nil || following.Err() != nil && errors.Is(err, context.Canceled) {
				return nil
			}
			return fmt.Errorf("%s: %w", what, err)
		})
	}
	follow("pace the collector", paceCollector)
	if n.debug != nil {
		follow("debug", n.debug.serve)
	}
	follow("follow identity", n.identity.Run)
	follow("follow trading", n.trading.Run)
	follow("fill the tails", n.fillTails)
	for _, m := range n.saved.makers {
		follow("save", m.Run)
	}
	if n.roles.live {
		follow("live", n.hub.Run)
	}
	if n.roles.projector {
		for _, r := range n.runners {
			follow("project", r.Run)
		}
	}
	disowned := make(chan struct{})
	if n.roles.engine {
		g.Go(func() error {
			defer close(disowned)
			if err := n.engine.Run(owning); err != nil {
				return fmt.Errorf("engine: %w", err)
			}
			return nil
		})
	} else {
		close(disowned)
	}
	g.Go(func() error {
		if err := n.server.Serve(n.listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve: %w", err)
		}
		return nil
	})
	g.Go(func() error {
		<-failed.Done() // of ctx, or of any of the above
		n.ready.Store(false)
		n.log.Info("stopping")
		stopOwning()
		<-disowned
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
		defer cancel()
		n.hub.Close(ending)
		err := n.server.Shutdown(ending)
		if err != nil {
			n.log.Warn("some requests were cut off", "error", err)
			n.server.Close()
		}
		stopFollowing()
		return nil
	})
	err := g.Wait()
	n.saved.stop(ctx)
	return err
}

// close releases what openNode took. It is called after run, or instead of it.
func (n *node) close() {
	if n.server != nil {
		n.server.Close()
	}
	if n.listener != nil {
		n.listener.Close()
	}
	n.debug.close()
	n.closeTracer()
	if n.journals != nil {
		n.journals.Close()
	}
	if n.pool != nil {
		n.pool.Close()
	}
	if n.saved != nil {
		n.saved.close()
	}
	if n.client != nil {
		n.client.Close()
	}
}
