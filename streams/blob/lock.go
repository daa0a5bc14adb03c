package blob

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"
)

// Mode says who may end a lock before its time.
type Mode string

const (
	// Governance lets a user with a special permission shorten or remove a lock. In Google's store it is an unlocked retention.
	Governance Mode = "governance"
	// Compliance lets no user shorten or remove a lock. Users can still make it longer.
	Compliance Mode = "compliance"
)

// Lock says until when a store refuses to delete or replace a blob. The zero Lock is none.
type Lock struct {
	Until time.Time
	Mode  Mode // "" if a policy of the bucket is the reason
}

// Holds reports whether the lock protects the blob at the time now.
func (l Lock) Holds(now time.Time) bool { return l.Until.After(now) }

// Retention says how long new blobs are locked. The zero Retention locks none.
type Retention struct {
	For  time.Duration
	Mode Mode
}

// Lock returns the lock of a blob that is written now.
func (r Retention) Lock(now time.Time) Lock {
	if r.For == 0 {
		return Lock{}
	}
	return Lock{now.Add(r.For).UTC().Truncate(time.Second), r.Mode}
}

// ErrNoLocks says that a store or a bucket cannot lock single blobs.
var ErrNoLocks = errors.New("it can't lock objects")

// CheckLockURL returns an ErrNoLocks unless the store of a bucket can lock single blobs. It opens nothing.
func CheckLockURL(at string) error {
	u, err := url.Parse(at)
	if err != nil {
		return err
	}
	switch u.Scheme {
	case "s3", "gs":
		return nil
	case "azblob":
		return fmt.Errorf("%w one by one from here: give the container of %s an immutability policy instead", ErrNoLocks, u.Redacted())
	}
	return fmt.Errorf("%s is not in an object store, so %w", u.Redacted(), ErrNoLocks)
}

// TellsLocks reports whether the store of a bucket may know locks.
func TellsLocks(at string) bool {
	u, err := url.Parse(at)
	return err == nil && isCloud(u.Scheme)
}

// CheckLocks asks a bucket, opened at a URL, whether it can lock single blobs. The error is an ErrNoLocks if it can't. Any other
// error means that the bucket did not tell.
func CheckLocks(ctx context.Context, bucket *blob.Bucket, at string) error {
	if err := CheckLockURL(at); err != nil {
		return err
	}
	u, err := url.Parse(at)
	if err != nil {
		return err
	}
	return checkLocks(ctx, bucket, u)
}

// CreateLocked is Create for a blob that the store then refuses to delete and to replace for as long as the lock says. The error is
// an ErrNoLocks if the store can't lock blobs, and nothing is written then.
func (s *Store) CreateLocked(ctx context.Context, key string, content []byte, within time.Duration, l Lock) (created bool, err error) {
	return s.create(ctx, key, content, within, func(as func(any) bool) error { return applyLock(as, l) })
}

// Lock returns the lock of a blob, or the zero Lock if the store reports none. Some stores do not report the protection by a policy of the
// bucket. Missing reports the error for a missing blob.
func (s *Store) Lock(ctx context.Context, key string) (Lock, error) {
	about, err := ask(ctx, s.line, Patience, func(ctx context.Context, _ func()) (*blob.Attributes, error) {
		return s.bucket.Attributes(ctx, key)
	})
	switch {
	case gcerrors.Code(err) == gcerrors.Unimplemented: // a folder has no attributes
		return Lock{}, nil
	case err != nil:
		return Lock{}, fmt.Errorf("blob store: reading the lock of %s: %w", key, err)
	}
	return lockOf(about), nil
}

// Refused reports whether an error says that the store does not let this user do what was asked. A blob that is locked is one
// reason, missing permissions are another, and no store says reliably which.
func Refused(err error) bool {
	return err != nil && (gcerrors.Code(err) == gcerrors.PermissionDenied || refused(err))
}
