package wire

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Proposal is an action that waits, or waited, for a second person.
type Proposal struct {
	ID         scalar.ID             `json:"id"`
	Journal    string                `json:"journal"`
	Action     string                `json:"action"`
	Status     decide.ProposalStatus `json:"status"`
	Content    jsontext.Value        `json:"content"`
	Objects    []string              `json:"objects"`
	ProposedBy string                `json:"proposed_by"`
	// Sequence is the sequence of the record that made the proposal. Seen is that of the record before.
	Seen     int64       `json:"seen"`
	Sequence int64       `json:"sequence"`
	Created  scalar.Time `json:"created"`
	Expires  scalar.Time `json:"expires_at"`
	// Changed is the sequence of the record that changed one of the objects, so that a confirmation would void the proposal.
	Changed       *int64       `json:"changed_sequence"`
	EndedBy       *string      `json:"ended_by"`
	Ended         *scalar.Time `json:"ended"`
	EndedSequence *int64       `json:"ended_sequence"`
	// EndedReason is the reason of the user that ended it, if that user gave one.
	EndedReason *string `json:"ended_reason"`
}

// NewProposal returns the response for p with its status at now. It has no texts that the log encrypts.
func NewProposal(journal string, p *decide.Proposal, now scalar.Time) Proposal {
	out := Proposal{ID: p.ID, Journal: journal, Action: p.Action, Status: p.StatusAt(now), Content: inTheClear(p.Content), Objects: p.Objects,
		ProposedBy: p.ProposedBy, Seen: p.Seen, Sequence: p.Sequence, Created: p.Created, Expires: p.Expires}
	if p.Changed != 0 {
		out.Changed = &p.Changed
	}
	if p.Status != decide.StatusOpen {
		out.EndedBy, out.Ended, out.EndedSequence = &p.EndedBy, &p.Ended, &p.EndedAt
		if p.Reason != "" && journal != "onboarding" {
			out.EndedReason = &p.Reason
		}
	}
	return out
}

// inTheClear returns the content of a proposal without its encrypted texts, which belong to the commands of the onboarding
// journal, and without the secrets of users and signing keys. A sealed password becomes sets_password.
func inTheClear(content string) jsontext.Value {
	var members map[string]jsontext.Value
	if err := json.Unmarshal([]byte(content), &members); err != nil {
		return jsontext.Value(content) // not an object, which no command is
	}
	if members["password_hash"] != nil {
		members["sets_password"] = jsontext.Value("true")
	}
	for _, name := range [...]string{"reason", "internal_reason", "external_reference", "password_hash", "private"} {
		delete(members, name)
	}
	text, err := json.Marshal(members, json.Deterministic(true))
	if err != nil {
		return jsontext.Value(content)
	}
	return text
}

// Reveal adds texts to the content, by member.
func (p *Proposal) Reveal(texts map[string]string) {
	var members map[string]jsontext.Value
	if err := json.Unmarshal(p.Content, &members); err != nil || len(texts) == 0 {
		return // not an object, which no command is
	}
	for name, text := range texts {
		if value, err := json.Marshal(text); err == nil {
			members[name] = value
		}
	}
	if content, err := json.Marshal(members, json.Deterministic(true)); err == nil {
		p.Content = content
	}
}

// Policy is the policy of a journal.
type Policy struct {
	Journal         string       `json:"journal"`
	Rules           []PolicyRule `json:"rules"`
	ProposalSeconds int          `json:"proposal_seconds"`
	// Actions are those that a rule may name.
	Actions []PolicyAction `json:"actions"`
	// Note says what makes the policy weak, or "".
	Note string `json:"note,omitzero"`
}

// PolicyRule is a rule of a policy.
type PolicyRule struct {
	Action    string         `json:"action"`
	Threshold *fixed.Decimal `json:"threshold"`
}

// PolicyAction is an action that a rule may name, with the unit of the amounts, or nil.
type PolicyAction struct {
	Action string  `json:"action"`
	Unit   *string `json:"unit"`
}

// NewPolicy returns the form of a policy.
func NewPolicy(journal string, p decide.Policy, actions []decide.Action) Policy {
	out := Policy{Journal: journal, Rules: make([]PolicyRule, len(p.Rules)), ProposalSeconds: p.ProposalSeconds, Actions: make([]PolicyAction, len(actions))}
	if out.ProposalSeconds == 0 {
		out.ProposalSeconds = decide.DefaultProposalSeconds
	}
	for i, r := range p.Rules {
		out.Rules[i] = PolicyRule(r)
	}
	for i := range actions {
		out.Actions[i].Action = actions[i].Name
		if actions[i].Unit != "" {
			out.Actions[i].Unit = &actions[i].Unit
		}
	}
	return out
}
