package transparency

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/perpetua-exchange/perpetua/streams/record"
)

// writer extends the tree of a follower until an error.
type writer struct {
	*Follower
	head    Head // last recorded one
	tree    *Tree
	at      record.Position // of the last leaf
	pending []Tile          // completed and not stored

	// must is the largest tree that is known to be signed. If again is set, the tree is built from the genesis on, and has to pass
	// must before anything is signed.
	must  tlog.Tree
	again bool

	published time.Time // when a checkpoint was last due
}

// waiting reports whether there is something to sign.
func (w *writer) waiting() bool {
	size := w.tree.Size()
	return size > 0 && size >= w.must.N && (size > w.head.Size || w.again)
}

// due reports whether it is time for a checkpoint.
func (w *writer) due() bool { return w.waiting() && time.Since(w.published) >= w.cfg.Every }

// poll waits for records, but not beyond the time of the next checkpoint. While there is nothing to sign, it returns without records
// after a while.
func (w *writer) poll(ctx context.Context, source Source) ([]record.Entry, error) {
	deadline := time.Now().Add(w.cfg.Standby)
	if w.waiting() {
		deadline = w.published.Add(w.cfg.Every)
	}
	until, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	entries, err := source.Poll(until)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil, nil
	}
	return entries, err
}

// append adds the leaf of a record.
func (w *writer) append(ctx context.Context, e record.Entry) error {
	if e.Position.Sequence != w.tree.Size() || e.Journal != w.cfg.Origin.ID {
		return fmt.Errorf("transparency: record %d of the journal %v follows a tree of size %d", e.Position.Sequence, e.Journal, w.tree.Size())
	}
	root, err := w.cfg.Root(ctx, e)
	if err != nil {
		return fmt.Errorf("transparency: the root of record %d: %w", e.Position.Sequence, err)
	}
	w.tree.Append(root, func(t Tile) { w.pending = append(w.pending, t) })
	w.at = e.Position
	w.unsigned.add(e.Position.Sequence)
	w.update(func(s *Status) { s.Size, s.Unsigned = w.tree.Size(), w.unsigned.read })
	if w.again && w.tree.Size() == w.must.N {
		return w.pass(ctx)
	}
	return nil
}

// pass checks a tree that is built again when it has the size of the largest one that was signed, and stores the partial tiles of
// that size, which the published checkpoint needs.
func (w *writer) pass(ctx context.Context) error {
	if root := w.tree.Root(); root != w.must.Hash {
		return fmt.Errorf("%w: at size %d it gives the root %v, not %v", ErrInconsistent, w.must.N, root, w.must.Hash)
	}
	if err := w.store(ctx); err != nil {
		return err
	}
	return w.cfg.Store.storesAll(ctx) // a node that has just lost the tree may have deleted some leaves, and marked that
}

// flush stores the completed tiles.
func (w *writer) flush(ctx context.Context) error {
	if err := w.cfg.Store.Write(ctx, w.pending); err != nil {
		return err
	}
	// Only a tile at the right edge of a published tree has partial versions. They are removed before the next head is recorded: a
	// process that is killed in between does it again from the same head.
	for _, t := range w.pending {
		if partial(t.Tile, w.head.Size) || partial(t.Tile, w.must.N) {
			if err := w.cfg.Store.RemovePartial(ctx, t.Tile); err != nil {
				return err
			}
		}
	}
	w.pending = nil
	return nil
}

// partial reports whether a tree of a size has a partial version of a tile.
func partial(t tlog.Tile, size int64) bool {
	w := widthAt(t.L, t.N, size)
	return 0 < w && w < width
}

// store stores all tiles of the tree.
func (w *writer) store(ctx context.Context) error {
	if err := w.flush(ctx); err != nil {
		return err
	}
	return w.cfg.Store.Write(ctx, w.tree.Partial())
}

// publish stores the tiles of the tree, records it as the head, and publishes its checkpoint.
func (w *writer) publish(ctx context.Context) error {
	w.published = time.Now()
	if err := w.store(ctx); err != nil {
		return err
	}
	next := Head{Size: w.tree.Size(), Root: w.tree.Root(), Position: w.at}
	err := w.announce(ctx, next)
	if errors.Is(err, ErrMoved) {
		if lost, failed := w.lost(ctx); lost || failed != nil {
			return failed // the next call records the tree
		}
	}
	if err != nil {
		return err
	}
	w.head, w.must, w.again = next, tlog.Tree{N: next.Size, Hash: next.Root}, false
	w.unsigned.sign(next.Size)
	w.update(func(s *Status) { s.Signed, s.Unsigned = next.Size, w.unsigned.read })
	return nil
}

// lost reports whether the heads are those of an earlier time, as after the promotion of a standby of Postgres that lacked the last
// transactions. The tree of the writer is then to be recorded and published again, if it extends the earlier one. It returns ErrMoved if
// another node has published a larger tree, which Postgres has lost too: the writer may be behind.
func (w *writer) lost(ctx context.Context) (bool, error) {
	head, err := w.cfg.Heads.Head(ctx, w.cfg.Origin)
	if err != nil || head.Forgotten || head.Size >= w.head.Size {
		return false, err
	}
	must, err := w.signed(ctx, Head{Size: w.must.N, Root: w.must.Hash})
	if err != nil {
		return false, err
	}
	if must.N > w.must.N {
		return false, ErrMoved
	}
	w.log.Warn("Postgres has lost the last signed tree, which is recorded again", "recorded", head.Size, "signed", w.head.Size)
	w.head = head
	return true, nil
}

// announce signs a tree and publishes the checkpoint. The tiles MUST be stored.
func (w *writer) announce(ctx context.Context, next Head) error {
	tiles := &tileReader{ctx: ctx, store: w.cfg.Store}
	c, err := w.cfg.Signer.Sign(ctx, w.head, next, tlog.TileHashReader(tlog.Tree{N: next.Size, Hash: next.Root}, tiles))
	if errors.Is(err, errUnproven) && !tiles.failed.Load() {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if err != nil {
		return err
	}
	if err := w.cfg.Store.WriteCheckpoint(ctx, c.Note); err != nil {
		return err
	}
	return w.cfg.Heads.Publish(ctx, w.cfg.Origin, c)
}
