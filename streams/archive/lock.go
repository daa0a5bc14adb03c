package archive

import (
	"context"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/perpetua-exchange/perpetua/streams/blob"
)

// Locks says how the objects and the manifests of the full ranges are locked, as far as the store tells.
type Locks struct {
	Blobs int       // objects and manifests
	Open  int       // of them without a lock that holds
	First string    // key of the first one of these; "" if all are locked
	Until time.Time // the first end of a lock that holds; zero if there is none
	Mode  blob.Mode // of that lock
}

// lockQuestions is the number of blobs of which a store is asked at the same time.
const lockQuestions = 8

// FindLocks asks the store for the lock of each object and manifest of a full range. It needs no master key.
func FindLocks(ctx context.Context, c Config) (Locks, error) {
	found, err := c.Store.List(ctx, c.folder())
	if err != nil {
		return Locks{}, fmt.Errorf("archive: listing %s: %w", c.folder(), err)
	}
	var keys []string
	for _, o := range found {
		name := strings.TrimPrefix(o.Key, c.folder())
		if !blob.Temporary(o.Key) && (strings.HasPrefix(name, manifestName) || strings.HasPrefix(name, rangeName+"-")) {
			keys = append(keys, o.Key)
		}
	}
	locks := make([]blob.Lock, len(keys))
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(lockQuestions)
	for i, key := range keys {
		work.Go(func() (err error) {
			locks[i], err = c.Store.Lock(ctx, key)
			return err
		})
	}
	if err := work.Wait(); err != nil {
		return Locks{}, err
	}
	sum, now := Locks{Blobs: len(keys)}, time.Now()
	for i, l := range locks {
		switch {
		case !l.Holds(now):
			if sum.Open++; sum.First == "" {
				sum.First = keys[i]
			}
		case sum.Until.IsZero() || l.Until.Before(sum.Until):
			sum.Until, sum.Mode = l.Until, l.Mode
		}
	}
	return sum, nil
}
