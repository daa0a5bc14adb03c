package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/perpetua-exchange/perpetua/handlers/login"
)

// serveCommand runs one node in chosen roles on a given Kafka and Postgres. It creates and seeds nothing: `perpetua
// migrate` and `perpetua admin bootstrap` do. Once ready it says where it is in run.json, as `perpetua run` does, without
// users and database.
func serveCommand(ctx context.Context, args []string, std stdio) error {
	m, err := joinCluster("serve", args, std)
	if err != nil {
		return err
	}
	defer m.folder.Close()
	runJSON := m.folder.path("run.json")
	if err := removeIfThere(runJSON); err != nil {
		return err // left by a kill; nobody may take it for true
	}
	chosen, err := parseRoles(m.settings.Roles)
	if err != nil {
		return err
	}
	n, err := m.open(ctx, chosen, false)
	if err != nil {
		return err
	}
	defer n.close()
	err = n.runUntil(ctx, func(ctx context.Context) error {
		if err := n.catchUp(ctx); err != nil {
			return err
		}
		n.ready.Store(true)
		n.log.Info("ready", "url", n.url(), "roles", m.settings.Roles)
		return writeRunFile(runJSON, runFileOf(n, m.settings))
	})
	return errors.Join(err, removeIfThere(runJSON))
}

// runFileOf says where a node is. The users and the database's password are no business of its folder.
func runFileOf(n *node, s *settings) runFile {
	return runFile{PID: os.Getpid(), REST: n.url(), WebSocket: "ws" + strings.TrimPrefix(n.url(), "http") + "/v1/ws",
		Kafka: s.brokers(), Debug: n.debug.url(), Users: []presetUser{}}
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
