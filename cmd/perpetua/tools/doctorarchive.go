package tools

import (
	"context"
	"errors"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/local"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/streams/archive"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// checkArchives checks the archive of each journal.
func (d *diagnosis) checkArchives(ctx context.Context, s *settings.Settings, client *journal.Client, saved *saved, table journals.Table) {
	ctx, cancel := context.WithTimeout(ctx, chainWithin)
	defer cancel()
	all := newArchives(s)
	defer all.close()
	for _, j := range table {
		trimmed, err := client.TrimmedAt(ctx, j.Name(), 0)
		switch {
		case err != nil:
			d.add("archive "+j.Name(), isFailed, "%v", err)
		case trimmed != nil:
			d.checkTrimmed(ctx, client, j.Name(), trimmed.Sequence)
		case s.Stores.ArchiveURL != "" || saved != nil: // otherwise checkBucket has reported that there is no bucket
			d.checkArchived(ctx, s, client, j, all)
		}
	}
}

// checkTrimmed checks that the archive has the records before a sequence, which were trimmed from a journal.
func (d *diagnosis) checkTrimmed(ctx context.Context, client *journal.Client, name string, before int64) {
	check := "archive " + name
	switch _, lacks, err := client.Beginning(ctx, name, 0); {
	case err != nil:
		d.add(check, isFailed, "%v", err)
	case lacks != nil:
		d.add(check, isFailed, "the records before %d were trimmed from the log, and the archive does not have them; --archive-url names it: %v", before, lacks)
	default:
		d.add(check, isGood, "it has the %d records that were trimmed from the log", before)
	}
}

// checkArchived checks the manifests of the archive of a journal that was not trimmed, and that the log holds the last record of the full
// ranges and of the tail. It reports nothing good of an archive without full ranges. The node of a follower may not have copied that record yet, and has
// compared the records that it copied with the archive.
func (d *diagnosis) checkArchived(ctx context.Context, s *settings.Settings, client *journal.Client, j journals.Journal, all *archives) {
	check := "archive " + j.Name()
	cfg, err := all.config(ctx, j.Name(), 0)
	switch {
	case err != nil && keysOfFollower(s) && s.Stores.ArchiveKey == "":
		return // only a venue's own key opens an archive without that key
	case err != nil:
		d.add(check, isNote, "it was not checked: %v", err)
		return
	}
	a, err := archive.OpenRanges(ctx, cfg)
	if err != nil {
		d.add(check, isFailed, "%v", err)
		return
	}
	head := a.Head()
	holds := ", which the log holds"
	if followed(s) == local.FollowsArchive {
		holds = ", from which this node copies its log"
	} else if err := holdsArchive(ctx, client, j, a); err != nil {
		var diverged *record.DivergedError
		if errors.As(err, &diverged) {
			d.add(check, isFailed, "it is not the archive of this log, or the log has lost its end: %v", err)
		} else {
			d.add(check, isFailed, "it was not compared with the log: %v", err)
		}
		return
	}
	if head == nil {
		return
	}
	if err := a.TailDamage(); err != nil {
		d.add(check, isWarning, "the records after sequence %d are not archived: %v", head.Position().Sequence, err)
		return
	}
	d.add(check, isGood, "it has the %d records up to the end of its last full range%s", head.Base.Sequence, holds)
}

// holdsArchive returns an error unless a log holds the ends of the full ranges and of the tail of an archive.
func holdsArchive(ctx context.Context, client *journal.Client, j journals.Journal, a *archive.Archive) error {
	if head := a.Head(); head != nil {
		if err := client.Holds(ctx, j.Rules, 0, head.Position()); err != nil {
			return err
		}
	}
	if at := a.Tail().Position(); !at.IsBefore() {
		return client.Holds(ctx, j.Rules, 0, at)
	}
	return nil
}
