package archive

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Archive holds the verified manifests of a partition. It does not change when the bucket does; call Open again.
type Archive struct {
	cfg    Config
	sealed []Sealed
	tail   *Tail
	torn   *Error // the damage of a tail that cannot be read; nil if there is none

	decoders func() (*decoders, error) // made by the first reader, and used by all
}

// Sealed is a full range. It never changes, so the topic may be trimmed by it once it was read back.
type Sealed struct {
	Manifest
	Key    string      // of the manifest
	Signed record.Hash // SHA-256 of the manifest, which stands for all manifests up to it
}

// Tail is the beginning of the range after the last full one. It is replaced by a longer one, and MUST NOT be a ground to trim
// the topic.
type Tail struct{ Manifest }

// maxManifest is the highest number of bytes of a manifest.
const maxManifest = 1 << 16

// Open reads the manifests of an archive and verifies that they form a chain. It does not read the objects. An archive without a
// manifest is empty and not an error. Otherwise the error is an *Error, or that of the store.
func Open(ctx context.Context, cfg Config) (*Archive, error) {
	a, err := OpenRanges(ctx, cfg)
	if err == nil {
		err = a.TailDamage()
	}
	if err != nil {
		return nil, err
	}
	return a, nil
}

// OpenRanges is Open for readers of full ranges and for writers. If the archive has a full range, it accepts a damaged manifest of the
// tail. TailDamage then returns the damage, and so does a read of records that the tail may hold. Without a full range nothing shows
// that the key of the archive is the right one.
func OpenRanges(ctx context.Context, cfg Config) (*Archive, error) {
	return openRanges(ctx, cfg, false)
}

// openRanges is OpenRanges. For a writer, the ranges end before a last manifest that is cut.
func openRanges(ctx context.Context, cfg Config, writes bool) (*Archive, error) {
	a := &Archive{cfg: cfg, decoders: sync.OnceValues(newDecoders)}
	found, err := a.manifests(ctx)
	if err != nil {
		return nil, err
	}
	a.sealed = remembered(&cfg, found)
	for n := int64(len(a.sealed)); n < int64(len(found)); n++ {
		err := a.load(ctx, n, int64(len(found)))
		if writes && n == int64(len(found))-1 && isCut(err) {
			found = found[:n]
			break
		}
		if err != nil {
			return nil, err
		}
	}
	remember(&cfg, a.sealed, found)
	err = a.loadTail(ctx)
	var wrong *Error
	if len(a.sealed) > 0 && errors.As(err, &wrong) && wrong.Key == a.cfg.tailKey() && (wrong.Damage == Cut || wrong.Damage == Damaged) {
		a.torn, err = wrong, nil
	}
	if err != nil {
		return nil, err
	}
	return a, nil
}

// isCut reports whether an error is an *Error of the damage Cut.
func isCut(err error) bool {
	var wrong *Error
	return errors.As(err, &wrong) && wrong.Damage == Cut
}

// TailDamage returns the *Error of a damaged manifest of the tail, or nil.
func (a *Archive) TailDamage() error {
	if a.torn == nil {
		return nil
	}
	return a.torn
}

// untorn returns the damage of the tail if the records before a sequence do not end with the full ranges.
func (a *Archive) untorn(to int64) error {
	if m, _ := a.last(); m != nil && to <= m.Base.Sequence {
		return nil
	}
	return a.TailDamage()
}

// manifests returns what the bucket lists of the manifests by number, up to the highest number. One that is missing is zero.
func (a *Archive) manifests(ctx context.Context) (listed []stamp, err error) {
	prefix := a.cfg.folder() + manifestName
	found, err := a.cfg.Store.List(ctx, prefix)
	if err != nil {
		return nil, fmt.Errorf("archive: listing the manifests: %w", err)
	}
	stamps, count := make(map[int64]stamp), int64(0)
	for _, o := range found {
		n, err := strconv.ParseInt(strings.TrimPrefix(o.Key, prefix), 10, 64)
		switch {
		case blob.Temporary(o.Key):
		case err != nil || n < 0 || a.cfg.manifestKey(n) != o.Key:
			return nil, &Error{Key: o.Key, Sequence: -1, Damage: Foreign, Err: errors.New("no manifest has that name")}
		default:
			stamps[n], count = stamp{true, o.ModTime, o.Size}, max(count, n+1)
		}
	}
	if count > int64(len(stamps)) { // the first one that is missing ends the reading
		for n := range count {
			if !stamps[n].listed {
				return nil, &Error{Key: a.cfg.manifestKey(n), Sequence: n * a.cfg.rangeSize(), Damage: Missing, Err: fmt.Errorf("there are %d ranges", count)}
			}
		}
	}
	for n := range count {
		listed = append(listed, stamps[n])
	}
	return listed, nil
}

// load reads the next manifest.
func (a *Archive) load(ctx context.Context, n, of int64) error {
	key := a.cfg.manifestKey(n)
	b, err := a.cfg.Store.Read(ctx, key, maxManifest)
	switch {
	case blob.Missing(err):
		return &Error{Key: key, Sequence: n * a.cfg.rangeSize(), Damage: Missing, Err: fmt.Errorf("there are %d ranges", of)}
	case err != nil:
		return fmt.Errorf("archive: reading %s: %w", key, err)
	}
	s, err := a.parse(key, b)
	if err != nil {
		return err
	}
	a.sealed = append(a.sealed, *s)
	return nil
}

// parse decodes the manifest after the last one.
func (a *Archive) parse(key string, b []byte) (*Sealed, error) {
	m, err := parseManifest(key, a.cfg.macKey(), manifestMagic, b)
	if err != nil {
		return nil, err
	}
	before, previous := a.last()
	if err := m.follows(&a.cfg, key, before, previous, false); err != nil {
		return nil, err
	}
	return &Sealed{*m, key, sha256.Sum256(b)}, nil
}

// last returns the manifest of the last full range, or nil, and its hash.
func (a *Archive) last() (*Manifest, record.Hash) {
	if len(a.sealed) == 0 {
		return nil, record.Hash{}
	}
	s := &a.sealed[len(a.sealed)-1]
	return &s.Manifest, s.Signed
}

// loadTail reads the manifest of the tail. One of a range that is full by now is ignored.
func (a *Archive) loadTail(ctx context.Context) error {
	key := a.cfg.tailKey()
	b, err := a.cfg.Store.Read(ctx, key, maxManifest)
	if blob.Missing(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("archive: reading %s: %w", key, err)
	}
	m, err := parseManifest(key, a.cfg.macKey(), tailMagic, b)
	if err != nil {
		return err
	}
	if m.Range < int64(len(a.sealed)) {
		return nil
	}
	// A writer may have sealed ranges since the manifests were listed. Their manifests are older than that of the tail.
	for n := int64(len(a.sealed)); n < m.Range; n++ {
		if err := a.load(ctx, n, m.Range); err != nil {
			return err
		}
	}
	before, previous := a.last()
	if err := m.follows(&a.cfg, key, before, previous, true); err != nil {
		return err
	}
	a.tail = &Tail{*m}
	return nil
}

// Sealed returns the full ranges in order.
func (a *Archive) Sealed() []Sealed { return a.sealed }

// Tail returns the beginning of the range after the full ones, or nil.
func (a *Archive) Tail() *Tail { return a.tail }

// Base returns the base of a log that begins after the full ranges, or nil if there are none.
func (a *Archive) Base() *record.Base {
	if m, _ := a.last(); m != nil {
		return &m.Base
	}
	return nil
}

// parts returns the manifests of the full ranges and of the tail.
func (a *Archive) parts() []*Manifest {
	var all []*Manifest
	for i := range a.sealed {
		all = append(all, &a.sealed[i].Manifest)
	}
	if a.tail != nil {
		all = append(all, &a.tail.Manifest)
	}
	return all
}
