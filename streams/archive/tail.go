package archive

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	gocloud "gocloud.dev/blob"

	"github.com/perpetua-exchange/perpetua/streams/blob"
)

// ErrTailKept says that the bucket does not let a tail be replaced or deleted, so that no newer one was written. A tail that can't be
// deleted would otherwise remain each time, until its lock ends.
var ErrTailKept = errors.New("archive: the bucket keeps an earlier tail")

// Tail writes the records after the last full range as the tail, which replaces the one before, unless another writer's tail holds
// as many. A tail with other records is an error. Without such records it removes the tail. It may be called again after an error. It leaves the object of the tail that
// it replaces, because readers may be reading it: see Sweep. If the bucket does not let the tail be replaced, Tail writes nothing and
// returns an ErrTailKept.
func (w *Writer) Tail(ctx context.Context) error {
	cfg := &w.archive.cfg
	former, err := w.archive.readTail(ctx)
	if err != nil {
		return err
	}
	if w.tailless() {
		return w.removeTail(ctx, former)
	}
	p := *w.current
	p.Base.Sequence = p.First + p.Records
	if err := w.agree(ctx, former); err != nil {
		return err
	}
	if former.reaches(&p.Manifest) {
		w.archive.tail, w.archive.torn = former, nil
		return nil
	}
	if err := w.replaceable(ctx); err != nil {
		return err
	}
	if err := p.flush(w, w.entries); err != nil {
		return err
	}
	w.finish(&p)
	create := func(ctx context.Context, key string, content []byte) (bool, error) {
		return cfg.Store.Create(ctx, key, content, writeWithin)
	}
	if err := w.putObject(ctx, &p, true, create); err != nil {
		return err
	}
	b, err := p.encode(cfg.macKey(), tailMagic)
	if err != nil {
		return err
	}
	if err := w.putTail(ctx, b); err != nil {
		w.replaces = false
		return err
	}
	w.archive.tail, w.archive.torn = &Tail{p.Manifest}, nil
	return nil
}

// replaceable returns an ErrTailKept if the bucket does not let the manifest of the tail be replaced. Tail calls it before it writes the
// object of a new tail, because that object could not be deleted either. Not every store reports the lock of a blob. So before the first
// tail of a writer, it writes the same manifest again.
func (w *Writer) replaceable(ctx context.Context) error {
	cfg := &w.archive.cfg
	key := cfg.tailKey()
	l, err := cfg.Store.Lock(ctx, key)
	switch {
	case blob.Missing(err):
		return nil
	case err != nil:
		return err
	case l.Holds(time.Now()):
		return fmt.Errorf("%w: %s is locked until %s", ErrTailKept, key, l.Until.UTC().Format(time.RFC3339))
	case w.replaces:
		return nil
	}
	b, err := cfg.Store.Read(ctx, key, maxManifest)
	if blob.Missing(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("archive: reading %s: %w", key, err)
	}
	err = w.putTail(ctx, b)
	w.replaces = err == nil
	return err
}

// putTail writes the manifest of the tail.
func (w *Writer) putTail(ctx context.Context, b []byte) error {
	cfg := &w.archive.cfg
	return tailRefused(cfg.Store.Write(ctx, cfg.tailKey(), b, writeWithin))
}

// tailRefused returns an ErrTailKept for an error of a bucket that refuses to replace or delete a tail, and other errors as they are.
func tailRefused(err error) error {
	if blob.Refused(err) {
		return fmt.Errorf("%w: %w", ErrTailKept, err)
	}
	return err
}

// tailless reports whether there is nothing after the last full range that a tail could hold.
func (w *Writer) tailless() bool {
	p := w.current
	return p.Records+p.Skipped == 0 || p.First+p.Records == 0
}

// removeTail removes a tail that holds nothing after the full ranges. One that the bucket keeps is harmless, because readers ignore it.
func (w *Writer) removeTail(ctx context.Context, former *Tail) error {
	w.archive.tail = nil
	if former == nil || former.Range > w.current.Range || former.Range == w.current.Range && former.Records > 0 {
		w.archive.tail = former // another writer has read further
		return nil
	}
	err := tailRefused(w.archive.cfg.Store.Delete(ctx, w.archive.cfg.tailKey(), former.Object))
	if errors.Is(err, ErrTailKept) {
		return nil
	}
	return err
}

// reaches reports whether a tail ends where the records of a manifest end, or later. It may be nil.
func (t *Tail) reaches(m *Manifest) bool {
	switch {
	case t == nil || t.Range < m.Range:
		return false
	case t.Range > m.Range || t.Base.Sequence > m.Base.Sequence:
		return true
	}
	return t.Base.Sequence == m.Base.Sequence && t.LastOffset >= m.LastOffset
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
// less than nameWithin before the last manifest: a writer may name it yet, or a reader may be reading it. An object therefore
// outlives the tail that replaces its own. Sweep deletes no object while the manifest of the tail is damaged, because
// one of them holds the records of that tail. It compares the times of the bucket. After a refusal to delete a blob, Sweep deletes the
// others. It then returns an ErrTailKept if there are records for a tail, which the caller MUST NOT write, because the bucket would
// keep its object.
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
	damaged := named == nil && slices.ContainsFunc(found, func(o *gocloud.ListObject) bool { return o.Key == cfg.tailKey() })
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
		case damaged, blob.Temporary(o.Key), named != nil && named.Object == o.Key, !strings.HasPrefix(o.Key, cfg.folder()+tailName+"-"):
		case o.ModTime.Before(last.Add(-nameWithin)):
			orphans = append(orphans, o.Key)
		}
	}
	// Another writer may have named an existing object meanwhile.
	if named, err = w.archive.readTail(ctx); err != nil {
		return err
	}
	orphans = slices.DeleteFunc(orphans, func(key string) bool { return named != nil && named.Object == key })
	var refused error
	for _, key := range orphans {
		switch err := tailRefused(cfg.Store.Delete(ctx, key)); {
		case errors.Is(err, ErrTailKept):
			refused = err
		case err != nil:
			return err
		}
	}
	if w.tailless() {
		return nil
	}
	return refused
}
