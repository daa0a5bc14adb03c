package tools

import (
	"context"

	gocloud "gocloud.dev/blob"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/streams/blob"
)

// checkLocks checks that the bucket of the archive can lock objects, if the settings ask for that, and how the archives are locked.
func (d *diagnosis) checkLocks(ctx context.Context, s *settings.Settings, saved *saved) {
	const check = "archive locks"
	at, err := s.ArchiveBucketURL()
	if err != nil || s.Stores.ArchiveURL == "" && saved == nil {
		return // reported by checkBucket
	}
	retained, err := s.ArchiveRetention(at)
	if err != nil {
		d.add(check, isFailed, "%v", err)
		return
	}
	if !blob.TellsLocks(at) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, chainWithin)
	defer cancel()
	bucket, err := blob.Open(ctx, at)
	if err != nil {
		return // reported by checkArchive
	}
	defer bucket.Close()
	d.judgeLockable(ctx, check, retained, bucket, at)
	for _, j := range journals.All() {
		name := check + " " + j.Name()
		found, err := findLocks(ctx, at, s.ArchiveConfig(blob.NewStore(bucket), nil, j.Name(), 0))
		if err != nil {
			d.add(name, isFailed, "%v", err)
			continue
		}
		d.judgeLocks(name, found, retained)
	}
}

// judgeLockable judges whether a bucket can lock what it is asked to lock.
func (d *diagnosis) judgeLockable(ctx context.Context, check string, retained blob.Retention, bucket *gocloud.Bucket, at string) {
	switch doubt, err := settings.CheckLocks(ctx, retained, bucket, at); {
	case err != nil:
		d.add(check, isFailed, "%v", err)
	case doubt != nil:
		d.add(check, isWarning, "the bucket does not tell whether it can lock objects: %v", doubt)
	case retained.For > 0:
		d.add(check, isGood, "the bucket can lock objects")
	}
}

// judgeLocks judges how an archive is locked. Its store or its user may not tell locks, so one that is not seen fails nothing.
func (d *diagnosis) judgeLocks(check string, found *locks, retained blob.Retention) {
	switch {
	case found == nil:
	case found.Open == 0:
		d.add(check, isGood, "%v", found)
	case retained.For == 0:
		d.add(check, isNote, "%v; --archive-retention locks new ones", found)
	default:
		d.add(check, isWarning, "%v; those that were archived before --archive-retention was set stay without a lock until you lock them", found)
	}
}
