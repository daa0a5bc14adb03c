package tools

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/local"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/streams/journal"
)

// seekWithin is how long what remembers positions may take to tell them: what it spares is often no longer.
const seekWithin = 5 * time.Second

// logStart returns the last position before a sequence that anything at hand remembers, for a reader that is not to
// begin with genesis: the reader holds the log against it, and goes on from there. It tells on err where that is.
func logStart(ctx context.Context, s *settings.Settings, name string, from int64, err io.Writer) journal.Position {
	ctx, cancel := context.WithTimeout(ctx, seekWithin)
	defer cancel()
	start, whose := journal.Before, ""
	for _, source := range []struct {
		whose string
		last  func(context.Context, *settings.Settings, string, int64) (journal.Position, error)
	}{{"the read models", lastAnchor}, {"a snapshot", lastSnapshot}} {
		p, failed := source.last(ctx, s, name, from-1)
		if failed != nil {
			fmt.Fprintf(err, "perpetua log: %s can't be asked for a position to start from: %v\n", source.whose, failed)
		} else if p.Sequence > start.Sequence {
			start, whose = p, source.whose
		}
	}
	if start.IsBefore() {
		fmt.Fprintf(err, "perpetua log: the chain is checked from its genesis, since nothing at hand remembers a position below %d\n", from)
	} else {
		fmt.Fprintf(err, "perpetua log: the chain is checked from %v, which %s remembered; --check-all checks it from its genesis\n", start, whose)
	}
	return start
}

// lastAnchor returns the read models' last position up to a sequence, if a database is at hand.
func lastAnchor(ctx context.Context, s *settings.Settings, name string, sequence int64) (journal.Position, error) {
	pool, err := databaseAtHand(ctx, s)
	if err != nil || pool == nil {
		return journal.Before, err
	}
	defer pool.Close()
	return projections.Anchor(ctx, pool, name, 0, sequence)
}

// databaseAtHand opens the database that the settings name, or that of the node which runs on the data folder; nil where
// there is none: a log is read without starting one.
func databaseAtHand(ctx context.Context, s *settings.Settings) (*pgxpool.Pool, error) {
	url := s.DatabaseURL
	if url == "" {
		_, running, err := folderOfLog(s)
		if err != nil || running.DatabaseURL == "" {
			return nil, err
		}
		url = running.DatabaseURL
	}
	return projections.Open(ctx, url)
}

// lastSnapshot returns the position of the last snapshot up to a sequence, if there is a bucket at hand.
func lastSnapshot(ctx context.Context, s *settings.Settings, name string, sequence int64) (journal.Position, error) {
	saved, err := openSaved(ctx, s)
	if err != nil || saved == nil {
		return journal.Before, err
	}
	defer saved.close()
	known, err := saved.snapshots.Positions(ctx, name, 0)
	last := journal.Before
	for _, p := range known {
		if p.Sequence <= sequence && p.Sequence > last.Sequence {
			last = p
		}
	}
	return last, err
}

// folderOfLog reports whether the data folder is of the log that is read, and which node runs on it. With brokers that
// are named, only a node that runs on the same says that it is: the folder may be of another venue.
func folderOfLog(s *settings.Settings) (ours bool, running local.RunFile, err error) {
	running, ok, err := local.ReadRunFile((&local.Folder{Dir: s.Data}).Path("run.json"))
	if named := s.Brokers(); err != nil || len(named) > 0 && !(ok && slices.Equal(named, running.Kafka)) {
		return false, local.RunFile{}, err
	}
	return true, running, nil
}
