package archive

import (
	"context"
	"errors"
	"fmt"
)

// Objects returns an error unless the bucket lists the object of every full range with the size that its manifest names. It lists the
// folder of the archive once and reads no object. The error is an *Error for the first object that is wrong, or that of the store.
func (a *Archive) Objects(ctx context.Context) error {
	found, err := a.cfg.Store.List(ctx, a.cfg.folder())
	if err != nil {
		return fmt.Errorf("archive: listing the objects: %w", err)
	}
	sizes := make(map[string]int64, len(found))
	for _, o := range found {
		sizes[o.Key] = o.Size
	}
	for _, s := range a.sealed {
		size, ok := sizes[s.Object]
		wrong := &Error{Key: s.Object, Sequence: s.First, Err: fmt.Errorf("%s names it with %d bytes, and the bucket has %d", s.Key, s.Bytes, size)}
		switch {
		case !ok:
			wrong.Damage, wrong.Err = Missing, fmt.Errorf("%s names it", s.Key)
		case size < s.Bytes:
			wrong.Damage = Cut
		case size > s.Bytes:
			wrong.Damage = Damaged
		default:
			continue
		}
		return wrong
	}
	return nil
}

// Continues returns an error unless the archive is the one whose head is kept in a place, or a later state of it. No copy is no error.
// The error names the place and is an *Error, or that of the place.
func (a *Archive) Continues(ctx context.Context, heads Heads) error {
	h, err := headIn(ctx, heads, &a.cfg)
	if err != nil {
		return err
	}
	return a.continues(h, heads)
}

// OpenContinuing opens an archive, or returns an error as Continues does. A node may seal ranges at the same time.
func OpenContinuing(ctx context.Context, cfg Config, heads Heads) (*Archive, error) {
	h, err := headIn(ctx, heads, &cfg) // before Open: a head is kept after its manifest is written, so Open finds that
	if err != nil {
		return nil, err
	}
	a, err := Open(ctx, cfg)
	if err == nil {
		err = a.continues(h, heads)
	}
	if err != nil {
		return nil, err
	}
	return a, nil
}

// headIn returns the head that is kept in a place, or nil if there is none.
func headIn(ctx context.Context, heads Heads, cfg *Config) (*Head, error) {
	h, err := heads.Head(ctx, cfg.Journal, cfg.Partition)
	if err != nil {
		return nil, fmt.Errorf("archive: reading the head that is kept in %s: %w", heads, err)
	}
	return h, nil
}

// continues returns an error unless the archive has the full range of a head, which may be nil.
func (a *Archive) continues(h *Head, heads Heads) error {
	if h == nil {
		return nil
	}
	if h.Range >= int64(len(a.sealed)) {
		return &Error{Key: a.cfg.manifestKey(h.Range), Sequence: h.Range * a.cfg.rangeSize(), Damage: Missing,
			Err: fmt.Errorf("the head that is kept in %s names it", heads)}
	}
	if s := a.sealed[h.Range]; s.Signed != h.Manifest {
		return &Error{Key: s.Key, Sequence: s.First, Damage: Forked,
			Err: errors.New("its hash is not the one of the head that is kept in " + heads.String())}
	}
	return nil
}
