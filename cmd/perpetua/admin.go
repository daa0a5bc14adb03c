package main

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// adminCommand runs one of the operator's commands that do not go through the interface.
func adminCommand(ctx context.Context, args []string, std stdio) error {
	if len(args) == 0 {
		return usagef("which? bootstrap or forget-log")
	}
	switch args[0] {
	case "bootstrap":
		return bootstrapCommand(ctx, args[1:], std)
	case "forget-log":
		return forgetLogCommand(ctx, args[1:], std)
	}
	return usagef("there is no admin command %q: bootstrap and forget-log are", args[0])
}

// bootstrapCommand makes the first users and instruments on a given Kafka and Postgres, as `perpetua run` does on its
// own, and keeps the passwords in users.json in the data folder. It joins the engines for as long as that takes, so
// it is run before `perpetua serve` is.
func bootstrapCommand(ctx context.Context, args []string, std stdio) error {
	s, err := parseSettings("admin bootstrap", args, std, nil)
	if err != nil {
		return err
	}
	if err := s.needCluster(); err != nil {
		return err
	}
	log, err := newLogger(s, std.err)
	if err != nil {
		return err
	}
	folder, err := openDataFolder(s.Data)
	if err != nil {
		return err
	}
	defer folder.Close()
	id, err := folder.nodeID(s.NodeID)
	if err != nil {
		return err
	}
	client, err := newAdminClient(s, s.brokers(), log)
	if err != nil {
		return err
	}
	fresh, err := emptyIdentity(ctx, client)
	client.Close()
	if err != nil {
		return err
	}
	box, err := seal.Open(seal.Options{Folder: folder.dir, Value: s.MasterKey, Create: fresh})
	if err != nil {
		return err
	}
	n, err := openNode(ctx, nodeConfig{settings: s, log: log, id: id, roles: allRoles(), brokers: s.brokers(),
		databaseURL: s.DatabaseURL, box: box})
	if err != nil {
		return err
	}
	defer n.close()
	working, done := context.WithCancel(ctx)
	defer done()
	g, running := errgroup.WithContext(working)
	g.Go(func() error { return n.run(running) })
	g.Go(func() error {
		defer done()
		return n.bootstrap(running, folder.path("users.json"), s.Demo)
	})
	if err := g.Wait(); err != nil && !(errors.Is(err, context.Canceled) && ctx.Err() == nil) {
		return err
	}
	fmt.Fprintf(std.out, "users and their passwords are in %s\n", folder.path("users.json"))
	return nil
}

func (n *node) bootstrap(ctx context.Context, usersPath string, demo bool) error {
	if err := n.catchUp(ctx); err != nil {
		return err
	}
	seeds := seeder{submit: n.engine, identity: n.identity, trading: n.trading, box: n.box, demo: demo}
	_, err := seeds.sow(ctx, usersPath)
	return err
}
