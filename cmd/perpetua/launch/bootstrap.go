package launch

import (
	"context"
	"flag"
	"fmt"
	"time"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/local"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/node"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/streams/ownership"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// bootstrapPatience bounds the time that bootstrap waits for owners on other nodes.
const bootstrapPatience = 30 * time.Second

// Bootstrap creates the first users and instruments on the given Kafka and Postgres, as `perpetua run` does on its
// embedded ones, and writes the passwords to users.json in the data folder. If engines are running, it sends them the
// commands; otherwise this process acts as the engine for that time.
func Bootstrap(ctx context.Context, args []string, std settings.IO) error {
	var asJSON bool
	m, err := joinCluster(ctx, "admin bootstrap", args, std, func(fs *flag.FlagSet) { settings.JSONFlag(fs, &asJSON) })
	if err != nil {
		return err
	}
	defer m.folder.Close()
	served, err := m.served(ctx)
	if err != nil {
		return err
	}
	path := m.folder.Path(local.UsersFile)
	at, err := m.bootstrap(ctx, !served, path)
	if err != nil {
		return err
	}
	if asJSON {
		return std.PrintJSON(bootstrapped{path, at[journals.Identity]})
	}
	fmt.Fprintf(std.Out, "users and their passwords are in %s, and known to a node once it has reached %v\n", path, at[journals.Identity])
	return nil
}

// bootstrapped is the JSON output of bootstrap: the file of passwords, and the position of the identity journal after
// the last user.
type bootstrapped struct {
	Users    string             `json:"users"`
	Position record.LogPosition `json:"position"`
}

// bootstrap creates a venue's initial contents, as the engine or through running engines. It returns the positions of
// the journals after the last record that it caused.
func (m *member) bootstrap(ctx context.Context, engine bool, usersPath string) (at map[string]record.LogPosition, err error) {
	if !engine {
		m.settings.HTTP.Listen, m.settings.HTTP.Advertise = "127.0.0.1:0", "" // no other node connects to this one
		m.settings.Peer.Listen, m.settings.Peer.Cert, m.settings.Peer.Key = "", "", ""
	}
	n, err := m.open(ctx, node.Roles{Engine: engine}, true)
	if err != nil {
		return nil, err
	}
	defer n.Close()
	working, done := context.WithCancel(ctx)
	defer done()
	err = n.RunUntil(working, func(ctx context.Context) error {
		if err := seedNode(ctx, n, usersPath, m.settings.Demo.On); err != nil {
			return err
		}
		var err error
		at, err = positionsOf(n, m.journals)
		done()
		return err
	})
	if err == nil {
		err = ctx.Err()
	}
	return at, err
}

// served reports whether any journal has an owner.
func (m *member) served(ctx context.Context) (bool, error) {
	client, err := m.settings.NewClient(m.settings.Brokers(), m.log)
	if err != nil {
		return false, err
	}
	defer client.Close()
	finder, err := ownership.NewFinder(client, nil, "", m.journals.Names()...)
	if err != nil {
		return false, err
	}
	defer finder.Close()
	asking, cancel := context.WithTimeout(ctx, bootstrapPatience)
	defer cancel()
	for _, name := range m.journals.Names() {
		owner, err := finder.Owner(asking, name, 0)
		for err != nil { // a new cluster has no group coordinator at first
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

// seedNode waits until a running node has caught up and then seeds the venue through it.
func seedNode(ctx context.Context, n *node.Node, usersPath string, demo bool) error {
	catching, cancel := context.WithTimeout(ctx, bootstrapPatience)
	defer cancel()
	if err := n.CatchUp(catching); err != nil {
		return err
	}
	seeds := seeder{n, demo}
	_, err := seeds.seed(ctx, usersPath)
	return err
}
