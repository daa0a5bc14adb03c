// Package base stores where trimmed logs begin: the copies of a record.Base, the rule by which one of them counts, and the
// interface by which the records before it are deleted.
//
// A base has copies in Postgres and in the data folder (Folder) of the process that trims. Each node copies it from Postgres to its
// own folder. So some of them may be lost. The newest copy counts. If all are lost, package journal looks in the archive for the
// range at whose end the topic begins. Copies may differ in age, because they are written one after the other. Copies that
// contradict each other are an error that names both. A trimmed log without any copy, and without such a range, is an error, never a new journal.
package base

import (
	"context"
	"errors"
	"fmt"
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
	Remedy string // what an operator does if another source has a sound copy, such as "delete the file"
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

// Newest asks all sources at the same time and returns the newest copy. A source that has not answered within the given
// time is silent, even if it ignores its context. The error is a *record.BaseError if two copies contradict each other or
// one is damaged. The copies are compared in pairs: one that contradicts another may still agree with a third.
func Newest(ctx context.Context, sources []Source, within time.Duration, journal string, partition int32) (Found, error) {
	var (
		f       Found
		sound   []int // sources with a copy
		damaged *DamagedError
	)
	refuse := func(format string, args ...any) (Found, error) {
		return Found{}, &record.BaseError{Journal: journal, Partition: partition, Reason: fmt.Sprintf(format, args...)}
	}
	answers := askAll(ctx, sources, within, journal, partition)
	for i, a := range answers {
		switch {
		case errors.As(a.err, &damaged):
			continue
		case a.err != nil:
			f.Silent = errors.Join(f.Silent, fmt.Errorf("%s: %w", sources[i], a.err))
			continue
		case a.base == nil:
			continue
		}
		for _, other := range sound {
			if why := answers[other].base.Contradicts(*a.base); why != "" {
				return refuse("the bases in %s and in %s contradict each other: %s", sources[other], sources[i], why)
			}
		}
		sound = append(sound, i)
		if f.Base == nil || a.base.Sequence > f.Base.Sequence {
			f.Base, f.Source = a.base, sources[i].String()
		}
	}
	switch {
	case damaged != nil && f.Base != nil:
		return refuse("a copy of the base is damaged: %v; the copy in %s is sound, so %s", damaged, f.Source, damaged.Remedy)
	case damaged != nil:
		return refuse("a copy of the base is damaged: %v; no other source has a sound copy", damaged)
	}
	return f, nil
}

type answer struct {
	base *record.Base
	err  error
}

// askAll returns the answers of the sources, in their order. It does not wait for a source that hangs, such as a folder on a
// lost network mount: that goroutine ends when the file system answers.
func askAll(ctx context.Context, sources []Source, within time.Duration, journal string, partition int32) []answer {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	answers, answered := make([]answer, len(sources)), make([]chan answer, len(sources))
	for i, s := range sources {
		answered[i] = make(chan answer, 1) // no late answer blocks
		go func() {
			b, err := s.Base(ctx, journal, partition)
			answered[i] <- answer{b, err}
		}()
	}
	for i := range sources {
		select {
		case answers[i] = <-answered[i]:
		case <-ctx.Done():
			select {
			case answers[i] = <-answered[i]:
			default:
				answers[i].err = ctx.Err()
			}
		}
	}
	return answers
}

// MayReplace returns an error if a Keeper must not replace a copy by b, which contradicts it or is older.
func MayReplace(stored, b record.Base) error {
	if why := stored.Contradicts(b); why != "" {
		return fmt.Errorf("the copy that is kept contradicts the new one: %s", why)
	}
	if stored.Sequence > b.Sequence {
		return fmt.Errorf("the copy that is kept is newer: it begins at record %d, the new one at %d", stored.Sequence, b.Sequence)
	}
	return nil
}
