package archive

import (
	"cmp"
	"context"
	"fmt"
	"time"

	gocloud "gocloud.dev/blob"

	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// Store is the bucket of an archive. *blob.Store implements it. Its values MUST be comparable.
type Store interface {
	// Read returns the content of a blob. Its error is blob.Missing if there is none.
	Read(ctx context.Context, key string, limit int64) ([]byte, error)
	// Write writes or replaces a blob. When it returns nil, the blob is durable. Its error is blob.Refused if the store does not let
	// the blob be replaced.
	Write(ctx context.Context, key string, content []byte, within time.Duration) error
	// Create is Write for a blob that MUST NOT be replaced. It reports false if there is one.
	Create(ctx context.Context, key string, content []byte, within time.Duration) (created bool, err error)
	// CreateLocked creates a blob, and has the store refuse to delete or replace it until the lock ends. Its error is blob.ErrNoLocks if
	// the store can't do that.
	CreateLocked(ctx context.Context, key string, content []byte, within time.Duration, l blob.Lock) (created bool, err error)
	// Lock returns the lock of a blob, or the zero Lock if the store reports none. Its error is blob.Missing for a missing blob.
	Lock(ctx context.Context, key string) (blob.Lock, error)
	// Delete deletes blobs. A missing blob is not an error. The error of a blob that the store keeps is blob.Refused.
	Delete(ctx context.Context, keys ...string) error
	// List returns the blobs with keys that begin with a prefix.
	List(ctx context.Context, prefix string) ([]*gocloud.ListObject, error)
}

var _ Store = (*blob.Store)(nil)

// Folder is the prefix of the keys of all archives in a bucket.
const Folder = "archive/"

const (
	writeWithin = 5 * time.Minute
	maxBlob     = 8 << 30
)

// Config names the archive of a partition.
type Config struct {
	Store       Store
	Box         *seal.Box // of the venue's master key
	TopicPrefix string    // prefix of the journals' topics, so that venues can share a bucket
	Journal     string
	Partition   int32
	// Retention locks the objects and the manifests of full ranges that a writer creates, but no tail.
	Retention blob.Retention
	// Encoded holds the latest records that an owner in this process has encoded. It may be nil.
	Encoded *record.EncodedCache

	sizes sizes  // those of the form, except in tests
	codec *codec // of its own, if nil
}

// sizes are the records of a range and the bytes of a chunk. 0 is the form's.
type sizes struct {
	rangeRecords int64
	chunkBytes   int
}

// WithRangeRecords returns the configuration with n records in a range, for tests. README.md fixes the number for real archives, which
// 0 stands for.
func (c Config) WithRangeRecords(n int64) Config {
	c.sizes.rangeRecords = n
	return c
}

func (c *Config) rangeSize() int64 { return cmp.Or(c.sizes.rangeRecords, RangeRecords) }
func (c *Config) chunkSize() int   { return cmp.Or(c.sizes.chunkBytes, chunkBytes) }

func (c *Config) folder() string {
	return fmt.Sprintf("%s%s%s/%d/", Folder, c.TopicPrefix, c.Journal, c.Partition)
}

const (
	manifestName = "manifest-"
	tailName     = "tail"
	rangeName    = "range"
)

func (c *Config) manifestKey(n int64) string {
	return fmt.Sprintf("%s%s%010d", c.folder(), manifestName, n)
}

func (c *Config) tailKey() string { return c.folder() + tailName }

// objectKey returns the key of the object of a range, or of a tail.
func (c *Config) objectKey(m *Manifest, tail bool) string {
	kind := rangeName
	if tail {
		kind = tailName
	}
	return fmt.Sprintf("%s%s-%020d-%s", c.folder(), kind, m.First, m.Content)
}

// create creates a blob that is never replaced, and locks it if the archive is retained.
func (c *Config) create(ctx context.Context, key string, content []byte) (created bool, err error) {
	if l := c.Retention.Lock(time.Now()); l != (blob.Lock{}) {
		return c.Store.CreateLocked(ctx, key, content, writeWithin, l)
	}
	return c.Store.Create(ctx, key, content, writeWithin)
}

// macKey returns the key of the MACs of manifests.
func (c *Config) macKey() []byte { return c.Box.Derive("archive manifest") }
