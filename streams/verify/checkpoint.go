package verify

import (
	"context"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/disclose"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/commitment"
	"github.com/perpetua-exchange/perpetua/streams/transparency"
)

// Checkpoint is the tree of record roots in a signed checkpoint. Classes and Keys are needed to compute the roots again.
type Checkpoint struct {
	Journal scalar.ID
	Size    int64
	Root    tlog.Hash
	// Classes are the disclosure classes of the events.
	Classes *disclose.Policy
	// Keys returns new epoch keys of the journal. Each worker has its own.
	Keys func(journal scalar.ID) (*commitment.Keys, error)
}

// roots computes the record roots of one worker.
type roots struct {
	committer *commitment.Committer
	keys      *commitment.Keys
}

func (c *Checkpoint) roots(journal string, id scalar.ID) (*roots, error) {
	if id != c.Journal {
		return nil, fmt.Errorf("verify: the checkpoint is of the journal %v, and the log of %v", c.Journal, id)
	}
	committer, err := commitment.NewCommitter(c.Classes, journal)
	if err != nil {
		return nil, err
	}
	keys, err := c.Keys(id)
	return &roots{committer: committer, keys: keys}, err
}

// add adds the root of a record to its span. state is the one before the record.
func (r *roots) add(ctx context.Context, s *span, state decide.State, e *item) error {
	if of, ok := state.(decide.Facts); ok {
		r.keys.Schedule = of.Commitments()
	}
	key, err := r.keys.At(ctx, e.Position.Sequence)
	if err != nil {
		return fmt.Errorf("verify: the key of the root of record %d: %w", e.Position.Sequence, err)
	}
	root, err := r.committer.Root(key, e.Position.Sequence, e.Value)
	if err != nil {
		return fmt.Errorf("verify: the root of record %d: %w", e.Position.Sequence, err)
	}
	s.roots = append(s.roots, root)
	return nil
}

// tree is the tree over the roots that were collected so far.
type tree struct {
	*Checkpoint
	transparency.Tree
}

// tree returns the empty tree, or nil without a checkpoint.
func (c *Checkpoint) tree() *tree {
	if c == nil {
		return nil
	}
	return &tree{Checkpoint: c}
}

// add adds the roots of the next span.
func (t *tree) add(v *verification, roots []commitment.Hash) {
	for _, root := range roots {
		t.Append(root, func(transparency.Tile) {})
	}
	if t.Tree.Size() == t.Checkpoint.Size && v.report.Proven == 0 && t.Checkpoint.Size > 0 {
		t.compare(v)
	}
}

func (t *tree) compare(v *verification) {
	if root := t.Tree.Root(); root != t.Checkpoint.Root {
		v.differs(&Difference{CheckCheckpoint, t.Checkpoint.Size - 1, -1, fmt.Sprintf(
			"this record, or one before it, is not the one that was signed: the tree of %d records has the root %v, and the checkpoint %v",
			t.Checkpoint.Size, root, t.Checkpoint.Root)})
		return
	}
	v.report.Proven = t.Checkpoint.Size
}

// end checks that the log is not shorter than the checkpoint.
func (t *tree) end(v *verification) {
	if n := t.Tree.Size(); n < t.Checkpoint.Size {
		v.differs(&Difference{CheckCheckpoint, n, -1, fmt.Sprintf("the log ends before this record, and the checkpoint covers %d records", t.Checkpoint.Size)})
	}
}
