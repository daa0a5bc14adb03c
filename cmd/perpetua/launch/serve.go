package launch

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/local"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/node"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
)

// Serve runs one node with the configured roles on a given Kafka and Postgres. It creates and seeds nothing: `perpetua
// migrate` and `perpetua admin bootstrap` do. When the node is ready, Serve writes its address to run.json like
// `perpetua run`, without users and database.
func Serve(ctx context.Context, args []string, std settings.IO) error {
	m, err := joinCluster(ctx, "serve", args, std, nil)
	if err != nil {
		return err
	}
	defer m.folder.Close()
	if err := m.settings.NeedKeyStore(); err != nil {
		return err
	}
	if err := begin("serve", m.settings, m.log); err != nil {
		return err
	}
	if err := node.CheckPorts(ctx, m.settings); err != nil {
		return unlessStopped(ctx, m.log, err)
	}
	runJSON := m.folder.Path("run.json")
	if err := local.RemoveRunFile(runJSON); err != nil {
		return err // left by a killed process, and misleading to clients
	}
	chosen, err := node.ParseRoles(m.settings.Roles)
	if err != nil {
		return err
	}
	n, err := m.open(ctx, chosen, false)
	if err != nil {
		return unlessStopped(ctx, m.log, err)
	}
	defer n.Close()
	err = n.RunUntil(ctx, func(ctx context.Context) error {
		if err := n.CatchUp(ctx); err != nil {
			return err
		}
		n.Announce()
		n.Logger.Info("ready", "url", n.URL(), "roles", m.settings.Roles)
		return local.WriteRunFile(runJSON, runFileOf(n, m.settings))
	})
	return advise(errors.Join(unlessStopped(ctx, m.log, err), local.RemoveRunFile(runJSON)))
}

// runFileOf returns the run.json of a node. It omits the users and the database's password.
func runFileOf(n *node.Node, s *settings.Settings) local.RunFile {
	return local.RunFile{PID: os.Getpid(), REST: n.ClientURL(), WebSocket: "ws" + strings.TrimPrefix(n.ClientURL(), "http") + "/v1/ws",
		Kafka: s.Brokers(), Debug: n.DebugURL(), Users: []local.User{}}
}
