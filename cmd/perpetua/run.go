package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

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
	return (&program{settings: s, log: log, out: std.out}).run(ctx)
}

// program is `perpetua run`: the embedded services, the node on them, and the first users and instruments.
type program struct {
	settings *settings
	log      *slog.Logger
	out      io.Writer
	serving  func(runFile) // called once ready; for tests
}

func (p *program) run(ctx context.Context) (err error) {
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
	err = migrate(ctx, client, services.databaseURL)
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
	n, err := openNode(ctx, nodeConfig{settings: p.settings, log: p.log, id: id, roles: allRoles(),
		brokers: services.brokers, databaseURL: services.databaseURL, box: box})
	if err != nil {
		return err
	}
	defer n.close()

	err = n.runUntil(ctx, func(ctx context.Context) error {
		if err := p.open(ctx, n, folder, services); err != nil {
			return err
		}
		return services.supervise(ctx)
	})
	return errors.Join(err, removeIfThere(folder.path("run.json")))
}

// open waits until the node serves, seeds it, and tells scripts and people where everything is.
func (p *program) open(ctx context.Context, n *node, folder *dataFolder, services *embedded) error {
	if err := n.catchUp(ctx); err != nil {
		return err
	}
	seeds := seeder{submit: n.engine, identity: n.identity, trading: n.trading, box: n.box, demo: p.settings.Demo}
	users, err := seeds.sow(ctx, folder.path("users.json"))
	if err != nil {
		return err
	}
	if err := n.awaitTip(ctx); err != nil {
		return err
	}
	n.ready.Store(true)
	r := runFile{PID: os.Getpid(), REST: n.url(), WebSocket: "ws" + strings.TrimPrefix(n.url(), "http") + "/v1/ws",
		Kafka: services.brokers, DatabaseURL: services.databaseURL, Users: users}
	if err := writeRunFile(folder.path("run.json"), r); err != nil {
		return err
	}
	r.print(p.out, folder.path("run.json"))
	if p.serving != nil {
		p.serving(r)
	}
	return nil
}

// print shows a person what run.json tells a script.
func (r runFile) print(w io.Writer, path string) {
	fmt.Fprintf(w, "\nPerpetua is ready (process %d)\n\n", r.PID)
	fmt.Fprintf(w, "  REST       %s        (GET /openapi.yaml)\n", r.REST)
	fmt.Fprintf(w, "  WebSocket  %s  (GET /asyncapi.yaml)\n", r.WebSocket)
	fmt.Fprintf(w, "  Kafka      %s\n", strings.Join(r.Kafka, ","))
	fmt.Fprintf(w, "  Postgres   %s\n\n", r.DatabaseURL)
	fmt.Fprintf(w, "  %-10s %-26s %-8s %s\n", "user", "password", "broker", "scopes")
	for _, u := range r.Users {
		fmt.Fprintf(w, "  %-10s %-26s %-8s %s\n", u.Username, u.Password, u.Broker, strings.Join(u.Scopes, " "))
	}
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
