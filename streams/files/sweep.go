package files

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

const (
	// Limit bounds the time from the first byte of an upload to the submission of the record. A slower upload is
	// abandoned.
	Limit = 10 * time.Minute
	// Orphaned is the age from which a file may be swept. It is much longer than Limit, and than the clock difference
	// between a bucket and the nodes.
	Orphaned = 2 * time.Hour
	// SweepEvery is the interval between sweeps of a node. The first one is at its start.
	SweepEvery = time.Hour
	// sweepAgain is the delay before a failed sweep is tried again: at a node's start the journal may have no owner
	// yet.
	sweepAgain = time.Minute
)

// Journal reports which files are needed.
type Journal interface {
	// Settle returns once the outcome of every earlier command with a document is known: Needs reports the document, or
	// it will never be recorded.
	Settle(ctx context.Context) error
	// Needs reports whether the journal has a document with its file under the key source, and the file may still be
	// read.
	Needs(document scalar.ID, source string) bool
	// Knows reports whether the journal has a document, also one that is not needed any more.
	Knows(document scalar.ID) bool
	// Since returns the time before which no file of this journal was uploaded, or false if it has none. Earlier files in the
	// bucket are those of another venue, or of a log that was lost and may be restored. It MUST be called after Settle: at a node's
	// start the journal may not be read yet.
	Since() (time.Time, bool)
}

// Sweeper removes files that are no longer needed: those of unfinished uploads and those of erased owners.
type Sweeper struct {
	Store   *Store
	Journal Journal
	Logger  *slog.Logger
	// May returns nil if the venue may remove files now. A nil May permits it always.
	May func(ctx context.Context) error
	// Now returns the time by which files are old. It must not be ahead: the file of a record that is not submitted yet would be
	// removed. A nil Now is this machine's clock.
	Now func(ctx context.Context) (time.Time, error)
	// Age replaces Orphaned and Again replaces sweepAgain, unless zero. For tests.
	Age, Again time.Duration
}

// Run sweeps until the context ends, and tries a failed sweep again. When a node starts, the journal normally has no
// owner yet, so Run warns about that only if the next sweep fails too.
func (s *Sweeper) Run(ctx context.Context) error {
	for first := true; ; first = false {
		pause := SweepEvery
		var busy *submit.NotAcceptedError
		if removed, err := s.Sweep(ctx); err != nil && ctx.Err() == nil {
			pause = cmp.Or(s.Again, sweepAgain)
			level := slog.LevelWarn
			if first && errors.As(err, &busy) {
				level = slog.LevelDebug
			}
			s.Logger.Log(ctx, level, "files that nobody needs may be left in the bucket", "error", err)
		} else if removed > 0 {
			s.Logger.Info("removed files that nobody needs", "files", removed)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// Sweep removes the files that are not needed, once, and returns the number of removed files.
//
// A record that names a file may be in flight for a long time: a broker that was cut off commits it when it returns. So
// Sweep lists the files first, then waits until the journal has settled, then checks whether they are needed. Any
// record of a listed file that is old enough was submitted before the journal settled, or never will be.
func (s *Sweeper) Sweep(ctx context.Context) (removed int, err error) {
	before, err := s.oldBefore(ctx)
	if err != nil {
		return 0, err
	}
	for shard := range 256 {
		old, err := s.old(ctx, fmt.Sprintf("%s%02x/", s.Store.prefix, shard), before)
		if err != nil {
			return removed, err
		}
		unknown := slices.DeleteFunc(old, s.needed)
		if len(unknown) == 0 {
			continue
		}
		if err := s.Journal.Settle(ctx); err != nil {
			return removed, err
		}
		since, begun := s.Journal.Since()
		for _, key := range slices.DeleteFunc(unknown, func(key string) bool { return s.needed(key) || s.foreign(key, since, begun) }) {
			if s.May != nil {
				if err := s.May(ctx); err != nil {
					return removed, err
				}
			}
			if err := s.Store.blobs.Delete(ctx, key); err != nil {
				return removed, err
			}
			removed++
		}
	}
	return removed, nil
}

// oldBefore returns the time before which a file was written that may be swept.
func (s *Sweeper) oldBefore(ctx context.Context) (t time.Time, err error) {
	now := time.Now()
	if s.Now != nil {
		if now, err = s.Now(ctx); err != nil {
			return t, err
		}
	}
	return now.Add(-cmp.Or(s.Age, Orphaned)), nil
}

// old lists the keys of the files that were written before a time.
func (s *Sweeper) old(ctx context.Context, below string, before time.Time) (keys []string, err error) {
	all, err := s.Store.blobs.List(ctx, below)
	for _, o := range all {
		if o.ModTime.Before(before) {
			keys = append(keys, o.Key)
		}
	}
	return keys, err
}

// foreign reports whether the journal does not know a file, which was uploaded before any file of the journal by the time in the
// document's id. begun is false if the journal has no files.
func (s *Sweeper) foreign(key string, since time.Time, begun bool) bool {
	id, err := documentOf(key)
	if err != nil || blob.Temporary(key) || s.Journal.Knows(id) {
		return false
	}
	return !begun || id[6]>>4 == 7 && binary.BigEndian.Uint64(id[:])>>16 < uint64(since.UnixMilli())
}

// documentOf returns the document with its file under a key.
func documentOf(key string) (scalar.ID, error) {
	return scalar.ParseID(key[strings.LastIndexByte(key, '/')+1:])
}

func (s *Sweeper) needed(key string) bool {
	if blob.Temporary(key) { // its writer was killed
		return false
	}
	id, err := documentOf(key)
	if err != nil || s.Store.key(id) != key {
		return true // not a file of this store
	}
	return s.Journal.Needs(id, key)
}
