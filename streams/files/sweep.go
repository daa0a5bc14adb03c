package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	gocloud "gocloud.dev/blob"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

const (
	// Limit is how long it may take from the first byte of a file to the moment at which the journal is told of it. Whoever
	// takes longer gives up.
	Limit = 10 * time.Minute
	// Orphaned is how old a file has to be before it may be swept. It is far more than Limit, and than clocks of a bucket and
	// of nodes are apart.
	Orphaned = 2 * time.Hour
	// SweepEvery is how often a node sweeps, beginning with its start.
	SweepEvery = time.Hour
	// sweepAgain is how soon it tries again what failed: at a start the journal may have no owner yet.
	sweepAgain = time.Minute
)

// Journal tells which files are needed.
type Journal interface {
	// Settle returns once every document that anybody has told the journal of before is among those that Needs knows, or
	// never will be.
	Settle(ctx context.Context) error
	// Needs reports whether the journal has a document whose file lies under the key, and somebody may still read it.
	Needs(document scalar.ID, source string) bool
}

// Sweeper removes the files that nobody needs: those whose upload was never finished, and those of erased owners.
type Sweeper struct {
	Store   *Store
	Journal Journal
	Logger  *slog.Logger
	// May returns nil if the venue may remove files now; nil for always.
	May func(ctx context.Context) error
	// Age is how old a file has to be, zero for Orphaned; Again how soon it tries again what failed, zero for a minute. For tests.
	Age, Again time.Duration
}

// Run sweeps until the context ends. What fails is tried again the next time. That the journal has no owner when a node starts is
// as it should be: it is nothing to warn of unless it is so the next time.
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

// Sweep removes what nobody needs, once, and returns how many files it has removed.
//
// A record that names a file may be on its way for long: a broker that is cut off commits it when it returns. So files are
// listed first; then the journal is asked to settle; then they are looked for. A file that is old enough when it is listed
// was told of before the journal settled, or never will be.
func (s *Sweeper) Sweep(ctx context.Context) (removed int, err error) {
	for shard := range 256 {
		old, err := s.old(ctx, fmt.Sprintf("%s%02x/", s.Store.prefix, shard))
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
		for _, key := range slices.DeleteFunc(unknown, s.needed) {
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

// old lists what is old enough to be swept.
func (s *Sweeper) old(ctx context.Context, below string) (keys []string, err error) {
	all, err := s.Store.blobs.List(ctx, below)
	for _, o := range all {
		if s.isOld(o) {
			keys = append(keys, o.Key)
		}
	}
	return keys, err
}

func (s *Sweeper) isOld(o *gocloud.ListObject) bool {
	age := s.Age
	if age == 0 {
		age = Orphaned
	}
	return time.Since(o.ModTime) > age
}

func (s *Sweeper) needed(key string) bool {
	if blob.Temporary(key) { // its writer was killed
		return false
	}
	id, err := scalar.ParseID(key[strings.LastIndexByte(key, '/')+1:])
	if err != nil || s.Store.key(id) != key {
		return true // none of ours
	}
	return s.Journal.Needs(id, key)
}
