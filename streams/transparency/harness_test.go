package transparency

import (
	"context"
	"errors"

	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocloud "gocloud.dev/blob"
	"gocloud.dev/blob/memblob"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/commitment"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

var testOrigin = Origin{"venue.example", "trading", 0, scalar.ID{1}}

// testLog is a log in memory. Its records have no content but their roots.
type testLog struct {
	seed uint64

	mu   sync.Mutex
	size int64
	more chan struct{}
}

func newLog(seed uint64, size int64) *testLog {
	return &testLog{seed: seed, size: size, more: make(chan struct{})}
}

func (l *testLog) grow(n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.size += n
	close(l.more)
	l.more = make(chan struct{})
}

func (l *testLog) position(sequence int64) record.Position {
	if sequence < 0 {
		return record.Before
	}
	return record.Position{Offset: sequence, Sequence: sequence, Hash: record.Hash(rootAt(l.seed+1, sequence))}
}

func (l *testLog) root(_ context.Context, e record.Entry) (commitment.Hash, error) {
	return rootAt(l.seed, e.Position.Sequence), nil
}

// testSource reads a testLog.
type testSource struct {
	log  *testLog
	next int64
}

func (l *testLog) from(at record.Position) Source { return &testSource{l, at.Sequence + 1} }

func (s *testSource) Close() {}

func (s *testSource) Poll(ctx context.Context) (entries []record.Entry, err error) {
	for {
		s.log.mu.Lock()
		size, more := s.log.size, s.log.more
		s.log.mu.Unlock()
		if at := s.log.position(s.next - 1); s.next > size {
			return nil, &record.DivergedError{Journal: "trading", Have: at, Reason: "the log is shorter"}
		}
		for ; s.next < size && len(entries) < 100; s.next++ {
			entries = append(entries, record.Entry{Position: s.log.position(s.next), Journal: testOrigin.ID})
		}
		if len(entries) > 0 {
			return entries, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-more:
		}
	}
}

// memoryHeads implements Heads. It remembers every head that was ever recorded.
type memoryHeads struct {
	mu        sync.Mutex
	head      Head
	all       []Head
	published Checkpoint
}

func (m *memoryHeads) Head(context.Context, Origin) (Head, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.head.Size == 0 {
		return Head{Position: record.Before}, nil
	}
	return m.head, nil
}

func (m *memoryHeads) Advance(_ context.Context, _ Origin, old, next Head) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.head.Size != old.Size || m.head.Root != old.Root {
		return ErrMoved
	}
	m.head, m.all = next, append(m.all, next)
	return nil
}

func (m *memoryHeads) Publish(_ context.Context, _ Origin, c Checkpoint) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c.Size >= m.published.Size {
		m.published = c
	}
	return nil
}

func (m *memoryHeads) Published(context.Context, Origin) (Checkpoint, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.published, nil
}

// PublishCosigned implements CosignedTrees. No witness is asked.
func (m *memoryHeads) PublishCosigned(context.Context, Origin, Checkpoint) error {
	return errors.New("nothing is cosigned")
}

func (m *memoryHeads) Cosigned(context.Context, Origin) (Checkpoint, error) { return Checkpoint{}, nil }

// errKilled is the error of a store whose process was killed.
var errKilled = errors.New("killed")

// killer counts the changes of a bucket and of heads. It fails all that come after some, and ends the process.
type killer struct {
	end func()

	mu   sync.Mutex
	left int // changes until the end
}

func (k *killer) change() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.left == 0 {
		k.end()
		return errKilled
	}
	k.left--
	return nil
}

// allow sets how many changes succeed from now on.
func (k *killer) allow(changes int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.left = changes
}

// killed is a bucket of a process that is killed.
type killed struct {
	*blob.Store
	killer *killer
}

func (b killed) Write(ctx context.Context, key string, content []byte, within time.Duration) error {
	if err := b.killer.change(); err != nil {
		return err
	}
	return b.Store.Write(ctx, key, content, within)
}

func (b killed) Delete(ctx context.Context, keys ...string) error {
	for _, key := range keys {
		if err := b.killer.change(); err != nil {
			return err
		}
		if err := b.Store.Delete(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

type killedHeads struct {
	Heads
	killer *killer
}

func (h killedHeads) Advance(ctx context.Context, of Origin, old, next Head) error {
	if err := h.killer.change(); err != nil {
		return err
	}
	return h.Heads.Advance(ctx, of, old, next)
}

func (h killedHeads) Publish(ctx context.Context, of Origin, c Checkpoint) error {
	if err := h.killer.change(); err != nil {
		return err
	}
	return h.Heads.Publish(ctx, of, c)
}

// venue is a log with its stores.
type venue struct {
	t      testing.TB
	log    *testLog
	bucket *gocloud.Bucket
	heads  Heads
	store  *Store
	signer *Signer
}

func newVenue(t testing.TB, log *testLog, heads Heads) *venue {
	t.Helper()
	v := &venue{t: t, log: log, bucket: memblob.OpenBucket(nil), heads: heads}
	t.Cleanup(func() { v.bucket.Close() })
	v.store = NewStore(blob.NewStore(v.bucket), testOrigin)
	v.signer = NewSigner(testOrigin, heads, newKey(t, 0))
	return v
}

// follower returns a follower of a process that a killer ends, unless it is nil.
func (v *venue) follower(k *killer) *Follower {
	cfg := Config{Origin: testOrigin, Store: v.store, Heads: v.heads, Signer: v.signer, From: v.log.from, Root: v.log.root,
		Every: time.Nanosecond, Standby: time.Millisecond, Retry: time.Millisecond, Logger: slog.New(slog.DiscardHandler)}
	if k != nil {
		cfg.Store = &Store{blobs: killed{blob.NewStore(v.bucket), k}, folder: testOrigin.folder()}
		cfg.Heads = killedHeads{v.heads, k}
		signer := *v.signer
		signer.heads = cfg.Heads
		cfg.Signer = &signer
	}
	return NewFollower(cfg)
}

// runUntil runs a follower until a size is published, or until it returns.
func (v *venue) runUntil(f *Follower, size int64) error {
	v.t.Helper()
	ctx, stop := context.WithTimeout(v.t.Context(), time.Minute)
	defer stop()
	if h, ok := f.cfg.Heads.(killedHeads); ok {
		h.killer.end = stop
	}
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	defer func() { stop(); <-done }()
	for {
		if c, err := f.cfg.Heads.Published(v.t.Context(), testOrigin); err != nil || c.Size >= size {
			return err
		}
		select {
		case err := <-done:
			done <- err
			return err
		case <-time.After(time.Millisecond):
		}
	}
}

// check verifies everything that is published: the checkpoint, the tiles of its tree, and that no other files are left.
func (v *venue) check(size int64) {
	v.t.Helper()
	c, err := v.heads.Published(v.t.Context(), testOrigin)
	if err != nil {
		v.t.Fatal(err)
	}
	policy, err := NewPolicy().ForLog(c.Verifier)
	if err != nil {
		v.t.Fatal(err)
	}
	opened, err := policy.Open(c.Note)
	if err != nil || opened.Size != size || c.Size != size {
		v.t.Fatalf("the checkpoint is not of size %d: %v", size, err)
	}
	if stored, err := v.store.Checkpoint(v.t.Context()); err != nil || !slices.Equal(stored, c.Note) {
		v.t.Errorf("the bucket has another checkpoint: %v", err)
	}
	var tree Tree
	want := make(map[string][]byte)
	for i := range size {
		tree.Append(rootAt(v.log.seed, i), func(t Tile) { want[TilePath(t.Tile)] = t.Data })
	}
	if tree.Root() != opened.Root {
		v.t.Errorf("the root is %v, not %v", opened.Root, tree.Root())
	}
	for _, t := range tree.Partial() {
		want[TilePath(t.Tile)] = t.Data
	}
	v.checkFiles(want)
}

func (v *venue) checkFiles(want map[string][]byte) {
	v.t.Helper()
	for path, data := range want {
		tile, err := ParseTilePath(path)
		if err != nil {
			v.t.Fatal(err)
		}
		if got, err := v.bucket.ReadAll(v.t.Context(), testOrigin.folder()+TilePath(tile)); err != nil || !slices.Equal(got, data) {
			v.t.Errorf("%s differs: %v", path, err)
		}
	}
	all, err := blob.NewStore(v.bucket).List(v.t.Context(), testOrigin.folder()+"tile/")
	if err != nil {
		v.t.Fatal(err)
	}
	for _, o := range all {
		path := strings.TrimPrefix(o.Key, testOrigin.folder())
		tile, err := ParseTilePath(path)
		if err != nil {
			v.t.Errorf("%s: %v", path, err)
		} else if tile.W == width && want[path] == nil {
			v.t.Errorf("%s is beyond the tree", path)
		}
		if tile.W < width && want[TilePath(full(tile))] != nil {
			v.t.Errorf("%s is left beside the full tile", path)
		}
	}
}

// history checks that the recorded heads are trees of the log, each larger than the one before.
func (m *memoryHeads) history(t testing.TB, log *testLog) {
	t.Helper()
	var tree Tree
	for _, h := range m.all {
		if h.Size <= tree.Size() {
			t.Errorf("a tree of size %d is signed after one of size %d", h.Size, tree.Size())
		}
		for tree.Size() < h.Size {
			tree.Append(rootAt(log.seed, tree.Size()), func(Tile) {})
		}
		if tree.Root() != h.Root || !h.Position.Equal(log.position(h.Size-1)) {
			t.Errorf("the head of size %d is not that of the log", h.Size)
		}
	}
}
