package seal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	gocloud "gocloud.dev/blob"
	"gocloud.dev/gcerrors"
)

// bucketStore stores objects in a bucket. The bucket must not keep old versions.
type bucketStore struct{ bucket *gocloud.Bucket }

func (s *bucketStore) close() error { return s.bucket.Close() }

func (s *bucketStore) read(ctx context.Context, name string) ([]byte, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	content, err := s.bucket.ReadAll(ctx, name)
	if gcerrors.Code(err) == gcerrors.NotFound {
		return nil, fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	return content, err
}

func (s *bucketStore) create(ctx context.Context, name string, content []byte) error {
	err := s.write(ctx, name, content, true)
	if gcerrors.Code(err) == gcerrors.FailedPrecondition {
		return fmt.Errorf("%w: %w", fs.ErrExist, err)
	}
	return err
}

func (s *bucketStore) overwrite(ctx context.Context, name string, content []byte) error {
	return s.write(ctx, name, content, false)
}

// replace is overwrite: a bucket writes an object whole or not at all.
func (s *bucketStore) replace(ctx context.Context, name string, content []byte) error {
	return s.write(ctx, name, content, false)
}

func (s *bucketStore) remove(ctx context.Context, name string) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	err := s.bucket.Delete(ctx, name)
	if gcerrors.Code(err) == gcerrors.NotFound {
		return fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	return err
}

func (s *bucketStore) list(ctx context.Context, folder string) (names []string, err error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	objects := s.bucket.List(&gocloud.ListOptions{Prefix: folder + "/", Delimiter: "/"})
	for {
		o, err := objects.Next(ctx)
		if errors.Is(err, io.EOF) {
			return names, nil
		}
		if err != nil {
			return nil, err
		}
		if !o.IsDir {
			names = append(names, strings.TrimPrefix(o.Key, folder+"/"))
		}
	}
}

func (s *bucketStore) write(ctx context.Context, name string, content []byte, new bool) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	return s.bucket.WriteAll(ctx, name, content, &gocloud.WriterOptions{ContentType: "application/octet-stream", IfNotExist: new})
}

func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, patience, fmt.Errorf("%w within %v", ErrAway, patience))
}
