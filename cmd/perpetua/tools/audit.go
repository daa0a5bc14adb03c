package tools

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/local"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/postgres"
	"github.com/perpetua-exchange/perpetua/projections/readmodels"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// auditSchema is the schema into which an audit replays the log.
const auditSchema = "audited"

// Audit reads every journal from its genesis, verifies its chain, keys, headers and timestamps, and compares every
// column of every table in Postgres with the result of replaying the log. It prints the differences and fails if there
// are any. The venue may run during an audit. `perpetua audit verify` is VerifyLog, and
// `perpetua audit what-if` is WhatIf.
func Audit(ctx context.Context, args []string, std settings.IO) error {
	if len(args) > 0 {
		switch args[0] {
		case "verify":
			return VerifyLog(ctx, args[1:], std)
		case "what-if":
			return WhatIf(ctx, args[1:], std)
		}
	}
	var asJSON bool
	s, err := settings.Parse("audit", args, std, func(fs *flag.FlagSet) { settings.JSONFlag(fs, &asJSON) })
	if err != nil {
		return err
	}
	at, differences, err := auditRows(ctx, s, std)
	if err != nil {
		return err
	}
	if asJSON {
		err = std.PrintJSON(audited{len(differences) == 0, at, append([]string{}, differences...)})
	} else {
		for _, d := range differences {
			fmt.Fprintln(std.Out, d)
		}
	}
	switch {
	case err != nil:
		return err
	case len(differences) > 0:
		return fmt.Errorf("%d differences between the read models and the log at %s", len(differences), positions(at))
	case !asJSON:
		fmt.Fprintf(std.Out, "the read models equal the log at %s\n", positions(at))
	}
	return nil
}

// auditRows compares the rows with the log. It returns the positions of the rows and the differences.
func auditRows(ctx context.Context, s *settings.Settings, std settings.IO) ([]record.LogPosition, []string, error) {
	client, url, live, closeBoth, err := openLogAndRows(ctx, s, std)
	if err != nil {
		return nil, nil, err
	}
	defer closeBoth()
	scratch, remove, err := projections.OpenScratch(ctx, url, auditSchema)
	if err != nil {
		return nil, nil, err
	}
	defer remove()
	return readmodels.Audit{Live: live, Replay: journals.All().Replay(client, scratch, std.Progress())}.Run(ctx)
}

// audited is the JSON output of an audit.
type audited struct {
	Equal       bool                 `json:"equal"`
	Positions   []record.LogPosition `json:"positions"`
	Differences []string             `json:"differences"`
}

// positions formats the positions of journals.
func positions(at []record.LogPosition) string {
	texts := make([]string, len(at))
	for i, p := range at {
		texts[i] = p.String()
	}
	return strings.Join(texts, ", ")
}

// OpenReadModels returns a pool on the database that the settings name.
func OpenReadModels(ctx context.Context, s *settings.Settings) (*pgxpool.Pool, func(), error) {
	url, stop, err := findDatabase(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	pool, err := projections.Open(ctx, url)
	if err != nil {
		stop()
		return nil, nil, err
	}
	return pool, func() { pool.Close(); stop() }, nil
}

// findDatabase returns the URL of the database: the one that the settings name, that of the node that runs on the data
// folder, or else the folder's database, served until stop is called.
func findDatabase(ctx context.Context, s *settings.Settings) (url string, stop func(), err error) {
	if s.DatabaseURL != "" {
		return s.DatabaseURL, func() {}, nil
	}
	folder := local.Folder{Dir: s.Data}
	running, ok, err := local.ReadRunFile(folder.Path("run.json"))
	if err != nil {
		return "", nil, err
	}
	if ok {
		return running.DatabaseURL, func() {}, nil
	}
	server, err := postgres.Start(ctx, postgres.Config{Dir: folder.Path("postgres"), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return "", nil, err
	}
	return server.URL(), func() { server.Close() }, nil
}
