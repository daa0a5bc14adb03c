package projections

import (
	"context"

	"github.com/perpetua-exchange/perpetua/streams/follow"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Verified is a log of which only the records can be read that a checked fold has verified.
type Verified struct {
	Log
	Marks *follow.Marks // of the fold
}

// From implements Log.
func (v Verified) From(at record.Position) Reader {
	return &verifiedReader{v.Log.From(at), v.Marks.Hold()}
}

// verifiedReader holds entries back until they are verified.
type verifiedReader struct {
	Reader
	held *follow.Held
}

// Poll implements Reader.
func (r *verifiedReader) Poll(ctx context.Context) ([]record.Entry, error) {
	return r.held.Next(ctx, func(ctx context.Context, _ int64) ([]record.Entry, error) { return r.Reader.Poll(ctx) })
}
