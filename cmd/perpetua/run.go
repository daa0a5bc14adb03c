package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/demo"
	"github.com/perpetua-exchange/perpetua/handlers/web"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// runCommand brings up everything on one data folder and serves until the context ends.
func runCommand(ctx context.Context, args []string, std stdio) error {
	s, err := parseSettings("run", args, std, nil)
	if err != nil {
		return err
	}
	log, err := newLogger(s, std.err)
	if err != nil {
		return err
	}
	seed, err := strconv.ParseUint(s.DemoSeed, 10, 64)
	if err != nil {
		return usagef("--demo-seed takes a number from 0 to 2^64-1, not %q", s.DemoSeed)
	}
	return (&program{settings: s, seed: seed, agent: "perpetua-demo/" + web.NewID().String(), log: log, out: std.out}).run(ctx)
}

// program is `perpetua run`: the embedded services, the node on them, and the first users and instruments.
type program struct {
	settings *settings
	seed     uint64 // of the demo
	agent    string // by which this process knows the demo's requests, which would drown all others in the log
	log      *slog.Logger
	out      io.Writer
	serving  func(runFile) // called once ready; for tests
}

func (p *program) run(ctx context.Context) (err error) {
	chosen, err := parseRoles(p.settings.Roles)
	if err != nil {
		return err
	}
	folder, err := openDataFolder(p.settings.Data)
	if err != nil {
		return err
	}
	defer folder.Close()
	if err := os.Remove(folder.path("run.json")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err // left by a kill; nobody may take it for true
	}
	id, err := folder.nodeID(p.settings.NodeID)
	if err != nil {
		return err
	}
	services, err := startEmbedded(ctx, p.settings, folder, p.log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, services.Close()) }()
	client, err := newAdminClient(p.settings, services.brokers, p.log)
	if err != nil {
		return err
	}
	err = migrate(ctx, client, services.databaseURL())
	fresh := false
	if err == nil {
		fresh, err = emptyIdentity(ctx, client)
	}
	client.Close()
	if err != nil {
		return err
	}
	box, err := seal.Open(seal.Options{Folder: folder.dir, Value: p.settings.MasterKey, Create: fresh})
	if err != nil {
		return err
	}
	n, err := openNode(ctx, nodeConfig{settings: p.settings, log: p.log, id: id, roles: chosen, alone: true,
		brokers: services.brokers, dial: services.dialer(), databaseURL: services.databaseURL, box: box,
		quiet: func(r *http.Request) bool { return r.UserAgent() == p.agent }})
	if err != nil {
		return err
	}
	defer n.close()

	err = n.runUntil(ctx, func(ctx context.Context) error {
		users, err := p.open(ctx, n, folder, services)
		if err != nil {
			return err
		}
		g, ctx := errgroup.WithContext(ctx)
		g.Go(func() error {
			return services.supervise(ctx, func() error { return writeRunFile(folder.path("run.json"), p.describe(n, services, users)) })
		})
		if p.demo(n) {
			g.Go(func() error { p.trade(ctx, n, users); return nil })
		}
		return g.Wait()
	})
	return errors.Join(err, removeIfThere(folder.path("run.json")))
}

// open waits until the node serves, seeds it, and tells scripts and people where everything is.
func (p *program) open(ctx context.Context, n *node, folder *dataFolder, services *embedded) ([]presetUser, error) {
	if err := n.catchUp(ctx); err != nil {
		return nil, err
	}
	seeds := seeder{submit: n.peers, identity: n.identity, trading: n.trading, box: n.box, demo: p.settings.Demo}
	users, err := seeds.sow(ctx, folder.path("users.json"))
	if err != nil {
		return nil, err
	}
	if err := n.awaitTip(ctx); err != nil {
		return nil, err
	}
	n.ready.Store(true)
	r := p.describe(n, services, users)
	if err := writeRunFile(folder.path("run.json"), r); err != nil {
		return nil, err
	}
	r.print(p.out, folder.path("run.json"))
	if p.demo(n) {
		fmt.Fprintf(p.out, "  The demo market is on (seed %d): the first instruments move by themselves. --demo=false turns it off.\n", p.seed)
	}
	if p.serving != nil {
		p.serving(r)
	}
	return users, nil
}

// demo reports whether the demo market runs: it needs somebody to serve it.
func (p *program) demo(n *node) bool {
	return p.settings.Demo && n.roles.api && n.roles.live && n.roles.projector
}

// trade lets the demo's makers and takers trade until the context ends. They come in by the front door like everybody.
func (p *program) trade(ctx context.Context, n *node, users []presetUser) {
	for _, u := range users {
		if u.Username == "operator" {
			demo.Run(ctx, demo.Config{REST: n.localURL(), Operator: u.Username, Password: u.Password, Seed: p.seed,
				UserAgent: p.agent, Logger: p.log.With("part", "demo")})
		}
	}
}

// describe returns what run.json says.
func (p *program) describe(n *node, services *embedded, users []presetUser) runFile {
	return runFile{PID: os.Getpid(), REST: n.url(), WebSocket: "ws" + strings.TrimPrefix(n.url(), "http") + "/v1/ws",
		Kafka: services.brokers, DatabaseURL: services.databaseURL(), Debug: n.debug.url(), Users: users}
}

// print shows a person what run.json tells a script.
func (r runFile) print(w io.Writer, path string) {
	fmt.Fprintf(w, "\nPerpetua is ready (process %d)\n\n", r.PID)
	fmt.Fprintf(w, "  Console    %s/\n", r.REST)
	fmt.Fprintf(w, "  REST       %s        (GET /openapi.yaml)\n", r.REST)
	fmt.Fprintf(w, "  WebSocket  %s  (GET /asyncapi.yaml)\n", r.WebSocket)
	fmt.Fprintf(w, "  Kafka      %s\n", strings.Join(r.Kafka, ","))
	fmt.Fprintf(w, "  Postgres   %s\n\n", r.DatabaseURL)
	printUsers(w, r.Users)
	fmt.Fprintf(w, "\n  The same is in %s. Ctrl-C stops.\n", path)
}

// emptyIdentity reports whether the identity journal has no record yet, so that no master key can be missing.
func emptyIdentity(ctx context.Context, client *journal.Client) (bool, error) {
	end, err := client.Tip(ctx, "identity", 0)
	return end == 0, err
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
