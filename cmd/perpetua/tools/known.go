package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"

	"github.com/jackc/pgx/v5/pgxpool"
	gocloud "gocloud.dev/blob"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/local"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/streams/archive"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/snapshot"
	"github.com/perpetua-exchange/perpetua/streams/witness"
)

// atHand gives access to the known positions of a log, as far as a command can find their stores: the read models,
// snapshots and witnesses. An owner checks the log against them before a term. Tools that only read the log do the
// same, so that they also report LOG_DIVERGED for a log that lost its end.
type atHand struct {
	rows   *pgxpool.Pool   // nil if there is no database
	heads  []archive.Heads // copies of the heads of archives
	saved  *saved          // nil if there is no bucket
	failed error           // error of a store that exists and cannot be read
	close  func()
}

// openAtHand opens the stores that the settings name and, if the log is that of the data folder, those in the folder.
// It starts the folder's Postgres if no node runs on it.
func openAtHand(ctx context.Context, s *settings.Settings) *atHand {
	rows, done, failed := rowsAtHand(ctx, s)
	h := withRows(ctx, s, rows)
	saved := h.close
	h.failed, h.close = errors.Join(failed, h.failed), func() { saved(); done() }
	return h
}

// withRows is openAtHand for a caller that has opened the database.
func withRows(ctx context.Context, s *settings.Settings, rows *pgxpool.Pool) *atHand {
	h := &atHand{rows: rows, close: func() {}}
	if rows != nil {
		h.heads = append(h.heads, projections.ArchiveHeads{Pool: rows})
	}
	if ours, _, err := folderOfLog(s); err == nil && ours {
		h.heads = append(h.heads, s.ArchiveHeads())
	}
	if h.saved, h.failed = openSaved(ctx, s); h.saved != nil {
		h.close = h.saved.close
	}
	if h.failed != nil {
		h.failed = fmt.Errorf("the bucket can't be asked which positions of the log are known: %w", h.failed)
	}
	return h
}

// addFolderBases has a client find bases in the data folder, if that belongs to the log.
func addFolderBases(s *settings.Settings, client *journal.Client) error {
	ours, _, err := folderOfLog(s)
	if err == nil && ours {
		client.AddBases(s.BaseSources()...)
	}
	return err
}

// addBases has a client find bases in the database, if there is one.
func (h *atHand) addBases(client *journal.Client) {
	if h.rows != nil {
		client.AddBases(projections.Bases{Pool: h.rows})
	}
}

// hold compares the logs of journals with every known position. A *journal.DivergedError means that a log is wrong; any
// other error means that a store could not be read. Missing stores are reported on out.
func (h *atHand) hold(ctx context.Context, client *journal.Client, out io.Writer, table ...journals.Journal) error {
	h.tellMissing(out)
	failed := h.failed
	known := h.known(client)
	for _, j := range table {
		err := client.HoldsKnown(ctx, j.Rules, 0, known...)
		if record.Final(err) {
			return err
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

// tellMissing reports the stores of known positions that could not be opened.
func (h *atHand) tellMissing(out io.Writer) {
	if h.rows == nil {
		fmt.Fprintln(out, "perpetua: the log is held against no rows, since no Postgres is at hand; --database-url names it")
	}
	if h.saved == nil && h.failed == nil {
		fmt.Fprintln(out, "perpetua: the log is held against no snapshots and witnesses, since no bucket is at hand; --blob-url names it")
	}
}

// known returns the sources of positions that could be opened.
func (h *atHand) known(client *journal.Client) []journal.Known {
	all := archive.Known(client, h.heads...)
	if h.rows != nil {
		all = append(all, projections.KnownTo{DB: h.rows}, projections.SignedTrees{Pool: h.rows})
	}
	if h.saved != nil {
		all = append(all, h.saved.snapshots, h.saved.witnesses)
	}
	return all
}

// holdOrTell is hold for a command that continues if a store cannot be read, and prints that on out.
func (h *atHand) holdOrTell(ctx context.Context, client *journal.Client, out io.Writer, table ...journals.Journal) error {
	err := h.hold(ctx, client, out, table...)
	if err == nil || record.Final(err) {
		return err
	}
	fmt.Fprintf(out, "perpetua: the log is not held against every known position: %v\n", err)
	return nil
}

// saved is the part of the bucket that concerns logs.
type saved struct {
	bucket    *gocloud.Bucket
	snapshots *snapshot.Store
	history   *snapshot.Store // snapshots of the past
	witnesses *witness.Store
}

// openSaved opens the bucket that the settings name, or that in the data folder if the folder belongs to the log that
// is read. It returns nil if neither exists.
func openSaved(ctx context.Context, s *settings.Settings) (*saved, error) {
	if s.Stores.BlobURL == "" {
		ours, _, err := folderOfLog(s)
		if err != nil || !ours {
			return nil, err
		}
		if _, err := os.Stat((&local.Folder{Dir: s.Data}).Path(blob.Folder)); err != nil {
			return nil, nil // nothing was ever saved, and opening it would create the folder
		}
	}
	box, err := s.FindMaster(ctx)
	if err != nil {
		return nil, err
	}
	bucket, err := s.OpenBucket(ctx)
	if err != nil {
		return nil, err
	}
	quiet := slog.New(slog.DiscardHandler)
	config := snapshot.Config{Bucket: bucket, Key: box.Derive("snapshot"), TopicPrefix: s.Kafka.Prefix, Logger: quiet}
	past := config
	past.Folder = snapshot.HistoryFolder
	return &saved{bucket, snapshot.NewStore(config), snapshot.NewStore(past),
		witness.NewStore(witness.Config{Bucket: bucket, Key: box.Derive("witness"), TopicPrefix: s.Kafka.Prefix, Logger: quiet})}, nil
}

func (s *saved) close() { s.bucket.Close() }

// openLogAndRows opens a log and its live rows for a tool that rebuilds rows. It checks the log against the rows and
// all other known positions. The caller must close both with undo.
func openLogAndRows(ctx context.Context, s *settings.Settings, std settings.IO) (client *journal.Client, url string, live *pgxpool.Pool, undo func(), err error) {
	var opened []func()
	closeBoth := func() {
		for _, shut := range slices.Backward(opened) { // the pool before its database
			shut()
		}
	}
	defer func() {
		if err != nil {
			closeBoth()
		}
	}()
	client, stopLog, err := OpenLog(ctx, s)
	if err != nil {
		return nil, "", nil, nil, err
	}
	opened = append(opened, stopLog)
	url, stopDatabase, err := findDatabase(ctx, s)
	if err != nil {
		return nil, "", nil, nil, err
	}
	opened = append(opened, stopDatabase)
	if live, err = projections.Open(ctx, url); err != nil {
		return nil, "", nil, nil, err
	}
	opened = append(opened, live.Close)
	client.AddBases(projections.Bases{Pool: live})
	if err = holdAll(ctx, s, client, live, std.Err); err != nil {
		return nil, "", nil, nil, err
	}
	if err = needTablesOf(ctx, live); err != nil {
		return nil, "", nil, nil, err
	}
	return client, url, live, closeBoth, nil
}

// holdAll checks the logs of all journals against the live rows and the bucket. All stores must answer.
func holdAll(ctx context.Context, s *settings.Settings, client *journal.Client, live *pgxpool.Pool, out io.Writer) error {
	h := withRows(ctx, s, live)
	defer h.close()
	return h.hold(ctx, client, out, journals.All()...)
}

// keepHeads renews the copies of the heads of the venue's archives, as the role archive does. A trim goes no further than the oldest
// copy. A node that runs on the data folder keeps the copy there itself.
func keepHeads(ctx context.Context, s *settings.Settings, archives []archive.Config) error {
	rows, done, failed := rowsAtHand(ctx, s)
	defer done()
	var copies []archive.Heads
	if rows != nil {
		copies = append(copies, projections.ArchiveHeads{Pool: rows})
	}
	if ours, running, err := folderOfLog(s); err == nil && ours && running.PID == 0 {
		copies = append(copies, s.ArchiveHeads())
	}
	for _, cfg := range archives {
		a, err := archive.Open(ctx, cfg)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", cfg.Journal, err))
			continue
		}
		h := a.Head()
		if h == nil {
			continue
		}
		for _, copied := range copies {
			if err := copied.Keep(ctx, *h); err != nil {
				failed = errors.Join(failed, fmt.Errorf("%s: its head is not kept in %s: %w", cfg.Journal, copied, err))
			}
		}
	}
	if failed != nil {
		return fmt.Errorf("the archive is complete, but not all copies of its head are renewed: %w", failed)
	}
	return nil
}
