package main

import (
	"context"
	"log/slog"

	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// member is a process that works on a Kafka and a Postgres which it was given: `perpetua serve`, `admin bootstrap`.
type member struct {
	settings *settings
	log      *slog.Logger
	folder   *dataFolder
	id       string
}

// joinCluster reads the settings of such a command and takes its data folder. The caller closes the folder.
func joinCluster(command string, args []string, std stdio) (*member, error) {
	s, err := parseSettings(command, args, std, nil)
	if err != nil {
		return nil, err
	}
	if err := s.needCluster(); err != nil {
		return nil, err
	}
	log, err := newLogger(s, std.err)
	if err != nil {
		return nil, err
	}
	folder, err := openDataFolder(s.Data)
	if err != nil {
		return nil, err
	}
	id, err := folder.nodeID(s.NodeID)
	if err != nil {
		folder.Close()
		return nil, err
	}
	return &member{s, log, folder, id}, nil
}

// open makes the member's node after it has checked the topics. A master key may be made only by the one who founds
// the identity journal.
func (m *member) open(ctx context.Context, does roles, founds bool) (*node, error) {
	client, err := newAdminClient(m.settings, m.settings.brokers(), m.log)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	if err := client.CheckTopics(ctx, journalNames()...); err != nil {
		return nil, err
	}
	fresh := false
	if founds {
		if fresh, err = emptyIdentity(ctx, client); err != nil {
			return nil, err
		}
	}
	box, err := seal.Open(seal.Options{Folder: m.folder.dir, Value: m.settings.MasterKey, Create: fresh})
	if err != nil {
		return nil, err
	}
	return openNode(ctx, nodeConfig{settings: m.settings, log: m.log, id: m.id, roles: does,
		brokers: m.settings.brokers(), databaseURL: func() string { return m.settings.DatabaseURL }, box: box})
}
