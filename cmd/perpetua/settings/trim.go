package settings

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/perpetua-exchange/perpetua/streams/archive"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// TrimPolicy says when the log is trimmed.
type TrimPolicy struct {
	Auto   bool          // a node trims it by itself
	After  time.Duration // age from which records may be deleted
	Quorum int           // cosignatures that a checkpoint needs; 0 for none
}

// TrimPolicy returns the settings of trims. The error is a usage error.
func (s *Settings) TrimPolicy() (p TrimPolicy, err error) {
	switch s.Trim.Auto {
	case "on":
		p.Auto = true
	case "off":
	case "auto":
		p.Auto = len(s.Brokers()) == 0
	default:
		return p, Usagef("--trim takes on, off or auto, not %q", s.Trim.Auto)
	}
	if p.After, err = time.ParseDuration(s.Trim.After); err != nil || p.After < 0 {
		return p, Usagef("--trim-after takes a time like 48h, not %q", s.Trim.After)
	}
	if s.Trim.Quorum == "none" {
		return p, nil
	}
	if p.Quorum, err = strconv.Atoi(s.Trim.Quorum); err != nil || p.Quorum < 1 {
		return p, Usagef("--trim-quorum takes none or a number from 1 on, not %q", s.Trim.Quorum)
	}
	return p, nil
}

// ArchiveBucketURL returns the URL of the bucket with the archive: the configured one, or the venue's bucket.
func (s *Settings) ArchiveBucketURL() (string, error) {
	if s.Stores.ArchiveURL != "" {
		return s.Stores.ArchiveURL, nil
	}
	return s.BucketURL()
}

// OpenArchive opens the bucket with the archive, and creates no folder for it. The caller calls done at the end.
func (s *Settings) OpenArchive(ctx context.Context) (_ archive.Store, done func(), err error) {
	at, err := s.ArchiveBucketURL()
	if err != nil {
		return nil, nil, err
	}
	bucket, err := blob.Open(ctx, Existing(at))
	if err != nil {
		return nil, nil, err
	}
	return blob.NewStore(bucket), func() { bucket.Close() }, nil
}

// Existing returns the URL with which blob.Open reports a missing folder as an error instead of creating it.
func Existing(at string) string {
	switch {
	case !strings.HasPrefix(at, "file:"), strings.Contains(at, "create_dir="):
		return at
	case strings.Contains(at, "?"):
		return at + "&create_dir=false"
	}
	return at + "?create_dir=false"
}

// ArchiveConfig returns the configuration of the archive of a partition.
func (s *Settings) ArchiveConfig(store archive.Store, box *seal.Box, journal string, partition int32) archive.Config {
	c := archive.Config{Store: store, Box: box, TopicPrefix: s.Kafka.Prefix, Journal: journal, Partition: partition}
	return c.WithRangeRecords(s.ArchiveRange)
}
