package tools

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/local"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/snapshot"
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

// lastAnchor returns the read models' last position up to a sequence, if a database is at hand: the one that the
// settings name, or that of the node which runs on the data folder.
func lastAnchor(ctx context.Context, s *settings.Settings, name string, sequence int64) (journal.Position, error) {
	url := s.DatabaseURL
	if url == "" {
		_, running, err := folderOfLog(s)
		if err != nil {
			return journal.Before, err
		}
		if url = running.DatabaseURL; url == "" {
			return journal.Before, nil
		}
	}
	pool, err := projections.Open(ctx, url)
	if err != nil {
		return journal.Before, err
	}
	defer pool.Close()
	return projections.Anchor(ctx, pool, name, 0, sequence)
}

// lastSnapshot returns the position of the last snapshot up to a sequence, if there is a bucket: the one that the
// settings name, or that in the data folder.
func lastSnapshot(ctx context.Context, s *settings.Settings, name string, sequence int64) (journal.Position, error) {
	if s.BlobURL == "" {
		ours, _, err := folderOfLog(s)
		if err != nil || !ours {
			return journal.Before, err
		}
		if _, err := os.Stat((&local.Folder{Dir: s.Data}).Path(blob.Folder)); err != nil {
			return journal.Before, nil // nothing was ever saved, and a look makes no folder
		}
	}
	bucket, err := s.OpenBucket(ctx)
	if err != nil {
		return journal.Before, err
	}
	defer bucket.Close()
	store := snapshot.NewStore(snapshot.Config{Bucket: bucket, TopicPrefix: s.TopicPrefix, Logger: slog.New(slog.DiscardHandler)})
	known, err := store.Positions(ctx, name, 0)
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
