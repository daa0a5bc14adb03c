package node

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/streams/archive"
	"github.com/perpetua-exchange/perpetua/streams/base"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/trim"
	"github.com/perpetua-exchange/perpetua/streams/wholelog"
)

// trimEvery is the time between two automatic trims.
const trimEvery = 10 * time.Minute

// archiveStore returns the bucket with the archive. It is the node's own bucket unless the settings name another one.
func (s *stores) archiveStore(ctx context.Context, c Config) (archive.Store, error) {
	if c.Settings.Stores.ArchiveURL == "" {
		return blob.NewStore(s.snapshots.bucket), nil
	}
	bucket, err := blob.Open(ctx, c.Settings.Stores.ArchiveURL)
	if err != nil {
		return nil, err
	}
	s.archived = bucket
	return blob.NewStore(bucket), nil
}

// openHistory has the node's readers read the records before the base of a trimmed log from the archive.
func (s *stores) openHistory(ctx context.Context, c Config) (err error) {
	if s.archive, err = s.archiveStore(ctx, c); err != nil {
		return err
	}
	box := c.Box
	if c.Follow != nil {
		if box = c.Follow.Archive; box == nil {
			return nil
		}
	}
	s.client.SetHistory(wholelog.Archives{Config: func(_ context.Context, name string, partition int32) (archive.Config, error) {
		return c.Settings.ArchiveConfig(s.archive, box, name, partition), nil
	}})
	return nil
}

// trimming returns what a trim of the node's logs needs.
func (n *Node) trimming() journals.Trimming {
	s := &n.stores
	trimmer := n.Trimmer
	if trimmer == nil {
		trimmer = s.client.Trimmer()
	}
	return journals.Trimming{Client: s.client, Trimmer: trimmer, Rows: s.pool, Snapshots: s.snapshots.store, Known: s.known(n.Config),
		Heads:   []archive.Heads{projections.ArchiveHeads{Pool: s.brief}, n.Settings.ArchiveHeads()},
		Keepers: []base.Keeper{projections.Bases{Pool: s.brief}, n.folderBases()}, TLogHost: n.Settings.TLog.Host, Witnesses: n.policy,
		Archive: func(name string) archive.Config { return n.Settings.ArchiveConfig(s.archive, n.Box, name, 0) }}
}

// trims reports whether this node trims the logs. Several nodes may: they repeat no trim.
func (n *Node) trims() bool {
	p, err := n.Settings.TrimPolicy()
	return err == nil && p.Auto && n.Roles.Projector && n.Known == nil && n.Follow == nil
}

// trimLogs trims the logs at intervals until the context ends. Nothing depends on it, so errors are logged and tried again.
func (n *Node) trimLogs(ctx context.Context) error {
	p, err := n.Settings.TrimPolicy()
	if err != nil {
		return err
	}
	for {
		select { // first: a node that starts has other work
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(trimEvery):
		}
		t := n.trimming()
		for _, f := range n.followers {
			for more := true; more; {
				more = n.trimSome(ctx, t, f, trim.Policy{After: p.After, Quorum: p.Quorum})
			}
		}
	}
}

// TrimCopy trims the logs of a node that copies the archive of a venue to its own broker, if the settings have a node trim. It trims a
// few ranges of each, and returns true if there may be more. The caller MUST NOT copy at the same time, because a copy compares the
// archive with the topics. Errors are logged. Only the venue has the cosignatures that a quorum asks for, and it has them before it
// trims its own log.
func (n *Node) TrimCopy(ctx context.Context) (more bool) {
	p, err := n.Settings.TrimPolicy()
	if err != nil || !p.Auto {
		return false
	}
	t := n.trimming()
	t.Witnesses = nil
	t.Archive = func(name string) archive.Config {
		return n.Settings.ArchiveConfig(n.stores.archive, n.Follow.Archive, name, 0)
	}
	for _, f := range n.followers {
		more = n.trimSome(ctx, t, f, trim.Policy{After: p.After}) || more
	}
	return more
}

// trimSome trims a few ranges of a log. It returns true if there may be more.
func (n *Node) trimSome(ctx context.Context, t journals.Trimming, f *follower, p trim.Policy) (more bool) {
	report, err := t.Run(ctx, f.Journal, p, true, nil)
	logTrim(ctx, n.Logger.With("part", "trim", "journal", f.Name()), report, err)
	return err == nil && report.Trimmed() && ctx.Err() == nil
}

func logTrim(ctx context.Context, log *slog.Logger, r trim.Report, err error) {
	switch {
	case ctx.Err() != nil:
	case err != nil:
		log.Warn("the log is not trimmed", "error", err)
	case r.Trimmed():
		log.Info("trimmed the log", "from", r.From, "to", r.To, "compared", r.Compared, "start_offset", r.Start)
	default:
		for _, l := range r.Why {
			log.Debug("the log is not trimmed further", "from", l.First, "reason", l.Reason)
		}
	}
}

// archiveWait is how long a node waits for an archive after its start.
const archiveWait = time.Minute

// checkArchives warns of archives that lack records that were trimmed from the logs, or can't be read. The node runs without them,
// but can't answer questions about the past.
func (n *Node) checkArchives(ctx context.Context) error {
	for _, f := range n.followers {
		within, cancel := context.WithTimeout(ctx, archiveWait)
		err := n.stores.client.Complete(within, f.Name(), 0)
		cancel()
		log := n.archiveLog(f.Name())
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, journal.ErrHistory):
			log.Warn("the archive does not have the records that were trimmed from the log; --archive-url names it", "error", err)
		default:
			log.Warn("the archive with the records that were trimmed from the log can't be read", "error", err)
		}
	}
	return nil
}
