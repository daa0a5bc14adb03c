package settings

import (
	"context"
	"errors"
	"time"

	gocloud "gocloud.dev/blob"

	"github.com/perpetua-exchange/perpetua/streams/blob"
)

// mostRetention is the longest time for which stores lock an object.
const mostRetention = 100 * 365 * 24 * time.Hour

// ArchiveRetention returns how long the objects of full ranges of an archive are locked in the bucket at a URL. The error is a usage
// error, also if the store of the bucket can't lock objects.
func (s *Settings) ArchiveRetention(at string) (r blob.Retention, err error) {
	mode := blob.Mode(s.Archive.Mode)
	if mode != blob.Governance && mode != blob.Compliance {
		return r, Usagef("--archive-retention-mode takes %s or %s, not %q", blob.Governance, blob.Compliance, mode)
	}
	if s.Archive.Retention == none {
		return r, nil
	}
	age, ok := parseAge(s.Archive.Retention)
	if !ok || age < leastAge || age > mostRetention {
		return r, Usagef("--archive-retention takes days or a time, like 1827d or 43848h, of a day to a hundred years, or none, not %q", s.Archive.Retention)
	}
	if err := blob.CheckLockURL(at); err != nil {
		return r, Usagef("--archive-retention %s: %v", s.Archive.Retention, err)
	}
	return blob.Retention{For: age, Mode: mode}, nil
}

// checkArchiveRetention validates the text of the retention of the venue's own archive.
func (s *Settings) checkArchiveRetention() error {
	at, err := s.ArchiveBucketURL()
	if err == nil {
		_, err = s.ArchiveRetention(at)
	}
	return err
}

// CheckLocks asks the bucket of a retained archive whether it can lock objects. err reports a bucket that cannot. doubt reports a question
// that failed. Without a retention it asks nothing.
func CheckLocks(ctx context.Context, r blob.Retention, bucket *gocloud.Bucket, at string) (doubt, err error) {
	if r.For == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, locksWithin)
	defer cancel()
	err = blob.CheckLocks(ctx, bucket, at)
	if errors.Is(err, blob.ErrNoLocks) {
		return nil, Usagef("--archive-retention: %v", err)
	}
	return err, nil
}

// locksWithin limits the time of CheckLocks.
const locksWithin = 5 * time.Second
