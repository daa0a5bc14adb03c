package journal

import (
	"context"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
)

// Result is the answer to a command.
type Result struct {
	Position LogPosition
	Entry    *Entry // the record that answers the command
	Repeated bool   // it was decided before, in that record
}

// Submitter takes commands for any journal. ownership.Node is the one that handlers use.
type Submitter interface {
	// Submit has the command decided and waits until its record is acknowledged. Its errors are *RefusedError,
	// *NotAcceptedError, *OutcomeUnknownError and *ElsewhereError; anything else is a fault of the program.
	Submit(ctx context.Context, journal string, c decide.Command) (Result, error)
}

// Known is something outside of the log that remembers positions of it: a projection's checkpoints, its anchors,
// the snapshots.
type Known interface {
	// Positions returns the positions known of a partition, none if nothing is known.
	Positions(ctx context.Context, journal string, partition int32) ([]Position, error)
}

// Seed is a state to start a fold from, and where it stands.
type Seed struct {
	State    decide.State
	Position Position
	Term     int64 // of the last taken record before the position
}

// OwnerConfig says what an owner owns and as whom.
type OwnerConfig struct {
	Client     *Client
	Rules      decide.Rules
	Partition  int32
	Partitions int32 // of the journal, for its genesis; 1 if zero
	Node       string
	URL        string
	Build      string
	Known      []Known
	Seed       func(context.Context) (*Seed, error) // nil: fold from genesis
	Deadline   time.Duration                        // of a command; 10 s if zero
}

// Owner owns one partition on this node: it runs terms and decides commands.
type Owner struct{ cfg OwnerConfig }

// NewOwner returns an owner that accepts nothing until Run has a valid term.
func NewOwner(cfg OwnerConfig) (*Owner, error) { return &Owner{cfg: cfg}, nil }

// Run owns the partition until the context ends, which drains what is in flight and returns nil. It returns a
// *ForeignTermError when another process took the partition, and a final error when the log is at fault.
func (o *Owner) Run(ctx context.Context) error { <-ctx.Done(); return nil }

// Submit has a command decided and waits for its answer.
func (o *Owner) Submit(ctx context.Context, c decide.Command) (Result, error) {
	return Result{}, &NotAcceptedError{RetryAfter: time.Second, Reason: "no term"}
}

// Serving returns the owner's term and whether it is valid and accepts commands.
func (o *Owner) Serving() (term int64, ok bool) { return 0, false }
