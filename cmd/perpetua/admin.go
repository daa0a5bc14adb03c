package main

import (
	"context"
	"fmt"
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
	m, err := joinCluster("admin bootstrap", args, std)
	if err != nil {
		return err
	}
	defer m.folder.Close()
	n, err := m.open(ctx, allRoles(), true)
	if err != nil {
		return err
	}
	defer n.close()
	working, done := context.WithCancel(ctx)
	defer done()
	path := m.folder.path("users.json")
	err = n.runUntil(working, func(ctx context.Context) error {
		if err := n.bootstrap(ctx, path, m.settings.Demo); err != nil {
			return err
		}
		done()
		return nil
	})
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	fmt.Fprintf(std.out, "users and their passwords are in %s\n", path)
	return nil
}

func (n *node) bootstrap(ctx context.Context, usersPath string, demo bool) error {
	if err := n.catchUp(ctx); err != nil {
		return err
	}
	seeds := seeder{submit: n.journals, identity: n.identity, trading: n.trading, box: n.box, demo: demo}
	_, err := seeds.sow(ctx, usersPath)
	return err
}
