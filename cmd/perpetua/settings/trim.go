package settings

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/perpetua-exchange/perpetua/streams/archive"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/seal"
	"github.com/perpetua-exchange/perpetua/streams/transparency"
)

// none is the value of a setting that asks for nothing.
const none = "none"

// TrimPolicy says when the log is trimmed.
type TrimPolicy struct {
	Auto   bool          // a node trims it by itself
	After  time.Duration // age from which records may be deleted
	Quorum int           // cosignatures that a checkpoint needs; 0 for none
	// Witnesses are those of --witness-policy; nil if Quorum is 0.
	Witnesses *transparency.Policy
}

// minTrimAfter is the time for which owners remember the outcomes of commands. A trim keeps the records from that time.
const minTrimAfter = 24 * time.Hour

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
	least := minTrimAfter
	if s.ArchiveRange > 0 { // a test with short ranges
		least = 0
	}
	if p.After, err = time.ParseDuration(s.Trim.After); err != nil || p.After < least {
		return p, Usagef("--trim-after takes a time of %v or more, like 48h, not %q", least, s.Trim.After)
	}
	if s.Trim.Quorum == none {
		return p, nil
	}
	if p.Quorum, err = strconv.Atoi(s.Trim.Quorum); err != nil || p.Quorum < 1 {
		return p, Usagef("--trim-quorum takes none or a number from 1 on, not %q", s.Trim.Quorum)
	}
	return p, s.trimWitnesses(&p)
}

// trimWitnesses finds the witnesses whose cosignatures count. Without enough of them no log would ever be trimmed.
func (s *Settings) trimWitnesses(p *TrimPolicy) (err error) {
	if p.Witnesses, err = s.Witnesses(); err != nil {
		return err
	}
	if p.Witnesses == nil {
		return Usagef("--trim-quorum %d needs the witnesses of --witness-policy", p.Quorum)
	}
	if n := len(p.Witnesses.Witnesses); n < p.Quorum {
		return Usagef("--trim-quorum %d is more than the %d witnesses of --witness-policy", p.Quorum, n)
	}
	return nil
}

// ArchiveBucketURL returns the URL of the bucket with the archive: the configured one, or the venue's bucket.
func (s *Settings) ArchiveBucketURL() (string, error) {
	if s.Stores.ArchiveURL != "" {
		return s.Stores.ArchiveURL, nil
	}
	return s.BucketURL()
}

// OpenArchive opens the bucket with the archive, and creates no folder for it. The caller calls done at the end.
func (s *Settings) OpenArchive(ctx context.Context) (_ *blob.Store, done func(), err error) {
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
