// Package decidetest has events for tests of the states of journals.
package decidetest

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// FourEyes returns events of a record after which the state has a policy, a proposal that is open, and one that is not.
func FourEyes() []decide.Event {
	threshold := fixed.Decimal{Coef: 25, Scale: 1}
	made := decide.ProposalMade{ID: scalar.ID{1}, Action: "due.put_back", Command: "due.put_back", Content: `{"entry":"expiry/1"}`,
		Objects: []string{"due/expiry/1", "more"}, Reference: "r", ProposedBy: "operator", Seen: 8, Created: 5, Expires: 500}
	ended := made
	ended.ID = scalar.ID{2}
	return []decide.Event{
		&decide.PolicySet{Policy: decide.Policy{Rules: []decide.PolicyRule{{Action: "due.put_back"}, {Action: "withdrawal.request", Threshold: &threshold}}, ProposalSeconds: 3600}},
		&made, &ended,
		&decide.ProposalRejected{ProposalEnd: decide.ProposalEnd{ID: ended.ID, Action: ended.Action, ProposedBy: "operator", By: "olga", Time: 6}, Reason: "too late"},
	}
}
