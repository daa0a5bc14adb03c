package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/handlers/onboarding"
	"github.com/perpetua-exchange/perpetua/handlers/process"
	"github.com/perpetua-exchange/perpetua/handlers/webhooks"
	"github.com/perpetua-exchange/perpetua/streams/base"
	"github.com/perpetua-exchange/perpetua/streams/files"
	"github.com/perpetua-exchange/perpetua/streams/follow"
	"github.com/perpetua-exchange/perpetua/streams/history"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/seal"
	"github.com/perpetua-exchange/perpetua/streams/submit"
	"github.com/perpetua-exchange/perpetua/streams/transparency"
)

// build is the name of this build in its term records.
const build = "perpetua/1"

// Config configures a node.
type Config struct {
	Settings *settings.Settings
	Journals journals.Table
	Logger   *slog.Logger
	ID       string
	Roles    Roles
	Alone    bool // there are no other nodes: a role that this node lacks does not exist
	Brokers  []string
	Dial     Dial    // dials the brokers; nil for the default
	Network  Network // of this node's port and of the other nodes
	// Known are the sources that know positions of the log, first that of the rows. nil stands for the rows, the snapshots, and
	// the witnesses, and the rows then hold copies of the bases.
	Known       []journal.Known
	DatabaseURL func() string
	// Pool is a pool on DatabaseURL, which the node closes, and its caller too if Open fails. nil: the node opens one.
	Pool    *pgxpool.Pool
	Checked bool // projections.CheckSession has just accepted the sessions of DatabaseURL
	Box     *seal.Box
	Clock   journal.Clock // clock of this node's terms; nil for the system clock
	// Services returns an error if a service that this process runs for the node (the embedded broker) has failed for
	// good. It is nil if there is no such service.
	Services func() error
	// Trimmer deletes the beginnings of logs on the embedded broker. nil stands for that of Kafka.
	Trimmer base.Trimmer
	Quiet   func(*http.Request) bool // reports which requests need not be logged; nil for none
	// Follow makes the node follow a venue from outside; nil for a node of the venue.
	Follow *Following
}

// Dial opens a connection, like net.Dialer.DialContext.
type Dial = func(ctx context.Context, network, address string) (net.Conn, error)

// Network is how a node is reached by clients and other nodes, and how it reaches the other nodes. A nil function stands
// for that of package net.
type Network struct {
	Listen func(ctx context.Context, address string) (net.Listener, error)
	Dial   Dial
}

func (n Network) listen(ctx context.Context, address string) (net.Listener, error) {
	if n.Listen != nil {
		return n.Listen(ctx, address)
	}
	return (&net.ListenConfig{}).Listen(ctx, "tcp", address)
}

// Node is one process of the system.
type Node struct {
	Config
	stores    stores
	followers followers
	engine    engine
	serving   serving
	telemetry telemetry
	health    health
	compares  *comparison // nil if the node follows a venue
	fence     fencing
	managers  *process.Managers // nil without the role
	sender    *webhooks.Sender  // nil without the role
	logs      treeLogs
	policy    *transparency.Policy // of witnesses; nil if there are none
	past      *history.States      // the past states of all journals
	roots     *liabilityRoots
	archives  []archiver
	daily     dailyFiles
	keeping   sync.Mutex // held while a base is written to the data folder
	// keyOverlap is the time for which a webhook signs with both its old and its new key.
	keyOverlap time.Duration
}

// Open opens a node. Its port is open, but it serves and follows nothing before Run. The caller must close it.
func Open(ctx context.Context, c Config) (_ *Node, err error) {
	n := &Node{Config: c}
	defer func() {
		if err != nil {
			n.Close()
		}
	}()
	if n.telemetry, err = openTelemetry(ctx, c); err != nil {
		return nil, err
	}
	if n.stores, err = openStores(ctx, c, &n.telemetry); err != nil {
		return nil, err
	}
	if n.fence, err = openFencing(c, &n.stores, n.keysBelong); err != nil {
		return nil, err
	}
	if n.serving.listener, err = c.Network.listen(ctx, c.Settings.HTTP.Listen); err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	if n.serving.peers, err = openPeerPort(ctx, c.Settings, c.Network, c.Logger.With("part", "http")); err != nil {
		return nil, err
	}
	if n.engine, err = openOwning(c, &n.stores, n.URL(), func() string { return n.fence.watch.View().Audience() }); err != nil {
		return nil, err
	}
	if c.Follow == nil {
		n.compares = newComparison(c, &n.stores)
	}
	if n.followers, err = openFollowers(ctx, c, &n.stores, n.fence.mayWrite); err != nil {
		return nil, err
	}
	if n.policy, err = c.Settings.Witnesses(); err != nil {
		return nil, err
	}
	n.engine.learnFrom(n.followers)
	n.logs = n.transparencyLogs()
	n.past = n.pastStates()
	if n.archives, err = n.archivers(ctx); err != nil {
		return nil, err
	}
	if err = n.openDailyFiles(); err != nil {
		return nil, err
	}
	if n.roots, err = n.openLiabilities(); err != nil {
		return nil, err
	}
	if n.health.prober, err = newProber(ctx, n.stores.pool, c.Checked); err != nil {
		return nil, err
	}
	return n, n.wire()
}

// Fold returns the node's follower of a journal.
func (n *Node) Fold(name string) (*follow.Fold, error) {
	f, err := n.followers.of(name)
	if err != nil {
		return nil, err
	}
	return f.fold, nil
}

// Submitter submits commands to the owner of their journal, on any node. It is used for the commands that seed a venue.
func (n *Node) Submitter() submit.Submitter { return n.engine.commands }

// drain bounds the time that requests and connections have to end at a stop.
const drain = 10 * time.Second

// Run runs the node until the context ends or a part fails for good, and then stops in this order. Order entry over
// sockets ends first: closing a socket may cancel orders, which needs an engine. Then the engine answers the commands
// in flight and hands its journals over. Then the interfaces close; they send commands to the next owner as long as
// they are open. Then the followers stop. The port also closes after the engine because other engines take a closed
// port as a sign that the node has died.
func (n *Node) Run(ctx context.Context) error {
	// The followers must outlive the engine: its last answers wait until this process's reader has passed their
	// records, and a request with X-Min-Log-Position waits for the fold or the rows. So there are several contexts,
	// none of which ends with the caller's.
	following, stopFollowing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopFollowing()
	owning, stopOwning := context.WithCancel(following)
	defer stopOwning()
	sending, stopSending := context.WithCancel(following)
	defer stopSending()

	// The fence is watched until the last snapshot and witness are written, which depend on it.
	fencing, stopFencing := context.WithCancel(context.WithoutCancel(ctx))
	var fenced sync.WaitGroup
	fenced.Go(func() { n.fence.run(fencing) })
	defer fenced.Wait()
	defer stopFencing()

	g, failed := errgroup.WithContext(ctx)
	for _, t := range n.tasks() {
		g.Go(func() error {
			err := t.run(following)
			if err == nil || following.Err() != nil && errors.Is(err, context.Canceled) {
				return nil
			}
			return fmt.Errorf("%s: %w", t.name, err)
		})
	}
	disowned := make(chan struct{})
	g.Go(func() error {
		defer close(disowned)
		return n.own(owning)
	})
	sent := make(chan struct{})
	g.Go(func() error {
		defer close(sent)
		if n.sender == nil || !n.compares.waitAsked(sending) {
			return nil
		}
		return n.fence.watch.While(sending, n.sender.Run)
	})
	g.Go(n.serving.serve)
	g.Go(n.serving.servePeers)
	g.Go(func() error {
		<-failed.Done() // ctx has ended or one of the goroutines above has failed
		n.health.phase.Store(stopping)
		n.Logger.Info("stopping")
		if ctx.Err() != nil { // after a failure there is no wait
			// While this node may still be the owner: the owner decides orders from sockets and the cancellations at
			// their end.
			n.serving.hub.Part(following)
		}
		stopSending()
		<-sent // before the engine stops, which records the last attempts
		stopOwning()
		<-disowned // before the port closes: the other engines would take a closed port for a dead node and take its journals
		n.serving.shutdown(ctx, n.engine.served, n.Logger)
		// No request waits for a position any more. The last records that the engine appended are still followed, so
		// that the witnesses name them: nothing else outside of the log may know of them yet.
		n.followers.catchUp(ctx)
		stopFollowing()
		return nil
	})
	err := g.Wait()
	// The folds have stopped, so the saved positions are the last ones that this node has read.
	n.followers.save(ctx)
	return err
}

// own waits for the comparison of the journals, and then decides commands until the context ends.
func (n *Node) own(ctx context.Context) error {
	if !n.compares.waitAsked(ctx) {
		return nil
	}
	return n.engine.run(ctx)
}

// task is a function that runs until the context ends.
type task struct {
	name string
	run  func(context.Context) error
}

// tasks returns the tasks that run until the interfaces have closed.
func (n *Node) tasks() []task {
	tasks := []task{{"debug", n.telemetry.debug.serve}, {"watch itself", n.watch},
		{"uses of API keys", n.serving.uses.Run}}
	if n.Follow == nil {
		tasks = append(tasks, task{"watch the topics", n.watchTopics})
	}
	if n.Roles.Engine {
		tasks = append(tasks, task{"replace signing keys that were copied", n.replaceKeys})
	}
	if n.compares != nil {
		tasks = append(tasks, task{"compare the log with what is known of it", n.compares.run})
	}
	for _, f := range n.followers {
		tasks = append(tasks, f.tasks(n.Roles, n.Logger, n.compares)...)
	}
	for _, l := range n.logs {
		if n.Roles.TLog {
			tasks = append(tasks, task{"transparency log of " + l.Name(), n.whileItActs(l.Run)})
		}
	}
	if n.Roles.History {
		tasks = append(tasks, n.historyMakers()...)
	}
	if n.Roles.Liabilities {
		tasks = append(tasks, task{"state liabilities", n.whileItActs(n.roots.follower.Run)})
	}
	for _, a := range n.archives {
		if n.Roles.Archive {
			tasks = append(tasks, task{"archive " + a.journal, n.whileItActs(a.Run)})
			if a.lake != nil {
				tasks = append(tasks, task{"fill the DuckLake catalog from " + a.journal, n.whileItActs(a.lake.Run)})
			}
		}
	}
	if n.daily.maker != nil {
		tasks = append(tasks, task{"make the daily files of market data", n.whileItActs(n.daily.maker.Run)})
	}
	if n.Config.Known == nil && n.Follow == nil {
		tasks = append(tasks, task{"copy the heads of archives and the bases", n.copyHeads}, task{"check the archives", n.checkArchives})
	}
	if n.Roles.Live {
		tasks = append(tasks, task{"live", n.serving.hub.Run})
	}
	if n.managers != nil {
		tasks = append(tasks, task{"process", n.whileItActs(n.managers.Run)})
	}
	if n.trims() {
		tasks = append(tasks, task{"trim the logs", n.whileItActs(n.trimLogs)})
	}
	if n.dropsHistory() {
		tasks = append(tasks, task{"drop old history", n.whileItActs(n.dropHistory)})
	}
	if n.Roles.API && n.Follow == nil {
		tasks = append(tasks, task{"files that nobody needs", n.whileItActs(n.sweepFiles)})
	}
	return tasks
}

// sweepFiles removes uploaded files that no document needs, until the context ends.
func (n *Node) sweepFiles(ctx context.Context) error {
	owners, err := n.followers.of(journals.Onboarding)
	if err != nil {
		return err
	}
	s := files.Sweeper{Store: n.stores.files, Journal: onboarding.FilesOf(owners.fold, n.engine.commands), Logger: n.Logger.With("part", "files"),
		May: n.fence.watch.Check, Now: n.stores.earlierTime}
	return s.Run(ctx)
}

// Close releases the resources of Open. It must be called after Run has returned, or without Run.
func (n *Node) Close() {
	n.serving.close()
	n.engine.close()
	n.health.close()
	n.stores.close()
	n.telemetry.close(n.Logger)
}
