package launch

import (
	"context"
	"errors"
	"flag"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/local"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/node"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/projections"
)

// member is a process that uses a given Kafka and Postgres: `perpetua serve`, `admin bootstrap`.
type member struct {
	settings *settings.Settings
	journals journals.Table
	log      *slog.Logger
	folder   *local.Folder
	id       string
}

// joinCluster parses the settings of a member's command and locks its data folder. The caller must close the folder.
func joinCluster(ctx context.Context, command string, args []string, std settings.IO, extra func(*flag.FlagSet)) (*member, error) {
	s, err := settings.Parse(command, args, std, extra)
	if err != nil {
		return nil, err
	}
	if err := s.NeedCluster(); err != nil {
		return nil, err
	}
	log, err := s.Logger(std.Err)
	if err != nil {
		return nil, err
	}
	folder, err := local.OpenFolderSoon(ctx, s.Data, log, (*local.Folder).CheckVenue)
	if err != nil {
		return nil, err
	}
	id, err := folder.NodeID(s.NodeID)
	if err != nil {
		folder.Close()
		return nil, err
	}
	return &member{s, journals.All(), log, folder, id}, nil
}

// open checks the topics and opens the member's node. Only a process that may found the identity journal may create a
// master key.
func (m *member) open(ctx context.Context, does node.Roles, founds bool) (n *node.Node, err error) {
	client, err := m.settings.NewClient(m.settings.Brokers(), m.log)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	pool, err := projections.Open(ctx, m.settings.DatabaseURL)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			pool.Close() // or the node does
		}
	}()
	checked, err := checkUse(ctx, pool, m.log)
	if err != nil {
		return nil, err
	}
	client.AddBases(append(m.settings.BaseSources(), projections.Bases{Pool: pool})...)
	if err := client.CheckTopics(ctx, m.journals.Names()...); err != nil {
		return nil, err
	}
	fresh := false
	if founds {
		if fresh, err = emptyIdentity(ctx, client); err != nil {
			return nil, err
		}
	}
	box, err := m.settings.OpenMaster(ctx, fresh)
	if err != nil {
		return nil, err
	}
	n, err = node.Open(ctx, node.Config{Settings: m.settings, Journals: m.journals, Logger: m.log, ID: m.id, Roles: does,
		Brokers: m.settings.Brokers(), DatabaseURL: func() string { return m.settings.DatabaseURL }, Pool: pool, Checked: checked, Box: box,
		Clock: m.settings.Clock()})
	if err != nil {
		return nil, err
	}
	if err := m.folder.SetVenue(); err != nil {
		n.Close()
		return nil, err
	}
	return n, nil
}

// useWithin bounds the time in which checkUse asks Postgres.
const useWithin = 5 * time.Second

// checkUse returns an error if a pooler shares the sessions of Postgres, or if the search_path of the user does not lead to the tables. It
// only warns if Postgres does not answer, because the node waits for that. checked is true if the sessions are not shared.
func checkUse(ctx context.Context, pool *pgxpool.Pool, log *slog.Logger) (checked bool, err error) {
	asking, cancel := context.WithTimeout(ctx, useWithin)
	defer cancel()
	err = projections.CheckSession(asking, pool)
	if checked = err == nil; checked {
		_, _, err = projections.SchemaVersion(asking, pool)
	}
	var other *projections.OtherSchemaError
	switch {
	case errors.Is(err, projections.ErrSharedSession), errors.As(err, &other):
		return checked, err
	case err != nil && ctx.Err() == nil:
		log.Warn("Postgres can't be checked, and the node waits for it", "error", err)
	}
	return checked, ctx.Err()
}
