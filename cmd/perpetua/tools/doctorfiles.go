package tools

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/projections/lake"
	"github.com/perpetua-exchange/perpetua/projections/marketdata"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/journal"
)

// checkLake compares the files that the DuckLake catalog names with the bucket of the archive.
func (d *diagnosis) checkLake(ctx context.Context, s *settings.Settings, rows *pgxpool.Pool, saved *saved) {
	if rows == nil || (s.Stores.ArchiveURL == "" && saved == nil) {
		return // reported by the checks of Postgres and the bucket
	}
	store, done, err := s.OpenArchive(ctx)
	if err != nil {
		return // reported by checkArchive
	}
	defer done()
	d.checkFiles(ctx, "lake", store, s.LakePrefix(), func(ctx context.Context) ([]blob.Expected, error) {
		return lake.Catalog{Pool: rows}.Files(ctx, s.LakePrefix())
	})
}

// checkDailyFiles compares the daily files with their manifests.
func (d *diagnosis) checkDailyFiles(ctx context.Context, s *settings.Settings, client *journal.Client, saved *saved) {
	if saved == nil {
		return // reported by checkBucket
	}
	store := blob.NewStore(saved.bucket)
	d.checkFiles(ctx, "daily files", store, s.PublicDataPrefix(), func(ctx context.Context) ([]blob.Expected, error) {
		id, founded, err := client.JournalID(ctx, journals.Trading)
		if err != nil || !founded {
			return nil, err
		}
		return marketdata.NewStore(store, s.PublicDataPrefix(), id).Files(ctx)
	})
}

// checkFiles compares the files that named returns with a bucket. No files add no finding.
func (d *diagnosis) checkFiles(ctx context.Context, check string, store *blob.Store, prefix string, named func(context.Context) ([]blob.Expected, error)) {
	ctx, cancel := context.WithTimeout(ctx, chainWithin)
	defer cancel()
	files, err := named(ctx)
	if err != nil {
		d.add(check, isFailed, "%v", err)
		return
	}
	is, err := store.Check(ctx, prefix, files)
	d.judgeFiles(check, is, err, ctx.Err() != nil)
}
