package launch

import (
	"context"
	"fmt"
	"time"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/node"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/streams/ownership"
)

// bootstrapPatience bounds how long bootstrap waits for owners that are other nodes' business.
const bootstrapPatience = 30 * time.Second

// Bootstrap makes the first users and instruments on a given Kafka and Postgres, as `perpetua run` does on its
// own, and keeps the passwords in users.json in the data folder. Where engines serve already, it sends them the
// commands; else it is the engine for as long as that takes.
func Bootstrap(ctx context.Context, args []string, std settings.IO) error {
	m, err := joinCluster("admin bootstrap", args, std)
	if err != nil {
		return err
	}
	defer m.folder.Close()
	served, err := m.served(ctx)
	if err != nil {
		return err
	}
	path := m.folder.Path("users.json")
	if err := m.bootstrap(ctx, !served, path); err != nil {
		return err
	}
	fmt.Fprintf(std.Out, "users and their passwords are in %s\n", path)
	return nil
}

// bootstrap sows the seeds, as the engine or through the engines that there are.
func (m *member) bootstrap(ctx context.Context, engine bool, usersPath string) error {
	if !engine {
		m.settings.Listen, m.settings.Advertise = "127.0.0.1:0", "" // nobody needs to reach it
	}
	n, err := m.open(ctx, node.Roles{Engine: engine}, true)
	if err != nil {
		return err
	}
	defer n.Close()
	working, done := context.WithCancel(ctx)
	defer done()
	err = n.RunUntil(working, func(ctx context.Context) error {
		if err := seedNode(ctx, n, usersPath, m.settings.Demo); err != nil {
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
	client, err := m.settings.NewClient(m.settings.Brokers(), m.log)
	if err != nil {
		return false, err
	}
	defer client.Close()
	finder, err := ownership.NewFinder(client, m.journals.Names()...)
	if err != nil {
		return false, err
	}
	defer finder.Close()
	asking, cancel := context.WithTimeout(ctx, bootstrapPatience)
	defer cancel()
	for _, name := range m.journals.Names() {
		owner, err := finder.Owner(asking, name, 0)
		for err != nil { // a new cluster has no coordinator of groups at first
			m.log.Info("asking who owns a journal", "journal", name, "error", err)
			select {
			case <-asking.Done():
				return false, err
			case <-time.After(200 * time.Millisecond):
			}
			owner, err = finder.Owner(asking, name, 0)
		}
		if owner != "" {
			return true, nil
		}
	}
	return false, nil
}

// seedNode has a node that runs sow the seeds, once it has caught up.
func seedNode(ctx context.Context, n *node.Node, usersPath string, demo bool) error {
	catching, cancel := context.WithTimeout(ctx, bootstrapPatience)
	defer cancel()
	if err := n.CatchUp(catching); err != nil {
		return err
	}
	seeds := seeder{n, demo}
	_, err := seeds.sow(ctx, usersPath)
	return err
}
