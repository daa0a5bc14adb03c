// Package blobtest has buckets for tests.
package blobtest

import (
	"context"
	"errors"
	"sync"
	"time"

	gocloud "gocloud.dev/blob"
	"gocloud.dev/blob/driver"
	"gocloud.dev/gcerrors"

	"github.com/perpetua-exchange/perpetua/streams/blob"
)

// Bucket is a bucket without locks. *blob.Store implements it.
type Bucket interface {
	Read(ctx context.Context, key string, limit int64) ([]byte, error)
	Write(ctx context.Context, key string, content []byte, within time.Duration) error
	Create(ctx context.Context, key string, content []byte, within time.Duration) (created bool, err error)
	Delete(ctx context.Context, keys ...string) error
	List(ctx context.Context, prefix string) ([]*gocloud.ListObject, error)
}

// Worm is a bucket that refuses to replace and to delete locked blobs (write once, read many). It is safe for concurrent use.
type Worm struct {
	Bucket
	policy Policy

	mu      sync.Mutex
	locks   map[string]blob.Lock // of the blobs that were created with one
	refused int
}

// Policy protects blobs that were created without a lock.
type Policy struct {
	// Until is the end of the lock of every blob, as by a policy of the bucket. The zero time locks only what is created with a lock.
	Until time.Time
	Tells bool // of locks by the policy
	// Replaces lets blobs be replaced, as in a bucket for which a user has no permission to delete.
	Replaces bool
}

// NewWorm returns a bucket that wraps another one.
func NewWorm(b Bucket, p Policy) *Worm {
	return &Worm{Bucket: b, policy: p, locks: make(map[string]blob.Lock)}
}

// Refused returns how often the bucket has refused to replace or delete a blob.
func (w *Worm) Refused() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.refused
}

// Locked returns the lock with which a blob was created.
func (w *Worm) Locked(key string) blob.Lock {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.locks[key]
}

// check returns an error if a blob exists and is locked.
func (w *Worm) check(ctx context.Context, key string, replace bool) error {
	if _, err := w.Bucket.Read(ctx, key, 1); blob.Missing(err) {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	byPolicy := blob.Lock{Until: w.policy.Until}.Holds(time.Now()) && (!replace || !w.policy.Replaces)
	if !byPolicy && !w.locks[key].Holds(time.Now()) {
		return nil
	}
	w.refused++
	return refusal(ctx)
}

// Write writes or replaces a blob that is not locked.
func (w *Worm) Write(ctx context.Context, key string, content []byte, within time.Duration) error {
	if err := w.check(ctx, key, true); err != nil {
		return err
	}
	return w.Bucket.Write(ctx, key, content, within)
}

// CreateLocked creates a blob and locks it.
func (w *Worm) CreateLocked(ctx context.Context, key string, content []byte, within time.Duration, l blob.Lock) (created bool, err error) {
	if created, err = w.Create(ctx, key, content, within); !created || err != nil {
		return created, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.locks[key] = l
	return true, nil
}

// Delete deletes blobs that are not locked. The first one that is ends it.
func (w *Worm) Delete(ctx context.Context, keys ...string) error {
	for _, key := range keys {
		if err := w.check(ctx, key, false); err != nil {
			return err
		}
		if err := w.Bucket.Delete(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

// Lock returns the lock of a blob.
func (w *Worm) Lock(ctx context.Context, key string) (blob.Lock, error) {
	if _, err := w.Bucket.Read(ctx, key, 1); err != nil {
		return blob.Lock{}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.locks[key]
	if w.policy.Tells && w.policy.Until.After(l.Until) {
		return blob.Lock{Until: w.policy.Until}, nil
	}
	return l, nil
}

// refusal returns the error of a bucket that refuses a request.
func refusal(ctx context.Context) error {
	b := gocloud.NewBucket(refusing{})
	defer b.Close()
	_, err := b.List(nil).Next(ctx)
	return err
}

var errRefused = errors.New("the blob is locked")

// refusing is a driver that refuses to list.
type refusing struct{ driver.Bucket }

func (refusing) Close() error { return nil }
func (refusing) ListPaged(context.Context, *driver.ListOptions) (*driver.ListPage, error) {
	return nil, errRefused
}
func (refusing) ErrorCode(error) gcerrors.ErrorCode { return gcerrors.PermissionDenied }
