package archive

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perpetua-exchange/perpetua/streams/blob"
)

// Tail writes the records after the last full range as the tail, which replaces the one before, unless another writer's tail holds
// as many. Without such records it removes the tail. It may be called again after an error. It leaves the object of the tail that
// it replaces, because readers may be reading it: see Sweep.
func (w *Writer) Tail(ctx context.Context) error {
	cfg := &w.archive.cfg
	former, err := w.archive.readTail(ctx)
	if err != nil {
		return err
	}
	p := *w.current
	if p.Base.Sequence = p.First + p.Records; p.Records+p.Skipped == 0 || p.Base.Sequence == 0 {
		return w.removeTail(ctx, former)
	}
	if former != nil && (former.Range > p.Range || former.Range == p.Range && former.Base.Sequence >= p.Base.Sequence && former.LastOffset >= p.LastOffset) {
		w.archive.tail = former
		return nil
	}
	if err := p.flush(w, w.entries); err != nil {
		return err
	}
	b, err := w.finish(&p, true)
	if err != nil {
		return err
	}
	if err := w.putObject(ctx, &p.Manifest, b); err != nil {
		return err
	}
	if b, err = p.encode(cfg.macKey(), tailMagic); err != nil {
		return err
	}
	if err := cfg.Store.Write(ctx, cfg.tailKey(), b, writeWithin); err != nil {
		return err
	}
	w.archive.tail = &Tail{p.Manifest}
	return nil
}

// removeTail removes a tail that holds nothing after the full ranges.
func (w *Writer) removeTail(ctx context.Context, former *Tail) error {
	w.archive.tail = nil
	if former == nil || former.Range > w.current.Range || former.Range == w.current.Range && former.Records > 0 {
		w.archive.tail = former // another writer has read further
		return nil
	}
	return w.archive.cfg.Store.Delete(ctx, w.archive.cfg.tailKey(), former.Object)
}

// readTail returns the tail that the bucket has now, or nil. It returns nil for a manifest that cannot be read, which a writer replaces.
func (a *Archive) readTail(ctx context.Context) (*Tail, error) {
	key := a.cfg.tailKey()
	b, err := a.cfg.Store.Read(ctx, key, maxManifest)
	if blob.Missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("archive: reading %s: %w", key, err)
	}
	m, err := parseManifest(key, a.cfg.macKey(), tailMagic, b)
	if err != nil || blob.Temporary(m.Object) || !strings.HasPrefix(m.Object, a.cfg.folder()+tailName+"-") {
		return nil, nil
	}
	return &Tail{*m}, nil
}

// nameWithin is the time after which a writer has named the object that it has written, or has given up.
const nameWithin = 2 * writeWithin

// Sweep deletes the objects of former tails and the temporary files of writers that were killed. It keeps an object that was written
// less than nameWithin before the last manifest: a writer may name it yet, or a reader may be reading it. So the object of a tail
// is deleted only after its successor is replaced as well. Sweep compares the times of the bucket.
func (w *Writer) Sweep(ctx context.Context) error {
	cfg := &w.archive.cfg
	found, err := cfg.Store.List(ctx, cfg.folder())
	if err != nil {
		return fmt.Errorf("archive: listing %s: %w", cfg.folder(), err)
	}
	named, err := w.archive.readTail(ctx)
	if err != nil {
		return err
	}
	var last time.Time
	for _, o := range found {
		if (o.Key == cfg.tailKey() || strings.HasPrefix(o.Key, cfg.folder()+manifestName)) && o.ModTime.After(last) {
			last = o.ModTime
		}
	}
	var orphans []string
	for _, o := range found {
		switch {
		case blob.Abandoned(o):
			orphans = append(orphans, o.Key)
		case blob.Temporary(o.Key), named != nil && named.Object == o.Key, !strings.HasPrefix(o.Key, cfg.folder()+tailName+"-"):
		case o.ModTime.Before(last.Add(-nameWithin)):
			orphans = append(orphans, o.Key)
		}
	}
	// Another writer may have named an existing object meanwhile.
	if named, err = w.archive.readTail(ctx); err != nil {
		return err
	}
	orphans = slices.DeleteFunc(orphans, func(key string) bool { return named != nil && named.Object == key })
	return cfg.Store.Delete(ctx, orphans...)
}
