package transparency

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/commitment"
)

// Archive computes record roots from an archive of the log. It is safe for concurrent use.
type Archive interface {
	// Roots returns the roots of the records with the sequences [from, to). The error is fs.ErrNotExist if the archive does not
	// reach that far.
	Roots(ctx context.Context, from, to int64) ([]commitment.Hash, error)
	// Before returns the number of records in full ranges of the archive that end before a time.
	Before(ctx context.Context, t time.Time) (int64, error)
}

const (
	// span is the number of records of a full tile of level 1. Their leaf tiles and bundles are deleted together.
	span = width * width
	// together is the number of tiles in one read of roots: an archive decodes thousands of records to return one.
	together = 32
	// maxRead bounds the roots in memory, in reads: 8 MiB.
	maxRead = 32
	// deriveWait bounds the wait for the leaves that others asked for. Anybody may ask for those of a public log.
	deriveWait = 5 * time.Second
	// maxGuests bounds the guests who wait at the same time.
	maxGuests = 64
	// storedFromKey names the blob with the sequence of the first record with stored leaves.
	storedFromKey = "stored-from"
)

// errBusy reports that too many others ask for leaves that are not stored.
var errBusy = errors.New("transparency: too many old tiles are asked for")

// derived makes leaves that the bucket does not have.
type derived struct {
	archive Archive
	turn    chan struct{}
	guest   chan struct{} // the turn of the tiles that anybody may ask for: proofs wait for at most one of them
	guests  atomic.Int64  // who wait

	mu   sync.Mutex
	read map[int64][]commitment.Hash // the roots of together tiles, by the index of the first tile divided by that number
}

// WithArchive returns a store of the same log that derives leaf tiles and entry bundles from an archive if the bucket does not have
// them, and that can delete them.
func (s *Store) WithArchive(a Archive) *Store {
	return &Store{s.blobs, s.folder, &derived{archive: a, turn: make(chan struct{}, 1), guest: make(chan struct{}, 1), read: make(map[int64][]commitment.Hash)}}
}

// derive returns a full leaf tile or bundle. The error is fs.ErrNotExist if the archive does not have its records, or if no full
// tile of level 1 covers it.
func (s *Store) derive(ctx context.Context, t tlog.Tile, guest bool) ([]byte, error) {
	above, err := s.above(ctx, t.N/width)
	if err != nil {
		return nil, err
	}
	roots, err := s.derived.roots(ctx, t.N/together, guest)
	if err != nil {
		return nil, fmt.Errorf("%s is not stored, and is made from the archive: %w", TilePath(t), err)
	}
	at := int(t.N % together * width)
	l, err := leavesOf(roots[min(at, len(roots)):min(at+width, len(roots))], t.N, above)
	if err != nil {
		s.derived.drop(t.N / together) // the archive may be mended
		return nil, err
	}
	if t.L == bundles {
		return l.bundle, nil
	}
	return l.tile, nil
}

// roots returns the roots of a read.
func (d *derived) roots(ctx context.Context, n int64, guest bool) ([]commitment.Hash, error) {
	if roots := d.find(n); roots != nil {
		return roots, nil
	}
	late := time.NewTimer(deriveWait)
	defer late.Stop()
	turns := []chan struct{}{d.turn}
	if guest {
		defer d.guests.Add(-1)
		if d.guests.Add(1) > maxGuests {
			return nil, errBusy
		}
		turns = []chan struct{}{d.guest, d.turn}
	}
	for _, turn := range turns {
		select {
		case turn <- struct{}{}:
			defer func() { <-turn }()
		case <-late.C:
			return nil, errBusy
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	if roots := d.find(n); roots != nil {
		return roots, nil
	}
	roots, err := d.archive.Roots(ctx, n*together*width, (n+1)*together*width)
	if err == nil {
		d.keep(n, roots)
	}
	return roots, err
}

func (d *derived) find(n int64) []commitment.Hash {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.read[n]
}

func (d *derived) keep(n int64, roots []commitment.Hash) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.read) >= maxRead {
		for another := range d.read { // an arbitrary one
			delete(d.read, another)
			break
		}
	}
	d.read[n] = roots
}

func (d *derived) drop(n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.read, n)
}

// leaves are a full leaf tile and its entry bundle.
type leaves struct{ tile, bundle []byte }

// above returns the stored full tile of level 1 with an index.
func (s *Store) above(ctx context.Context, index int64) ([]byte, error) {
	return s.stored(ctx, tlog.Tile{H: height, L: 1, N: index, W: width})
}

// leavesOf returns the leaves of the records of a full tile, after it has compared their hash with that in the tile of level 1 above.
func leavesOf(roots []commitment.Hash, index int64, above []byte) (l leaves, err error) {
	if len(roots) != width {
		return l, fmt.Errorf("%w: the archive has %d records of tile %d", ErrDamaged, len(roots), index)
	}
	hashes := make([]tlog.Hash, width)
	for i, root := range roots {
		entry := Entry(root)
		l.bundle = append(binary.BigEndian.AppendUint16(l.bundle, EntrySize), entry[:]...)
		hashes[i] = leafHash(&entry)
	}
	l.tile = concatenated(hashes)
	if at := index % width * tlog.HashSize; commitment.RootOf(hashes) != tlog.Hash(above[at:at+tlog.HashSize]) {
		return l, fmt.Errorf("%w: the archive has other records than the tree from record %d on", ErrDamaged, index*width)
	}
	return l, nil
}

// Thin is that of Store, for the tree that the follower extends. It deletes nothing while another node extends the tree, or this one
// builds it again.
func (f *Follower) Thin(ctx context.Context, older time.Time) error {
	from, err := f.thin(ctx, older)
	if from >= 0 {
		f.update(func(s *Status) { s.StoredFrom = from })
	}
	return err
}

// thin returns the sequence of the first record with stored leaves, or -1 if it is unknown.
func (f *Follower) thin(ctx context.Context, older time.Time) (from int64, err error) {
	if f.leads() {
		return f.cfg.Store.Thin(ctx, older, f.Status().Signed, f.leads)
	}
	if from, err = f.cfg.Store.marked(ctx); err != nil {
		return -1, err
	}
	return from, nil
}

// leads reports whether this follower extends the tree, and all tiles of the signed one are stored.
func (f *Follower) leads() bool {
	s := f.Status()
	return !s.Halted && s.Size > 0 && s.Size >= s.Signed
}

// Thin deletes the leaf tiles and entry bundles of archived records that are older than a time, except those of the last span of
// a tree of a size. Before it deletes the leaves of a span, it derives them and compares their hashes with the tree, and asks
// whether it may go on. It returns the sequence of the first record with stored leaves, or -1 after an error if that is unknown. A
// process may be killed at any time: the next one continues.
func (s *Store) Thin(ctx context.Context, older time.Time, size int64, on func() bool) (from int64, err error) {
	if s.derived == nil {
		return 0, nil
	}
	if from, err = s.storedFrom(ctx, size); err != nil {
		return -1, err
	}
	end, err := s.derived.archive.Before(ctx, older)
	if err != nil {
		return from, err
	}
	for ; from+span <= min(end, size-span) && on(); from += span {
		if err := s.thin(ctx, from); err != nil {
			return from, fmt.Errorf("the leaves from record %d on stay in the bucket: %w", from, err)
		}
		next := strconv.FormatInt(from+span, 10)
		if err := s.blobs.Write(ctx, s.folder+storedFromKey, []byte(next), blob.Patience); err != nil {
			return from, err
		}
	}
	return from, nil
}

// thin deletes the leaves of a span.
func (s *Store) thin(ctx context.Context, from int64) error {
	above, err := s.above(ctx, from/span)
	if err != nil {
		return err
	}
	roots, err := s.derived.archive.Roots(ctx, from, from+span)
	if err != nil {
		return err
	}
	var keys []string
	for first := from / width; len(roots) > 0; first++ {
		if _, err := leavesOf(roots[:min(width, len(roots))], first, above); err != nil {
			return err
		}
		for _, level := range []int{0, bundles} {
			keys = append(keys, s.folder+TilePath(tlog.Tile{H: height, L: level, N: first, W: width}))
		}
		roots = roots[width:]
	}
	if len(keys) != 2*width {
		return fmt.Errorf("%w: the archive has records of %d tiles", ErrDamaged, len(keys)/2)
	}
	return s.blobs.Delete(ctx, keys...)
}

// maxNumber bounds the bytes of a sequence.
const maxNumber = 20

// marked returns the sequence that the marker has, or 0 if it has none.
func (s *Store) marked(ctx context.Context) (int64, error) {
	text, err := s.blobs.Read(ctx, s.folder+storedFromKey, maxNumber)
	if blob.Missing(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || n < 0 || n%span != 0 {
		return 0, nil // the leaves are deleted once more
	}
	return n, nil
}

// storedFrom returns the sequence of the first record with stored leaves of a tree of a size, or a smaller one. A marker that is
// beyond them is deleted: it is damaged, or a node stored the leaves again that does not know markers or did not see this one.
func (s *Store) storedFrom(ctx context.Context, size int64) (int64, error) {
	n, err := s.marked(ctx)
	if err != nil || n == 0 {
		return 0, err
	}
	if n > size-span {
		return 0, s.storesAll(ctx)
	}
	for _, index := range []int64{0, n/width - 1} {
		_, err := s.stored(ctx, tlog.Tile{H: height, L: 0, N: index, W: width})
		if err == nil {
			return 0, s.storesAll(ctx)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return 0, err
		}
	}
	return n, nil
}

// storesAll forgets that leaves were deleted, because the tree is built again.
func (s *Store) storesAll(ctx context.Context) error {
	return s.blobs.Delete(ctx, s.folder+storedFromKey)
}
