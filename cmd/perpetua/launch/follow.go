package launch

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/local"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/node"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/streams/verify"
)

// Follow returns the command that runs a node which follows a venue. newModel makes the independent model of the trading rules.
//
// The node has a data folder, a database, a bucket, and a master key of its own. It writes run.json when it shows what the log
// held at its start.
func Follow(newModel func() verify.Model) func(ctx context.Context, args []string, std settings.IO) error {
	return func(ctx context.Context, args []string, std settings.IO) error {
		f := &follow{journals: journals.All(), std: std}
		if err := f.parse(args, newModel); err != nil {
			return err
		}
		return f.run(ctx)
	}
}

// follow is `perpetua follow`.
type follow struct {
	settings  *settings.Settings
	journals  journals.Table
	following node.Following
	log       *slog.Logger
	std       settings.IO
}

func (f *follow) parse(args []string, newModel func() verify.Model) (err error) {
	var model bool
	f.settings, err = settings.Parse("follow", args, f.std, func(fs *flag.FlagSet) {
		fs.StringVar(&f.following.Venue, "venue-url", "", "URL of the venue's interfaces, which refused requests are told")
		fs.BoolVar(&model, "rules", false, "check the journal trading against the independent model of the rules too: every start reads the log from its genesis on")
	})
	if err != nil {
		return err
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
	return begin("follow", f.settings, f.log)
}

// check returns a usage error for settings that are those of the venue's nodes.
func (f *follow) check() error {
	s := f.settings
	switch {
	case s.Stores.KeyURL != "" || s.Stores.MasterKey != "":
		return settings.Usagef("perpetua follow makes keys of its own in its data folder: it takes no --key-url and no --master-key")
	case len(s.Brokers()) == 0:
		return settings.Usagef("--kafka-brokers is needed (or $PERPETUA_KAFKA_BROKERS)")
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
	folder, err := local.OpenFolder(s.Data)
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
	if err := f.makeTables(ctx, services.DatabaseURL()); err != nil {
		return err
	}
	box, err := s.OpenMaster(ctx, true)
	if err != nil {
		return err
	}
	n, err := node.Open(ctx, node.Config{Settings: s, Journals: f.journals, Logger: f.log, ID: id, Alone: true,
		Roles:   node.Roles{API: true, Projector: true, Live: true, History: true},
		Brokers: services.Brokers, Dial: services.Dialer(), DatabaseURL: services.DatabaseURL, Box: box.Foreign(),
		Services: services.Err, Follow: &f.following})
	if err != nil {
		return err
	}
	defer n.Close()
	err = n.RunUntil(ctx, func(ctx context.Context) error { return f.serve(ctx, n, runJSON, services) })
	return errors.Join(err, local.RemoveRunFile(runJSON))
}

// makeTables creates the tables of the node's database.
func (f *follow) makeTables(ctx context.Context, databaseURL string) error {
	pool, err := projections.Open(ctx, databaseURL)
	if err != nil {
		return err
	}
	defer pool.Close()
	return migrateTables(ctx, pool, f.log)
}

// serve announces the node once it has caught up, and supervises the services until the context ends.
func (f *follow) serve(ctx context.Context, n *node.Node, runJSON string, services *local.Services) error {
	if err := n.CatchUp(ctx); err != nil {
		return err
	}
	n.Announce()
	describe := func() local.RunFile {
		r := local.RunFile{PID: os.Getpid(), REST: n.ClientURL(), WebSocket: "ws" + strings.TrimPrefix(n.ClientURL(), "http") + "/v1/ws",
			Kafka: services.Brokers, DatabaseURL: services.DatabaseURL(), Debug: n.DebugURL(), Users: []local.User{}}
		return r
	}
	r := describe()
	if err := local.WriteRunFile(runJSON, r); err != nil {
		return err
	}
	fmt.Fprintf(f.std.Out, "\nPerpetua follows a venue (process %d)\n\n  REST       %s\n  WebSocket  %s\n  Postgres   %s\n\n  The same is in %s. Ctrl-C stops.\n",
		r.PID, r.REST, r.WebSocket, r.DatabaseURL, runJSON)
	return services.Supervise(ctx, func() error { return local.WriteRunFile(runJSON, describe()) })
}
