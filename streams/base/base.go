// Package base stores where trimmed logs begin: the copies of a record.Base, the rule by which one of them counts, and the
// interface by which the records before it are deleted.
//
// A base has copies in each data folder (Folder), in Postgres, and in the newest archive manifest, so one of them may be
// lost. The newest copy counts. Copies may differ in age, because they are written one after the other. Copies that
// contradict each other are an error that names both. A trimmed log without any copy is an error, never a new journal.
package base

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Source keeps a copy of each base.
type Source interface {
	// Base returns the copy of a partition's base, or nil if it has none. An error means that it could not be asked. A copy
	// that is damaged is a *DamagedError.
	Base(ctx context.Context, journal string, partition int32) (*record.Base, error)
	// String names the source for humans.
	String() string
}

// Keeper is a Source that bases can be written to.
type Keeper interface {
	Source
	// Keep stores a copy durably. It MUST NOT replace a newer copy, nor one that contradicts b.
	Keep(ctx context.Context, b record.Base) error
}

// DamagedError says that a copy is not in the form of a base, or is that of another log.
type DamagedError struct {
	Source string
	Err    error
}

// Error names the source.
func (e *DamagedError) Error() string { return fmt.Sprintf("%s: %v", e.Source, e.Err) }

// Unwrap returns the cause.
func (e *DamagedError) Unwrap() error { return e.Err }

// Found is the answer of all sources.
type Found struct {
	Base   *record.Base // the newest copy; nil if no source has one
	Source string       // of Base
	Silent error        // names the sources that could not be asked; nil if all answered
}

// Newest asks all sources at the same time, each for at most the given time, and returns the newest copy. The error is a
// *record.BaseError if two copies contradict each other or one is damaged.
func Newest(ctx context.Context, sources []Source, within time.Duration, journal string, partition int32) (Found, error) {
	copies, errs := make([]*record.Base, len(sources)), make([]error, len(sources))
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var asking sync.WaitGroup
	for i, s := range sources {
		asking.Go(func() { copies[i], errs[i] = s.Base(ctx, journal, partition) })
	}
	asking.Wait()
	var f Found
	refuse := func(format string, args ...any) (Found, error) {
		return Found{}, &record.BaseError{Journal: journal, Partition: partition, Reason: fmt.Sprintf(format, args...)}
	}
	for i, s := range sources {
		b, err := copies[i], errs[i]
		var damaged *DamagedError
		switch {
		case errors.As(err, &damaged):
			return refuse("a copy of the base is damaged: %v", err)
		case err != nil:
			f.Silent = errors.Join(f.Silent, fmt.Errorf("%s: %w", s, err))
			continue
		case b == nil:
			continue
		}
		if f.Base != nil {
			if why := f.Base.Contradicts(*b); why != "" {
				return refuse("the bases in %s and in %s contradict each other: %s", f.Source, s, why)
			}
		}
		if f.Base == nil || b.Sequence > f.Base.Sequence {
			f.Base, f.Source = b, s.String()
		}
	}
	return f, nil
}

// MayReplace returns an error if a Keeper must not replace a copy by b, which contradicts it or is older.
func MayReplace(kept, b record.Base) error {
	if why := kept.Contradicts(b); why != "" {
		return fmt.Errorf("the copy that is kept contradicts the new one: %s", why)
	}
	if kept.Sequence > b.Sequence {
		return fmt.Errorf("the copy that is kept is newer: it begins at record %d, the new one at %d", kept.Sequence, b.Sequence)
	}
	return nil
}

// Static is a Source of given bases, for a log that is being copied or for tests.
type Static struct {
	Name  string
	Bases []record.Base
}

// Base implements Source.
func (s Static) Base(_ context.Context, journal string, partition int32) (*record.Base, error) {
	for _, b := range s.Bases {
		if b.Journal == journal && b.Partition == partition {
			return &b, nil
		}
	}
	return nil, nil
}

// String implements Source.
func (s Static) String() string { return s.Name }
