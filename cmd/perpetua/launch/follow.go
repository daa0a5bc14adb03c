package launch

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/local"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/node"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/streams/monitor"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/verify"
)

// Follow returns the command that runs a node which follows a venue. newModel makes the independent model of the trading rules.
//
// The node has its own data folder, database, bucket, and master key. It writes run.json when it has read the log up to the end
// that the log had at the start.
func Follow(newModel func() verify.Model) func(ctx context.Context, args []string, std settings.IO) error {
	return func(ctx context.Context, args []string, std settings.IO) error {
		f := &follow{journals: journals.All(), std: std}
		if err := f.parse(args, newModel); err != nil {
			return err
		}
		return unlessStopped(ctx, f.log, f.run(ctx))
	}
}

// follow is `perpetua follow`.
type follow struct {
	settings  *settings.Settings
	journals  journals.Table
	following node.Following
	every     time.Duration  // between two looks for records in the archive
	source    *archiveSource // nil unless the archive is the only source
	signed    checkpoints
	log       *slog.Logger
	std       settings.IO
}

func (f *follow) parse(args []string, newModel func() verify.Model) (err error) {
	var model bool
	f.settings, err = settings.Parse("follow", args, f.std, func(fs *flag.FlagSet) {
		fs.StringVar(&f.following.Venue, "venue-url", "", "URL of the venue, which the answer to a refused request names")
		fs.BoolVar(&model, "rules", false, "check the journal trading against a second model of the rules too; each start then reads the log from its genesis on")
		fs.Func("tlog-key", "`KEY` of the venue's transparency log of trading, from GET /tlog/trading/0/key, or the list of its keys from /tlog/trading/0/keys; the node then compares the checkpoints of this log (default: it compares none)", func(key string) error {
			f.signed.key, f.signed.given = key, true
			return nil
		})
		fs.Func("tlog-url", "`URL` of another place that serves that log, like https://mirror.example/tlog/trading/0; once for each place", func(at string) error {
			f.signed.urls = append(f.signed.urls, at)
			return monitor.CheckURL(at)
		})
		fs.DurationVar(&f.every, "archive-every", time.Minute, "interval at which the node looks for new records in the archive, if it follows no brokers")
	})
	if err != nil {
		return err
	}
	if key := f.settings.Stores.ArchiveKey; key != "" {
		if f.following.Archive, err = settings.ReadKey("archive-key-file", key); err != nil {
			return err
		}
	}
	if model {
		f.following.Model = newModel
	}
	if f.log, err = f.settings.Logger(f.std.Err); err != nil {
		return err
	}
	if err := f.check(); err != nil {
		return err
	}
	if err := f.signed.open(f.following.Venue, f.settings); err != nil {
		return err
	}
	f.signed.log, f.signed.file = f.log.With("part", "checkpoints"), filepath.Join(f.settings.Data, checkpointState)
	f.following.Faults, f.following.Halt = append(f.following.Faults, f.signed.Fault), f.signed.Halt
	return begin("follow", f.settings, f.log)
}

// check returns a usage error for settings that are those of the venue's nodes.
func (f *follow) check() error {
	s := f.settings
	switch {
	case s.Stores.KeyURL != "" || s.Stores.MasterKey != "":
		return settings.Usagef("perpetua follow makes keys of its own in its data folder: it takes no --key-url and no --master-key")
	case (s.Stores.ArchiveURL == "") != (f.following.Archive == nil):
		return settings.Usagef("--archive-url and --archive-key-file go together")
	case len(s.Brokers()) == 0 && f.following.Archive == nil:
		return settings.Usagef("--kafka-brokers or --archive-url is needed: what the node follows")
	case f.every < time.Second:
		return settings.Usagef("--archive-every takes a time of a second or more, like 1m, not %v", f.every)
	case f.following.Venue == "":
		return nil
	}
	at, err := url.Parse(f.following.Venue)
	if err != nil || at.Scheme != "https" && at.Scheme != "http" || at.Host == "" {
		return settings.Usagef("--venue-url takes a URL like https://venue.example, not %q", f.following.Venue)
	}
	f.following.Venue = strings.TrimSuffix(f.following.Venue, "/")
	return nil
}

func (f *follow) run(ctx context.Context) (err error) {
	s := f.settings
	folder, err := local.OpenFolderSoon(ctx, s.Data, f.log, (*local.Folder).CheckFollower)
	if err != nil {
		return err
	}
	defer folder.Close()
	runJSON := folder.Path("run.json")
	if err := local.RemoveRunFile(runJSON); err != nil {
		return err // left by a killed process, and misleading to clients
	}
	id, err := folder.NodeID(s.NodeID)
	if err != nil {
		return err
	}
	if err := node.CheckPorts(ctx, s); err != nil {
		return err
	}
	services, err := local.StartServices(ctx, s, folder, f.log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(services.Err(), err, services.Close()) }()
	ctx, release := services.While(ctx)
	defer release()
	rows, err := projections.OpenMoving(ctx, services.DatabaseURL)
	if err != nil {
		return err
	}
	defer rows.Close() // before the embedded Postgres
	if err := migrateTables(ctx, rows, f.log); err != nil {
		return err
	}
	done, err := f.openSource(ctx, services)
	if err != nil {
		return err
	}
	defer done()
	box, err := s.OpenMaster(ctx, true)
	if err != nil {
		return err
	}
	n, err := node.Open(ctx, node.Config{Settings: s, Journals: f.journals, Logger: f.log, ID: id, Alone: true,
		Roles:   node.Roles{API: true, Projector: true, Live: true, History: true},
		Brokers: services.Brokers, Dial: services.Dialer(), DatabaseURL: services.DatabaseURL, Pool: rows, Checked: true, Box: box.Foreign(),
		Services: services.Err, Trimmer: services.Trimmer(), Follow: &f.following})
	if err != nil {
		return err
	}
	defer n.Close()
	// A start that failed before must not mark the folder of a venue.
	if err := folder.SetFollows(f.follows()); err != nil {
		return err
	}
	err = n.RunUntil(ctx, func(ctx context.Context) error { return f.serve(ctx, n, runJSON, services) })
	return errors.Join(err, local.RemoveRunFile(runJSON))
}

// follows returns the source of the records.
func (f *follow) follows() string {
	if len(f.settings.Brokers()) > 0 {
		return local.FollowsBrokers
	}
	return local.FollowsArchive
}

// openSource opens the archive if it is the only source, and makes the topics that its records go to.
func (f *follow) openSource(ctx context.Context, services *local.Services) (done func(), err error) {
	s := f.settings
	if len(s.Brokers()) > 0 {
		return func() {}, nil
	}
	client, err := s.NewClient(services.Brokers, f.log)
	if err != nil {
		return nil, err
	}
	client.AddBases(s.BaseSources()...)
	if err := client.EnsureTopics(ctx, f.journals.Names()...); err != nil {
		client.Close()
		return nil, err
	}
	store, closeStore, err := s.OpenArchive(ctx)
	if err != nil {
		client.Close()
		return nil, err
	}
	f.source = &archiveSource{client: client, store: store, settings: s, box: f.following.Archive, journals: f.journals, every: f.every,
		log: f.log.With("part", "archive"), ends: make(map[string]record.Position)}
	f.following.Faults = append(f.following.Faults, f.source.Fault)
	return func() { closeStore(); client.Close() }, nil
}

// serve announces the node once it has caught up, and supervises the services until the context ends.
func (f *follow) serve(ctx context.Context, n *node.Node, path string, services *local.Services) error {
	g, ctx := errgroup.WithContext(ctx)
	file := runJSON{path: path}
	g.Go(func() error { return services.Supervise(ctx, file.rewrite) })
	begun := make(chan struct{})
	if f.source == nil {
		close(begun)
	} else {
		g.Go(func() error { return f.source.run(ctx, sync.OnceFunc(func() { close(begun) }), n.TrimCopy) })
	}
	g.Go(func() error { return f.signed.run(ctx, n.Verified, n.AlarmOfFollower) })
	g.Go(func() error {
		select {
		case <-begun:
		case <-ctx.Done():
			return ctx.Err()
		}
		return f.announce(ctx, n, &file, services)
	})
	return g.Wait()
}

func (f *follow) announce(ctx context.Context, n *node.Node, file *runJSON, services *local.Services) error {
	if err := n.CatchUp(ctx); err != nil {
		return err
	}
	n.Announce()
	r, err := file.write(func() local.RunFile {
		return local.RunFile{PID: os.Getpid(), REST: n.ClientURL(), WebSocket: "ws" + strings.TrimPrefix(n.ClientURL(), "http") + "/v1/ws",
			Kafka: services.Brokers, DatabaseURL: projections.PlainURL(services.DatabaseURL()), Debug: n.DebugURL(), Follows: f.follows(), Users: []local.User{}}
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(f.std.Out, "\nPerpetua follows a venue (process %d)\n\n  REST       %s\n  WebSocket  %s\n  Postgres   %s\n\n  %s has all this as JSON. Ctrl-C stops the follower.\n",
		r.PID, r.REST, r.WebSocket, r.DatabaseURL, file.path)
	return nil
}
