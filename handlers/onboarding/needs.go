package onboarding

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	domain "github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/streams/files"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// FilesOf returns the files that the onboarding journal references, for the sweeper that deletes all others. fold
// follows that journal, and nodes submits commands to its owner on any node.
func FilesOf(fold record.Follower, nodes submit.Submitter) files.Journal {
	return fileJournal{fold, nodes}
}

// fileJournal implements files.Journal for the onboarding journal.
type fileJournal struct {
	fold  record.Follower
	nodes submit.Submitter
}

// Settle submits a document of a nonexistent owner, which the journal's owner refuses. An owner answers only after
// all earlier decisions are acknowledged, and records of earlier owners cannot become valid any more. So the position
// of the refusal covers every command decided before, and Settle waits until the fold has reached it.
func (n fileJournal) Settle(ctx context.Context) error {
	_, err := n.nodes.Submit(ctx, journalName, decide.Command{ID: operation.NewID(), Type: domain.CommandAddDocument,
		Actor: decide.Actor{Sub: "sweeper", Broker: "venue"}, Payload: &domain.AddDocument{Ref: owner.Ref{Type: owner.PersonType}}})
	var refused *submit.RefusedError
	if !errors.As(err, &refused) {
		return fmt.Errorf("the journal does not settle: %w", err)
	}
	return n.fold.Wait(ctx, refused.AsOf.Sequence)
}

// Knows reports whether the journal has a document.
func (n fileJournal) Knows(document scalar.ID) (found bool) {
	n.fold.View(func(s decide.State, _ record.Position) { _, found = s.(*domain.State).Document(document) })
	return found
}

// Since returns the time at which the first owner was registered.
func (n fileJournal) Since() (at time.Time, begun bool) {
	n.fold.View(func(s decide.State, _ record.Position) {
		var first scalar.Time
		first, begun = s.(*domain.State).OldestOwner()
		at = first.Std()
	})
	return at, begun
}

// Needs reports whether a document has its file under the key and its owner is not erased.
func (n fileJournal) Needs(document scalar.ID, source string) (needed bool) {
	n.fold.View(func(s decide.State, _ record.Position) {
		state := s.(*domain.State)
		d, found := state.Document(document)
		if !found || d.Source != source {
			return
		}
		o, found := state.Owner(d.Ref)
		needed = found && o.State != owner.Erased
	})
	return needed || n.fold.Err() != nil // a failed fold is incomplete, so the file may still be needed
}
