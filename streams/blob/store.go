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

// Store is a bucket of which nobody waits for an answer longer than Patience. It is safe for concurrent use.
type Store struct {
	bucket *blob.Bucket
	line   *line
}

// NewStore returns a store in a bucket, which stays its user's to close.
func NewStore(bucket *blob.Bucket) *Store { return &Store{bucket, newLine()} }

// Resting returns an error if the bucket did not answer a short while ago.
func (s *Store) Resting() error { return s.line.resting() }

// List returns the blobs whose keys begin with a prefix.
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

// readSize is how many bytes are read at a time.
const readSize = 256 << 10

// Read returns the content of a blob, up to a limit in bytes. It waits for as long as more of it keeps coming.
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

// Write writes a blob, which is there whole or not at all, also after a power cut. It may take as long as is given.
func (s *Store) Write(ctx context.Context, key string, content []byte, within time.Duration) error {
	_, err := ask(ctx, s.line, within, func(ctx context.Context, _ func()) (struct{}, error) {
		return struct{}{}, s.bucket.WriteAll(ctx, key, content, &blob.WriterOptions{ContentType: "application/octet-stream"})
	})
	if err != nil {
		return fmt.Errorf("blob store: writing %s: %w", key, err)
	}
	return nil
}

// Delete deletes blobs. That one is not there, since another node has deleted it, is no error.
func (s *Store) Delete(ctx context.Context, keys ...string) error {
	for _, key := range keys {
		_, err := ask(ctx, s.line, Patience, func(ctx context.Context, _ func()) (struct{}, error) {
			return struct{}{}, s.bucket.Delete(ctx, key)
		})
		if err != nil && !Missing(err) {
			return fmt.Errorf("blob store: deleting %s: %w", key, err)
		}
	}
	return nil
}

// Missing reports whether an error says that there is no such blob.
func Missing(err error) bool { return gcerrors.Code(err) == gcerrors.NotFound }

// Temporary reports whether a key is that of a temporary file. In a folder, a blob is listed under such a key until it is
// complete, or for good if its writer was killed.
func Temporary(key string) bool {
	rest, ok := strings.CutSuffix(key, ".tmp")
	dot := strings.LastIndexByte(rest, '.')
	if !ok || dot < 0 || len(rest)-dot != len(".0123456789abcdef") {
		return false
	}
	_, err := strconv.ParseUint(rest[dot+1:], 16, 64)
	return err == nil
}

// AbandonedAfter is how long after its last write a temporary file counts as abandoned. Its writer was killed, or has failed.
const AbandonedAfter = time.Hour

// Abandoned reports whether what was listed is a temporary file that nobody writes any more, and may be deleted.
func Abandoned(o *blob.ListObject) bool {
	return Temporary(o.Key) && time.Since(o.ModTime) > AbandonedAfter
}
