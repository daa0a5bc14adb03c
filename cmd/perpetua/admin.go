package main

import (
	"context"
	"fmt"
	"time"

	"github.com/perpetua-exchange/perpetua/streams/ownership"
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

// bootstrapPatience bounds how long bootstrap waits for owners that are other nodes' business.
const bootstrapPatience = 30 * time.Second

// bootstrapCommand makes the first users and instruments on a given Kafka and Postgres, as `perpetua run` does on its
// own, and keeps the passwords in users.json in the data folder. Where engines serve already, it sends them the
// commands; else it is the engine for as long as that takes.
func bootstrapCommand(ctx context.Context, args []string, std stdio) error {
	m, err := joinCluster("admin bootstrap", args, std)
	if err != nil {
		return err
	}
	defer m.folder.Close()
	served, err := m.served(ctx)
	if err != nil {
		return err
	}
	path := m.folder.path("users.json")
	if err := m.bootstrap(ctx, !served, path); err != nil {
		return err
	}
	fmt.Fprintf(std.out, "users and their passwords are in %s\n", path)
	return nil
}

// bootstrap sows the seeds, as the engine or through the engines that there are.
func (m *member) bootstrap(ctx context.Context, engine bool, usersPath string) error {
	if !engine {
		m.settings.Listen, m.settings.Advertise = "127.0.0.1:0", "" // nobody needs to reach it
	}
	n, err := m.open(ctx, roles{engine: engine}, true)
	if err != nil {
		return err
	}
	defer n.close()
	working, done := context.WithCancel(ctx)
	defer done()
	err = n.runUntil(working, func(ctx context.Context) error {
		if err := n.bootstrap(ctx, usersPath, m.settings.Demo); err != nil {
			return err
		}
		done()
		return nil
	})
	if err == nil {
		err = ctx.Err()
	}
	return err
}

// served reports whether some journal has an owner.
func (m *member) served(ctx context.Context) (bool, error) {
	client, err := newAdminClient(m.settings, m.settings.brokers(), m.log)
	if err != nil {
		return false, err
	}
	defer client.Close()
	finder, err := ownership.NewFinder(client, journalNames()...)
	if err != nil {
		return false, err
	}
	defer finder.Close()
	asking, cancel := context.WithTimeout(ctx, bootstrapPatience)
	defer cancel()
	for _, name := range journalNames() {
		owner, err := finder.Owner(asking, name, 0)
		for err != nil { // a new cluster has no coordinator of groups at first
			m.log.Info("asking who owns a journal", "journal", name, "error", err)
			if pause(asking, 200*time.Millisecond) != nil {
				return false, err
			}
			owner, err = finder.Owner(asking, name, 0)
		}
		if owner != "" {
			return true, nil
		}
	}
	return false, nil
}

func (n *node) bootstrap(ctx context.Context, usersPath string, demo bool) error {
	catching, cancel := context.WithTimeout(ctx, bootstrapPatience)
	defer cancel()
	if err := n.catchUp(catching); err != nil {
		return err
	}
	seeds := seeder{submit: n.peers, identity: n.identity, trading: n.trading, box: n.box, demo: demo}
	_, err := seeds.sow(ctx, usersPath)
	return err
}
