package main

import (
	"context"
	"flag"
	"fmt"

	"github.com/perpetua-exchange/perpetua/domain/identity"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/postgres"
	"github.com/perpetua-exchange/perpetua/projections/readmodels"
)

// forgetLogCommand forgets what was read of a journal: its read models, its snapshots and every position of it. It is the deliberate
// answer to LOG_DIVERGED where a log was lost for good: the next start takes the log as it is, or begins a new one.
func forgetLogCommand(ctx context.Context, args []string, std stdio) error {
	var name string
	s, err := parseSettings("admin forget-log", args, std, func(fs *flag.FlagSet) {
		fs.StringVar(&name, "journal", "", "journal to forget")
	})
	if err != nil {
		return err
	}
	if name == "" {
		return usagef("--journal is needed")
	}
	if _, err := rulesOf(name); err != nil {
		return err
	}
	folder, err := openDataFolder(s.Data)
	if err != nil {
		return err
	}
	defer folder.Close()
	url := s.DatabaseURL
	if url == "" {
		log, err := newLogger(s, std.err)
		if err != nil {
			return err
		}
		server, err := postgres.Start(ctx, postgres.Config{Dir: folder.path("postgres"), Logger: log})
		if err != nil {
			return err
		}
		defer server.Close()
		url = server.URL()
	}
	pool, err := projections.Open(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	known, err := projections.Known(ctx, pool, name, 0)
	if err != nil {
		return err
	}
	snapshots, err := forgetSnapshots(ctx, s, name)
	if err != nil {
		return err
	}
	if err := projections.Forget(ctx, pool, name, projectionsOf(name)...); err != nil {
		return err
	}
	fmt.Fprintf(std.out, "forgot the read models of the journal %s, %d positions and %d snapshots of it\n", name, len(known), snapshots)
	return nil
}

// projectionsOf returns what is projected of a journal.
func projectionsOf(name string) []projections.Projection {
	if name == identity.Rules().Journal() {
		return readmodels.Identity()
	}
	return readmodels.Trading()
}
