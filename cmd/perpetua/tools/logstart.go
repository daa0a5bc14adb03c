package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/local"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/snapshot"
)

// seekWithin bounds the search for a position to start from: reading from genesis often takes no longer.
const seekWithin = 5 * time.Second

// startBefore returns the last known position before a sequence, for a reader that need not start where the log begins, after
// the position begins. The reader checks that the log holds the position. startBefore prints on out which position it is.
func (h *atHand) startBefore(ctx context.Context, name string, sequence int64, begins record.Position, out io.Writer) record.Position {
	ctx, cancel := context.WithTimeout(ctx, seekWithin)
	defer cancel()
	start, whose := begins, ""
	for _, source := range []struct {
		whose string
		last  func(context.Context, string, int64) (record.Position, error)
	}{{"the read models", h.lastAnchor}, {"a snapshot", h.lastSnapshot}} {
		p, failed := source.last(ctx, name, sequence-1)
		if failed != nil {
			fmt.Fprintf(out, "perpetua: %s can't be asked for a position to start from: %v\n", source.whose, failed)
		} else if p.Sequence > start.Sequence {
			start, whose = p, source.whose
		}
	}
	switch {
	case whose != "":
		fmt.Fprintf(out, "perpetua: the chain is checked from %v, which %s remembered; --check-all checks it from its beginning\n", start, whose)
	case !begins.IsBefore():
		fmt.Fprintf(out, "perpetua: the chain is checked from record %d, the base of the log: the archive holds what is before it\n", begins.Sequence+1)
	default:
		fmt.Fprintf(out, "perpetua: the chain is checked from its genesis, since nothing at hand remembers a position below %d\n", sequence)
	}
	return start
}

// lastAnchor returns the last position in the read models up to a sequence.
func (h *atHand) lastAnchor(ctx context.Context, name string, sequence int64) (record.Position, error) {
	if h.rows == nil {
		return record.Before, nil
	}
	return projections.Anchor(ctx, h.rows, name, 0, sequence)
}

// lastSnapshot returns the position of the last snapshot up to a sequence, with those of the past.
func (h *atHand) lastSnapshot(ctx context.Context, name string, sequence int64) (record.Position, error) {
	last := record.Before
	if h.saved == nil {
		return last, nil
	}
	var failed error
	for _, store := range []*snapshot.Store{h.saved.snapshots, h.saved.history} {
		known, err := store.Positions(ctx, name, 0)
		failed = errors.Join(failed, err)
		for _, p := range known {
			if p.Sequence <= sequence && p.Sequence > last.Sequence {
				last = p
			}
		}
	}
	return last, failed
}

// rowsAtHand opens the database that the settings name. If the log is that of the data folder, it opens the folder's
// database: that of the node that runs on the folder, or else one served until done is called. Without a database, the
// pool is nil; reading a log does not create one.
func rowsAtHand(ctx context.Context, s *settings.Settings) (pool *pgxpool.Pool, done func(), err error) {
	done = func() {}
	if s.DatabaseURL == "" {
		ours, running, err := folderOfLog(s)
		if err != nil || !ours {
			return nil, done, err
		}
		_, missing := os.Stat((&local.Folder{Dir: s.Data}).Path("postgres"))
		if idle := running.PID == 0; idle && missing != nil || !idle && running.DatabaseURL == "" {
			return nil, done, nil
		}
	}
	pool, closeRows, err := OpenReadModels(ctx, s)
	if err != nil {
		return nil, done, fmt.Errorf("the rows can't be asked which positions of the log are known: %w", err)
	}
	return pool, closeRows, nil
}

// folderOfLog reports whether the data folder belongs to the log that is read, and returns the run.json of the node on
// it. If the settings name brokers, the folder belongs to their log only if a node on it uses the same brokers: it may
// be another venue's folder.
func folderOfLog(s *settings.Settings) (ours bool, running local.RunFile, err error) {
	running, ok, err := local.ReadRunFile((&local.Folder{Dir: s.Data}).Path("run.json"))
	if named := s.Brokers(); err != nil || len(named) > 0 && !(ok && slices.Equal(named, running.Kafka)) {
		return false, local.RunFile{}, err
	}
	return true, running, nil
}

// followed returns what the node on the data folder follows, if it is a follower and the folder belongs to the log that is read:
// local.FollowsBrokers or local.FollowsArchive. Otherwise it returns "".
func followed(s *settings.Settings) string {
	if ours, _, err := folderOfLog(s); err != nil || !ours {
		return ""
	}
	return (&local.Folder{Dir: s.Data}).Follows()
}

// keysOfFollower reports whether the key store of the settings is that of a follower on the data folder.
func keysOfFollower(s *settings.Settings) bool {
	return s.Stores.KeyURL == "" && (&local.Folder{Dir: s.Data}).Follows() != ""
}
