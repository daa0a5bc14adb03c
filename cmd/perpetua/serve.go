package main

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/perpetua-exchange/perpetua/handlers/login"
)

// serveCommand runs one node in chosen roles on a given Kafka and Postgres. It creates and seeds nothing: `perpetua
// migrate` and `perpetua admin bootstrap` do.
func serveCommand(ctx context.Context, args []string, std stdio) error {
	m, err := joinCluster("serve", args, std)
	if err != nil {
		return err
	}
	defer m.folder.Close()
	chosen, err := parseRoles(m.settings.Roles)
	if err != nil {
		return err
	}
	n, err := m.open(ctx, chosen, false)
	if err != nil {
		return err
	}
	defer n.close()
	return n.runUntil(ctx, n.becomeReady)
}

// runUntil runs the node, and open beside it, which is to make it ready. What open fails with counts only while the
// node runs: after that, the node's own error is the reason.
func (n *node) runUntil(ctx context.Context, open func(context.Context) error) error {
	g, running := errgroup.WithContext(ctx)
	g.Go(func() error { return n.run(running) })
	g.Go(func() error {
		if err := open(running); running.Err() == nil {
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
