package tools

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"

	"github.com/jackc/pgx/v5/pgxpool"
	gocloud "gocloud.dev/blob"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/local"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/seal"
	"github.com/perpetua-exchange/perpetua/streams/snapshot"
	"github.com/perpetua-exchange/perpetua/streams/witness"
)

// holdLog holds the logs of journals against every position that is known of them, as an owner does before a term: in a
// database, if one is given, and in the bucket, if it is at hand. A log that lost its end is LOG_DIVERGED for whoever reads
// it, and not only for the venue.
func holdLog(ctx context.Context, s *settings.Settings, client *journal.Client, db projections.Querier, table ...journals.Journal) error {
	var known []journal.Known
	if db != nil {
		known = append(known, projections.KnownTo{DB: db})
	}
	saved, err := openSaved(ctx, s)
	if err != nil {
		return fmt.Errorf("the bucket can't be asked which positions of the log are known: %w", err)
	}
	if saved != nil {
		defer saved.close()
		known = append(known, saved.snapshots, saved.witnesses)
	}
	for _, j := range table {
		if err := client.HoldsKnown(ctx, j.Rules, 0, known...); err != nil {
			return err
		}
	}
	return nil
}

// saved is what the bucket keeps of the log.
type saved struct {
	bucket    *gocloud.Bucket
	snapshots *snapshot.Store
	witnesses *witness.Store
}

// openSaved opens the bucket that the settings name, or that in the data folder if the folder is of the log that is read;
// nil where there is none.
func openSaved(ctx context.Context, s *settings.Settings) (*saved, error) {
	if s.BlobURL == "" {
		ours, _, err := folderOfLog(s)
		if err != nil || !ours {
			return nil, err
		}
		if _, err := os.Stat((&local.Folder{Dir: s.Data}).Path(blob.Folder)); err != nil {
			return nil, nil // nothing was ever saved, and a look makes no folder
		}
	}
	box, err := seal.Open(seal.Options{Folder: s.Data, Value: s.MasterKey})
	if err != nil {
		return nil, err
	}
	bucket, err := s.OpenBucket(ctx)
	if err != nil {
		return nil, err
	}
	quiet := slog.New(slog.DiscardHandler)
	return &saved{bucket,
		snapshot.NewStore(snapshot.Config{Bucket: bucket, Key: box.Derive("snapshot"), TopicPrefix: s.TopicPrefix, Logger: quiet}),
		witness.NewStore(witness.Config{Bucket: bucket, Key: box.Derive("witness"), TopicPrefix: s.TopicPrefix, Logger: quiet})}, nil
}

func (s *saved) close() { s.bucket.Close() }

// openLogAndRows opens a log and the live rows that belong to it, held against each other and against everything else that
// is known of the log, for tools that make rows anew. The caller closes both at once.
func openLogAndRows(ctx context.Context, s *settings.Settings) (client *journal.Client, url string, live *pgxpool.Pool, undo func(), err error) {
	var opened []func()
	closeBoth := func() {
		for _, shut := range slices.Backward(opened) { // the pool before the database that it is of
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
	if err = holdLog(ctx, s, client, live, journals.All()...); err != nil {
		return nil, "", nil, nil, err
	}
	return client, url, live, closeBoth, nil
}
