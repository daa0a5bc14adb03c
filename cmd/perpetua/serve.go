package main

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/perpetua-exchange/perpetua/handlers/login"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// serveCommand runs one node in chosen roles on a given Kafka and Postgres. It creates and seeds nothing: `perpetua
// migrate` and `perpetua admin bootstrap` do.
func serveCommand(ctx context.Context, args []string, std stdio) error {
	s, err := parseSettings("serve", args, std, nil)
	if err != nil {
		return err
	}
	if err := s.needCluster(); err != nil {
		return err
	}
	chosen, err := parseRoles(s.Roles)
	if err != nil {
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
	err = client.CheckTopics(ctx, journalNames()...)
	client.Close()
	if err != nil {
		return err
	}
	box, err := seal.Open(seal.Options{Folder: folder.dir, Value: s.MasterKey})
	if err != nil {
		return err
	}
	n, err := openNode(ctx, nodeConfig{settings: s, log: log, id: id, roles: chosen, brokers: s.brokers(),
		databaseURL: s.DatabaseURL, box: box})
	if err != nil {
		return err
	}
	defer n.close()
	g, running := errgroup.WithContext(ctx)
	g.Go(func() error { return n.run(running) })
	g.Go(func() error {
		if err := n.becomeReady(running); running.Err() == nil {
			return err
		}
		return nil
	})
	return g.Wait()
}

// becomeReady waits until the node serves what it is there for, and says so.
func (n *node) becomeReady(ctx context.Context) error {
	if err := n.catchUp(ctx); err != nil {
		return err
	}
	n.ready.Store(true)
	n.log.Info("ready", "url", n.url())
	return nil
}

// catchUp waits until the journals have owners and this node's readers stand at their tips, and checks that the master
// key opens what the identity journal holds.
func (n *node) catchUp(ctx context.Context) error {
	if err := n.awaitOwners(ctx); err != nil {
		return err
	}
	if err := n.awaitTip(ctx); err != nil {
		return err
	}
	if err := login.CheckSeal(login.FromFold(n.identity), n.box); err != nil {
		return fmt.Errorf("secrets of the identity journal: %w", err)
	}
	return nil
}
