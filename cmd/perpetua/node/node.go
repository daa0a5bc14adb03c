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

	"golang.org/x/sync/errgroup"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/handlers/onboarding"
	"github.com/perpetua-exchange/perpetua/handlers/process"
	"github.com/perpetua-exchange/perpetua/handlers/webhooks"
	"github.com/perpetua-exchange/perpetua/streams/files"
	"github.com/perpetua-exchange/perpetua/streams/follow"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/seal"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// build names this build in the terms that it takes.
const build = "perpetua/1"

// Config is what a node is started with.
type Config struct {
	Settings    *settings.Settings
	Journals    journals.Table
	Logger      *slog.Logger
	ID          string
	Roles       Roles
	Alone       bool // no other node is there: what this one lacks, nobody does
	Brokers     []string
	Dial        func(ctx context.Context, network, addr string) (net.Conn, error) // to the brokers; nil for the usual way
	DatabaseURL func() string
	Box         *seal.Box
	Clock       journal.Clock // of this node's terms; nil for the machine's
	// Services returns why what this process itself runs for the node has failed for good: the embedded broker. nil for none.
	Services func() error
	Quiet    func(*http.Request) bool // requests that the log need not tell of; nil for none
}

// Node is one process of the system.
type Node struct {
	Config
	stores    stores
	followers followers
	owning    owning
	serving   serving
	telemetry telemetry
	health    health
	fence     fencing
	managers  *process.Managers // nil without the role
	sender    *webhooks.Sender  // nil without the role
	// keyOverlap is how long a webhook's old and new key sign both.
	keyOverlap time.Duration
}

// Open makes a node: it listens, but serves and follows nothing before Run. The caller closes it.
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
	if n.serving.listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", c.Settings.Listen); err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	if n.owning, err = openOwning(c, &n.stores, n.URL()); err != nil {
		return nil, err
	}
	if n.followers, err = openFollowers(ctx, c, &n.stores, n.fence.mayWrite); err != nil {
		return nil, err
	}
	n.owning.learnFrom(n.followers)
	if n.health.prober, err = newProber(ctx, n.stores.pool); err != nil {
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

// Submitter takes the commands that make a venue, for whichever node owns their journal.
func (n *Node) Submitter() submit.Submitter { return n.owning.peers }

// drain is how long requests and connections may take to end at a stop.
const drain = 10 * time.Second

// Run works until the context ends or something fails for good, and then stops in order: first order entry over sockets,
// whose end may cancel orders, which takes an engine; then the engine, which answers what it has in flight and hands its
// journals over; then the interfaces, which until then pass requests on to the next owner; then those who follow. The port
// closes last for one more reason: by it the other engines tell a node that has died from one that is stopping.
func (n *Node) Run(ctx context.Context) error {
	// What follows must outlive the engine's stop: the answers that it still gives are held until the reader of this
	// process has passed their records, and a request with X-Min-Log-Position waits for the fold or the rows. Hence more
	// contexts, none of which ends with the caller's.
	following, stopFollowing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopFollowing()
	owning, stopOwning := context.WithCancel(following)
	defer stopOwning()
	sending, stopSending := context.WithCancel(following)
	defer stopSending()

	// The fence is watched until the last snapshot and witness are written, which need it.
	fencing, stopFencing := context.WithCancel(context.WithoutCancel(ctx))
	var fenced sync.WaitGroup
	fenced.Go(func() { n.fence.watch.Run(fencing) })
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
		return n.owning.run(owning)
	})
	sent := make(chan struct{})
	g.Go(func() error {
		defer close(sent)
		if n.sender == nil {
			return nil
		}
		return n.fence.watch.While(sending, n.sender.Run)
	})
	g.Go(n.serving.serve)
	g.Go(func() error {
		<-failed.Done() // of ctx, or of any of the above
		n.health.phase.Store(stopping)
		n.Logger.Info("stopping")
		if ctx.Err() != nil { // else something has failed, and nothing is waited for
			n.serving.hub.Part(following) // while this node may still be the owner, who decides what comes over sockets and what their end cancels
		}
		stopSending()
		<-sent // before the engine goes, which records the last attempts
		stopOwning()
		<-disowned // before the port closes: a closed port says that this node died, and would cost it its journals unasked
		n.serving.shutdown(ctx, n.Logger)
		// Nobody waits for a position any more. What the engine appended last is still followed to its end, so that the
		// witnesses name it: nothing else outside of the log may know of it yet.
		n.followers.catchUp(ctx)
		stopFollowing()
		return nil
	})
	err := g.Wait()
	// The folds stand still, so that what is saved is the end of what this node has seen.
	n.followers.save(ctx)
	return err
}

// task is something that runs until the context ends.
type task struct {
	name string
	run  func(context.Context) error
}

// tasks are what runs until the interfaces have closed.
func (n *Node) tasks() []task {
	tasks := []task{{"pace the collector", paceCollector}, {"debug", n.telemetry.debug.serve}, {"watch itself", n.watch},
		{"uses of API keys", n.serving.uses.Run}}
	if n.Roles.Engine {
		tasks = append(tasks, task{"replace signing keys that were copied", n.replaceKeys})
	}
	for _, f := range n.followers {
		tasks = append(tasks, f.tasks(n.Roles, n.Logger)...)
	}
	if n.Roles.Live {
		tasks = append(tasks, task{"live", n.serving.hub.Run})
	}
	if n.managers != nil {
		tasks = append(tasks, task{"process", n.whileItActs(n.managers.Run)})
	}
	if n.Roles.API {
		tasks = append(tasks, task{"files that nobody needs", n.whileItActs(n.sweepFiles)})
	}
	return tasks
}

// sweepFiles removes uploaded files that no document has, until the context ends.
func (n *Node) sweepFiles(ctx context.Context) error {
	owners, err := n.followers.of(journals.Onboarding)
	if err != nil {
		return err
	}
	s := files.Sweeper{Store: n.stores.files, Journal: onboarding.FilesOf(owners.fold, n.owning.peers), Logger: n.Logger.With("part", "files"),
		May: n.fence.watch.Check}
	return s.Run(ctx)
}

// Close releases what Open took. It is called after Run, or instead of it.
func (n *Node) Close() {
	n.serving.close()
	n.owning.close()
	n.health.close()
	n.stores.close()
	n.telemetry.close(n.Logger)
}
