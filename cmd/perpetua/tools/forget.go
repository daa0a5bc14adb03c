package tools

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/local"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/streams/snapshot"
	"github.com/perpetua-exchange/perpetua/streams/witness"
)

// ForgetLog deletes everything that was derived from a journal's log: its read models, its snapshots, its witnesses,
// all positions, and its base. It is the deliberate answer to LOG_DIVERGED if a log was lost for good: the next start accepts the log
// in its current state, or begins a new one.
func ForgetLog(ctx context.Context, args []string, std settings.IO) error {
	var name string
	var asJSON bool
	s, err := settings.Parse("admin forget-log", args, std, func(fs *flag.FlagSet) {
		fs.StringVar(&name, "journal", "", "journal to forget")
		settings.JSONFlag(fs, &asJSON)
	})
	if err != nil {
		return err
	}
	if name == "" {
		return settings.Usagef("--journal is needed")
	}
	j, err := journals.All().Of(name)
	if err != nil {
		return err
	}
	folder, err := local.OpenFolder(s.Data)
	if err != nil {
		return err
	}
	defer folder.Close()
	if err := checkStoresOfCopy(ctx, s); err != nil {
		return err
	}
	pool, closeRows, err := OpenReadModels(ctx, s)
	if err != nil {
		return err
	}
	defer closeRows()
	if err := needTablesOf(ctx, pool); err != nil {
		return err
	}
	known, err := projections.Known(ctx, pool, name, 0)
	if err != nil {
		return err
	}
	snapshots, witnesses, err := forgetSaved(ctx, s, name)
	if err != nil {
		return err
	}
	if err := projections.Forget(ctx, pool, name, j.Projections...); err != nil {
		return err
	}
	if err := s.Bases().Forget(name, 0); err != nil {
		return err
	}
	if err := s.ArchiveHeads().Forget(name, 0); err != nil {
		return err
	}
	if asJSON {
		return std.PrintJSON(forgotten{name, len(known), snapshots, witnesses})
	}
	fmt.Fprintf(std.Out, "forgot the read models of the journal %s, %d positions, %d snapshots and %d witnesses of it\n", name, len(known), snapshots, witnesses)
	return nil
}

// checkStoresOfCopy returns an error if another venue holds the fence of the log and the settings name a database or a bucket: these may
// be that venue's. A log that was lost has no location to compare.
func checkStoresOfCopy(ctx context.Context, s *settings.Settings) error {
	if s.DatabaseURL == "" && s.Stores.BlobURL == "" || !keysAtHand(s) || keysOfFollower(s) {
		return nil
	}
	id, location, err := locationOf(ctx, s)
	if err != nil {
		return ctx.Err()
	}
	f, err := readFence(ctx, s, id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("the key store does not tell whether this venue is a copy of another: %w", err)
	}
	if f.Location != location {
		return fmt.Errorf("this venue is fenced: it is a copy, and the database and the bucket may be those of the venue %s, which acts. "+
			"Give the copy its own; or, if that venue is gone for good, first enter %s", f.Venue, s.TakeOverCommand())
	}
	return nil
}

// forgotten is the JSON output of forget-log.
type forgotten struct {
	Journal   string `json:"journal"`
	Positions int    `json:"positions"`
	Snapshots int    `json:"snapshots"`
	Witnesses int    `json:"witnesses"`
}

// forgetSaved deletes the snapshots and the witnesses of a journal and returns their numbers.
func forgetSaved(ctx context.Context, s *settings.Settings, name string) (snapshots, witnesses int, err error) {
	bucket, err := s.OpenBucket(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer bucket.Close()
	for _, folder := range []string{"", snapshot.HistoryFolder} {
		n, err := snapshot.NewStore(snapshot.Config{Bucket: bucket, TopicPrefix: s.Kafka.Prefix, Folder: folder}).Forget(ctx, name, 0)
		if err != nil {
			return 0, 0, err
		}
		snapshots += n
	}
	witnesses, err = witness.NewStore(witness.Config{Bucket: bucket, TopicPrefix: s.Kafka.Prefix}).Forget(ctx, name, 0)
	return snapshots, witnesses, err
}
