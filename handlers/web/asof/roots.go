package asof

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"time"

	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/streams/commitment"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Roots knows the roots of records (package commitment).
type Roots interface {
	// Has reports whether a record has a root. It returns fs.ErrNotExist if the transparency log does not cover the record yet.
	Has(ctx context.Context, of record.LogPosition, root commitment.Hash) (bool, error)
}

// named is a position in a question, and the root that its record must have. The root is nil if the question does not name one.
type named struct {
	record.LogPosition
	root *commitment.Hash
}

// parseNamed reads a position with or without a root.
func parseNamed(text string) (p named, err error) {
	position, root, rooted := strings.Cut(text, ":")
	if p.LogPosition, err = record.ParseLogPosition(position); err != nil || !rooted {
		return p, err
	}
	if p.Sequence < 0 {
		return p, errors.New("there is no record before the genesis")
	}
	p.root = new(commitment.Hash)
	return p, p.root.UnmarshalText([]byte(root))
}

// confirm returns an error unless each record has the root that the question names for it.
func (q *Question) confirm(ctx context.Context, s Source) error {
	for _, p := range q.positions {
		if p.root == nil {
			continue
		}
		has, err := s.Roots.Has(ctx, p.LogPosition, *p.root)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return s.notCovered(ctx, p.LogPosition)
		case err != nil:
			return problem.SourceFailed(err)
		case !has:
			return problem.Conflict("ROOT_MISMATCH", "The record "+p.String()+" does not have this root.")
		}
	}
	return nil
}

// notCovered returns the response to a root of a record that the transparency log does not cover: a 409 if there is no such
// record, or else a 503.
func (s Source) notCovered(ctx context.Context, p record.LogPosition) error {
	if p.Journal == s.Rows.Journal { // resolve has found the records of the others
		if err := s.catchUp(ctx, p.Sequence); err != nil {
			return err
		}
	}
	return problem.Unavailable("ROOT_NOT_PUBLISHED", "The transparency log does not cover "+p.String()+" yet.", time.Second)
}
