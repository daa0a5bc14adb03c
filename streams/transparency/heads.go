package transparency

import (
	"context"
	"errors"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Head is a tree that was signed, or may have been. The zero Head is that of a log of which nothing was signed.
type Head struct {
	Size     int64
	Root     tlog.Hash
	Position record.Position // of the last record, whose sequence is Size-1
	// Forgotten says that the log was forgotten since, so that its records may be others.
	Forgotten bool
	Recorded  time.Time
}

// Heads records the heads of logs. All nodes of a venue share one.
type Heads interface {
	// Head returns the last head of a log, or the zero Head.
	Head(ctx context.Context, of Origin) (Head, error)
	// Advance replaces the last head, which MUST be old, by another. It returns ErrMoved if the last head is not old. Of
	// concurrent calls with the same old head, it MUST succeed for one only. It MUST NOT return nil before the head is durable.
	Advance(ctx context.Context, of Origin, old, next Head) error
	// Publish replaces the published checkpoint of a log. It changes nothing if a larger one is published.
	Publish(ctx context.Context, of Origin, c Checkpoint) error
	// Published returns the checkpoint that Publish was last called with, or the zero Checkpoint.
	Published(ctx context.Context, of Origin) (Checkpoint, error)
}

// ErrMoved says that another node has recorded a later head.
var ErrMoved = errors.New("transparency: another node has signed a larger tree")

// Checkpoint is a signed checkpoint.
type Checkpoint struct {
	Size     int64
	Note     []byte // the signed note
	Verifier string // the keys that verify it, in the form of package note: one a line, the newest first
}

// Newest returns the newest of the keys that verify the checkpoint.
func (c Checkpoint) Newest() string {
	key, _, _ := strings.Cut(c.Verifier, "\n")
	return key
}

// CosignedTrees records the checkpoints that witnesses have cosigned. All nodes of a venue share one.
type CosignedTrees interface {
	// PublishCosigned replaces the cosigned checkpoint of a log. It changes nothing if a larger one is published.
	PublishCosigned(ctx context.Context, of Origin, c Checkpoint) error
	// Cosigned returns the checkpoint that PublishCosigned was last called with, or the zero Checkpoint.
	Cosigned(ctx context.Context, of Origin) (Checkpoint, error)
}
