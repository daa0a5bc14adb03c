package onboarding

import (
	"context"
	"errors"
	"fmt"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	domain "github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/web"
	"github.com/perpetua-exchange/perpetua/streams/files"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// FilesOf returns which files the onboarding journal needs, for who sweeps the others. The fold is of that journal, and nodes
// takes a command for its owner, whichever node that is.
func FilesOf(fold web.Follower, nodes submit.Submitter) files.Journal { return needs{fold, nodes} }

// needs is the onboarding journal as it knows files.
type needs struct {
	fold  web.Follower
	nodes submit.Submitter
}

// Settle has the journal's owner refuse a document of nobody. An owner answers nothing before all that it decided earlier is
// acknowledged, and no earlier owner's records become valid any more: so the refusal says how far the log has come with
// every command that was decided before.
func (n needs) Settle(ctx context.Context) error {
	_, err := n.nodes.Submit(ctx, journalName, decide.Command{ID: web.NewID(), Type: domain.CommandAddDocument,
		Actor: decide.Actor{Sub: "sweeper", Broker: "venue"}, Payload: &domain.AddDocument{Ref: owner.Ref{Type: owner.PersonType}}})
	var refused *submit.RefusedError
	if !errors.As(err, &refused) {
		return fmt.Errorf("the journal does not settle: %w", err)
	}
	return n.fold.Wait(ctx, refused.AsOf.Sequence)
}

// Needs reports whether a document has its file under the key, and an owner who is not erased.
func (n needs) Needs(document scalar.ID, source string) (needed bool) {
	n.fold.View(func(s decide.State, _ record.Position) {
		state := s.(*domain.State)
		d, found := state.Document(document)
		if !found || d.Source != source {
			return
		}
		o, found := state.Owner(d.Ref)
		needed = found && o.State != owner.Erased
	})
	return needed || n.fold.Err() != nil // what a fold that has failed does not know may well be there
}
