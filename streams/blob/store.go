package blob

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"
)

// Store is a bucket with time limits: no operation waits longer than Patience without progress. It is safe for
// concurrent use.
type Store struct {
	bucket *blob.Bucket
	line   *line
}

// NewStore returns a store in a bucket. The caller keeps the bucket and closes it.
func NewStore(bucket *blob.Bucket) *Store { return &Store{bucket, newLine()} }

// Resting returns an error if the bucket failed to answer less than Rest ago.
func (s *Store) Resting() error { return s.line.resting() }

// List returns the blobs with keys that begin with a prefix.
func (s *Store) List(ctx context.Context, prefix string) ([]*blob.ListObject, error) {
	return ask(ctx, s.line, Patience, func(ctx context.Context, alive func()) (all []*blob.ListObject, err error) {
		for it := s.bucket.List(&blob.ListOptions{Prefix: prefix}); ; alive() {
			o, err := it.Next(ctx)
			if errors.Is(err, io.EOF) {
				return all, nil
			}
			if err != nil {
				return nil, err
			}
			all = append(all, o)
		}
	})
}

// readSize is the number of bytes after which Read reports progress.
const readSize = 256 << 10

// Read returns the content of a blob, at most limit bytes of it. It waits as long as the content keeps arriving.
func (s *Store) Read(ctx context.Context, key string, limit int64) ([]byte, error) {
	return ask(ctx, s.line, Patience, func(ctx context.Context, alive func()) ([]byte, error) {
		r, err := s.bucket.NewReader(ctx, key, nil)
		if err != nil {
			return nil, err
		}
		defer r.Close()
		alive()
		content := bytes.NewBuffer(make([]byte, 0, max(min(r.Size(), limit), 0)+bytes.MinRead))
		for limited := io.LimitReader(r, limit); ; alive() {
			_, err := io.CopyN(content, limited, readSize)
			if errors.Is(err, io.EOF) {
				return content.Bytes(), nil
			}
			if err != nil {
				return nil, err
			}
		}
	})
}

// Write writes a blob. The blob exists whole or not at all, even after a power cut. within bounds the whole write.
func (s *Store) Write(ctx context.Context, key string, content []byte, within time.Duration) error {
	_, err := ask(ctx, s.line, within, func(ctx context.Context, _ func()) (struct{}, error) {
		return struct{}{}, s.bucket.WriteAll(ctx, key, content, &blob.WriterOptions{ContentType: "application/octet-stream"})
	})
	if err != nil {
		return fmt.Errorf("blob store: writing %s: %w", key, err)
	}
	return nil
}

// Create writes a blob unless one with the key exists, and reports whether it did. Of several that create a blob at the same
// time, one succeeds. The blob is then as durable as that of Write.
func (s *Store) Create(ctx context.Context, key string, content []byte, within time.Duration) (created bool, err error) {
	return s.create(ctx, key, content, within, nil)
}

// create is Create with a function that may change the request. It may be nil.
func (s *Store) create(ctx context.Context, key string, content []byte, within time.Duration, change func(as func(any) bool) error) (created bool, err error) {
	options := &blob.WriterOptions{ContentType: "application/octet-stream", IfNotExist: true, BeforeWrite: change}
	_, err = ask(ctx, s.line, within, func(ctx context.Context, _ func()) (struct{}, error) {
		return struct{}{}, s.bucket.WriteAll(ctx, key, content, options)
	})
	if gcerrors.Code(err) == gcerrors.FailedPrecondition || Refused(err) && s.exists(ctx, key) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("blob store: creating %s: %w", key, err)
	}
	return true, nil
}

// exists reports whether a store says that it has a blob. A store may refuse to create one that is locked before it looks at the
// condition.
func (s *Store) exists(ctx context.Context, key string) bool {
	ok, err := ask(ctx, s.line, Patience, func(ctx context.Context, _ func()) (bool, error) { return s.bucket.Exists(ctx, key) })
	return ok && err == nil
}

// Delete deletes blobs. A missing blob, which another node may have deleted, is not an error. The first error ends it. Refused reports
// an error because the store keeps the blob.
func (s *Store) Delete(ctx context.Context, keys ...string) error {
	for _, key := range keys {
		_, err := ask(ctx, s.line, Patience, func(ctx context.Context, _ func()) (struct{}, error) {
			return struct{}{}, s.bucket.Delete(ctx, key)
		})
		if err != nil && (!Missing(err) || Refused(err)) {
			return fmt.Errorf("blob store: deleting %s: %w", key, err)
		}
	}
	return nil
}

// Missing reports whether an error says that a blob does not exist.
func Missing(err error) bool { return gcerrors.Code(err) == gcerrors.NotFound }

// Temporary reports whether a key belongs to a temporary file. A folder lists a blob under such a key until it is
// complete, and for good if its writer was killed.
func Temporary(key string) bool {
	rest, ok := strings.CutSuffix(key, ".tmp")
	dot := strings.LastIndexByte(rest, '.')
	if !ok || dot < 0 || len(rest)-dot != len(".0123456789abcdef") {
		return false
	}
	_, err := strconv.ParseUint(rest[dot+1:], 16, 64)
	return err == nil
}

// AbandonedAfter is the age, since its last write, at which a temporary file counts as abandoned: its writer was killed
// or has failed.
const AbandonedAfter = time.Hour

// Abandoned reports whether a listed blob is an abandoned temporary file, which may be deleted.
func Abandoned(o *blob.ListObject) bool {
	return Temporary(o.Key) && time.Since(o.ModTime) > AbandonedAfter
}
