package transparency

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"sync/atomic"
	"time"

	gocloud "gocloud.dev/blob"
	"golang.org/x/mod/sumdb/tlog"
	"golang.org/x/sync/errgroup"

	"github.com/perpetua-exchange/perpetua/streams/blob"
)

const (
	checkpointKey = "checkpoint"
	// maxCheckpoint bounds the bytes read of a checkpoint, which may have signatures of others.
	maxCheckpoint = 64 << 10
	// maxRotation bounds the bytes read of the proof of a rotation.
	maxRotation = 128 << 10
	// writers is the number of tiles written at the same time. It leaves room for other questions to the bucket.
	writers = blob.Pending / 2
)

// Store holds the tiles, the bundles and the last checkpoint of one log in a bucket, under the paths of tlog-tiles below the
// log's folder, which a static web server can serve. A Store is safe for concurrent use.
type Store struct {
	blobs   objects
	folder  string
	derived *derived // nil without an archive
}

// objects is the part of blob.Store that a Store needs. Tests make it fail.
type objects interface {
	Read(ctx context.Context, key string, limit int64) ([]byte, error)
	Write(ctx context.Context, key string, content []byte, within time.Duration) error
	List(ctx context.Context, prefix string) ([]*gocloud.ListObject, error)
	Delete(ctx context.Context, keys ...string) error
}

// NewStore returns the store of a log in a bucket.
func NewStore(blobs *blob.Store, origin Origin) *Store {
	return &Store{blobs: blobs, folder: origin.folder()}
}

// Read returns the content of a tile or bundle. If the partial one is gone, it is the beginning of the full one. If neither
// exists, or has the size that it must have, a store with an archive derives leaves. Without, the error is fs.ErrNotExist.
func (s *Store) Read(ctx context.Context, t tlog.Tile) ([]byte, error) { return s.read(ctx, t, false) }

// read is Read, for a guest or for this process.
func (s *Store) read(ctx context.Context, t tlog.Tile, guest bool) ([]byte, error) {
	data, err := s.stored(ctx, t)
	if errors.Is(err, fs.ErrNotExist) && s.derived != nil && t.L <= 0 {
		if data, err = s.derive(ctx, full(t), guest); err == nil {
			data = data[:t.W*unit(t.L)]
		}
	}
	return data, err
}

// stored is Read without deriving.
func (s *Store) stored(ctx context.Context, t tlog.Tile) ([]byte, error) {
	size := t.W * unit(t.L)
	data, err := s.blobs.Read(ctx, s.folder+TilePath(t), width*int64(unit(t.L))+1)
	if blob.Missing(err) && t.W < width {
		data, err = s.blobs.Read(ctx, s.folder+TilePath(full(t)), width*int64(unit(t.L))+1)
		if err == nil && len(data) > size {
			data = data[:size]
		}
	}
	switch {
	case blob.Missing(err):
		return nil, fmt.Errorf("%s: %w", TilePath(t), fs.ErrNotExist)
	case err != nil:
		return nil, err
	case len(data) != size:
		return nil, fmt.Errorf("%s has not %d bytes: %w", TilePath(t), size, fs.ErrNotExist)
	}
	return data, nil
}

// Write writes tiles and bundles. It returns once they are durable.
func (s *Store) Write(ctx context.Context, tiles []Tile) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(writers)
	for _, t := range tiles {
		g.Go(func() error { return s.blobs.Write(ctx, s.folder+TilePath(t.Tile), t.Data, blob.Patience) })
	}
	return g.Wait()
}

// RemovePartial removes the partial versions of a tile of which the full one exists.
func (s *Store) RemovePartial(ctx context.Context, t tlog.Tile) error {
	found, err := s.blobs.List(ctx, s.folder+TilePath(full(t))+".p/")
	if err != nil {
		return err
	}
	keys := make([]string, len(found))
	for i, o := range found {
		keys[i] = o.Key
	}
	return s.blobs.Delete(ctx, keys...)
}

// Checkpoint returns the last checkpoint, or nil if there is none.
func (s *Store) Checkpoint(ctx context.Context) ([]byte, error) {
	note, err := s.blobs.Read(ctx, s.folder+checkpointKey, maxCheckpoint)
	if blob.Missing(err) {
		return nil, nil
	}
	return note, err
}

// WriteCheckpoint replaces the last checkpoint.
func (s *Store) WriteCheckpoint(ctx context.Context, note []byte) error {
	return s.blobs.Write(ctx, s.folder+checkpointKey, note, blob.Patience)
}

// Rotation returns the proof of the rotation to the key of a generation. If there is none, the error is fs.ErrNotExist.
func (s *Store) Rotation(ctx context.Context, generation int) ([]byte, error) {
	proof, err := s.blobs.Read(ctx, s.rotationKey(generation), maxRotation)
	if blob.Missing(err) {
		return nil, fmt.Errorf("the rotation to the key of generation %d: %w", generation, fs.ErrNotExist)
	}
	return proof, err
}

// WriteRotation replaces the proof of a rotation.
func (s *Store) WriteRotation(ctx context.Context, generation int, proof []byte) error {
	return s.blobs.Write(ctx, s.rotationKey(generation), proof, blob.Patience)
}

func (s *Store) rotationKey(generation int) string {
	return s.folder + "keys/" + strconv.Itoa(generation)
}

// Restore returns the tree with a size and a root. The error is ErrDamaged if the tiles are missing or give another root.
func (s *Store) Restore(ctx context.Context, size int64, root tlog.Hash) (*Tree, error) {
	t, err := Restore(size, func(t tlog.Tile) ([]byte, error) { return s.Read(ctx, t) })
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	case err != nil:
		return nil, err
	case t.Root() != root:
		return nil, fmt.Errorf("%w: at size %d they give the root %v, not %v", ErrDamaged, size, t.Root(), root)
	}
	return t, nil
}

// ErrDamaged reports that the stored tiles are not those of the tree.
var ErrDamaged = errors.New("transparency: the stored tiles are missing or damaged")

// tileReader implements tlog.TileReader with the tiles of a store.
type tileReader struct {
	ctx    context.Context
	store  *Store
	failed atomic.Bool // the store did not answer
}

func (r *tileReader) Height() int                     { return height }
func (r *tileReader) SaveTiles([]tlog.Tile, [][]byte) {}

// ReadTiles implements tlog.TileReader.
func (r *tileReader) ReadTiles(tiles []tlog.Tile) ([][]byte, error) {
	data := make([][]byte, len(tiles))
	g, ctx := errgroup.WithContext(r.ctx)
	g.SetLimit(writers)
	for i, t := range tiles {
		g.Go(func() (err error) {
			if data[i], err = r.store.Read(ctx, t); err != nil && !errors.Is(err, fs.ErrNotExist) {
				r.failed.Store(true)
			}
			return err
		})
	}
	return data, g.Wait()
}
