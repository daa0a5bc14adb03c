package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/demo"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/local"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/node"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/streams/journal"
)

// Run starts all parts of a venue on one data folder and serves until the context ends.
func Run(ctx context.Context, args []string, std settings.IO) error {
	s, err := settings.Parse("run", args, std, nil)
	if err != nil {
		return err
	}
	log, err := s.Logger(std.Err)
	if err != nil {
		return err
	}
	if err := begin("run", s, log); err != nil {
		return err
	}
	seed, err := s.Seed()
	if err != nil {
		return err
	}
	p := &program{settings: s, journals: journals.All(), seed: seed, agent: "perpetua-demo/" + operation.NewID().String(), log: log, out: std.Out}
	return advise(unlessStopped(ctx, log, p.run(ctx)))
}

// program is `perpetua run`: the embedded services, the node on them, and the first users and instruments.
type program struct {
	settings *settings.Settings
	journals journals.Table
	seed     uint64 // random seed of the demo
	agent    string // user agent of the demo's requests, which are not logged because there are too many
	log      *slog.Logger
	out      io.Writer
	serving  func(local.RunFile) // called once the venue is ready; for tests
}

func (p *program) run(ctx context.Context) (err error) {
	chosen, err := node.ParseRoles(p.settings.Roles)
	if err != nil {
		return err
	}
	folder, err := local.OpenFolderSoon(ctx, p.settings.Data, p.log, (*local.Folder).CheckVenue)
	if err != nil {
		return err
	}
	defer folder.Close()
	if err := local.RemoveRunFile(folder.Path("run.json")); err != nil {
		return err // left by a killed process, and misleading to clients
	}
	id, err := folder.NodeID(p.settings.NodeID)
	if err != nil {
		return err
	}
	named, err := prepare(ctx, p.settings, folder)
	if err != nil {
		return err
	}
	if named != nil {
		defer named.Close()
	}
	// The services are closed last, because the node writes to the broker and the rows until its end.
	services, err := local.StartServices(ctx, p.settings, folder, p.log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(services.Err(), err, services.Close()) }()
	ctx, release := services.While(ctx)
	defer release()
	rows, err := openRows(ctx, named, services)
	if err != nil {
		return err
	}
	defer rows.Close() // before the embedded Postgres
	fresh, err := found(ctx, p.settings, services.Brokers, p.journals, database{rows, services.DatabaseURL()}, p.log)
	if err != nil {
		return err
	}
	box, err := p.settings.OpenMaster(ctx, fresh)
	if err != nil {
		return err
	}
	n, err := node.Open(ctx, node.Config{Settings: p.settings, Journals: p.journals, Logger: p.log, ID: id, Roles: chosen, Alone: true,
		Brokers: services.Brokers, Dial: services.Dialer(), DatabaseURL: services.DatabaseURL, Pool: rows, Checked: true, Box: box,
		Clock:    p.settings.Clock(),
		Services: services.Err, Trimmer: services.Trimmer(),
		Quiet: func(r *http.Request) bool { return r.UserAgent() == p.agent }})
	if err != nil {
		return err
	}
	defer n.Close()
	if err := folder.SetVenue(); err != nil {
		return err
	}
	err = n.RunUntil(ctx, func(ctx context.Context) error { return p.work(ctx, n, folder, services) })
	return errors.Join(err, local.RemoveRunFile(folder.Path("run.json")))
}

// work opens the venue on its node and runs the demo until the context ends. The supervisor runs from the beginning, since the
// venue does not open without Postgres.
func (p *program) work(ctx context.Context, n *node.Node, folder *local.Folder, services *local.Services) error {
	g, ctx := errgroup.WithContext(ctx)
	file := runJSON{path: folder.Path("run.json")}
	g.Go(func() error { return services.Supervise(ctx, file.rewrite) })
	g.Go(func() error {
		users, err := p.open(ctx, n, folder, services, &file)
		if err == nil && p.demo(n) {
			p.trade(ctx, n, users)
		}
		return err
	})
	return g.Wait()
}

// open waits until the node serves, seeds it, writes run.json for scripts and prints the addresses for humans.
func (p *program) open(ctx context.Context, n *node.Node, folder *local.Folder, services *local.Services, file *runJSON) ([]local.User, error) {
	if err := n.CatchUp(ctx); err != nil {
		return nil, err
	}
	seeds := seeder{n, p.settings.Demo.On}
	users, err := seeds.seed(ctx, folder.Path(local.UsersFile))
	if err != nil {
		return nil, err
	}
	if err := n.AwaitTip(ctx); err != nil {
		return nil, err
	}
	if err := noteKey(folder, len(p.settings.Brokers()) == 0, n.Box); err != nil {
		return nil, err
	}
	n.Announce()
	r, err := file.write(func() local.RunFile { return p.describe(n, services, users) })
	if err != nil {
		return nil, err
	}
	r.Print(p.out, file.path)
	if p.demo(n) {
		fmt.Fprintf(p.out, "  A demo market trades (seed %d); --demo=false turns it off.\n", p.seed)
	}
	if p.serving != nil {
		p.serving(r)
	}
	return users, nil
}

// The demo funds a customer of a seeded broker, so that a newcomer can trade immediately.
const (
	newcomersBroker = "broker-a"
	newcomer        = "NEWCOMER"
)

// demo reports whether the demo market runs. It needs the interfaces of this node.
func (p *program) demo(n *node.Node) bool {
	return p.settings.Demo.On && n.Roles.API && n.Roles.Live && n.Roles.Projector
}

// trade runs the demo's makers and takers until the context ends. They use the public interfaces.
func (p *program) trade(ctx context.Context, n *node.Node, users []local.User) {
	c := demo.Config{REST: n.LocalURL(), Seed: p.seed, UserAgent: p.agent, Logger: p.log.With("part", "demo"), Welcome: p.welcome}
	for _, u := range users {
		switch u.Username {
		case "operator":
			c.Operator, c.Password = u.Username, u.Password
		case newcomersBroker:
			c.Newcomer = demo.Newcomer{Broker: u.Username, Password: u.Password, Customer: newcomer}
		}
	}
	demo.Run(ctx, c)
}

// welcome prints what a newcomer can do with the demo.
func (p *program) welcome() {
	fmt.Fprintf(p.out, "\n  To place an order, log in to the console as %s and choose its customer %s, who got %d USDC.\n",
		newcomersBroker, newcomer, demo.NewcomerFunds)
	fmt.Fprintln(p.out, "  Its customers CAREFUL and GAMBLER show leverage, a stop, funding, and a liquidation within two minutes.")
}

// describe returns the content of run.json.
func (p *program) describe(n *node.Node, services *local.Services, users []local.User) local.RunFile {
	return local.RunFile{PID: os.Getpid(), REST: n.ClientURL(), WebSocket: "ws" + strings.TrimPrefix(n.ClientURL(), "http") + "/v1/ws",
		Kafka: services.Brokers, DatabaseURL: projections.PlainURL(services.DatabaseURL()), Debug: n.DebugURL(), Users: users}
}

// emptyIdentity reports whether the identity journal is empty. Only then can no master key be missing.
func emptyIdentity(ctx context.Context, client *journal.Client) (bool, error) {
	end, err := client.Tip(ctx, journals.Identity, 0)
	return end == 0, err
}
