package decide

import (
	"slices"
	"strings"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/pack"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/validation"
)

// These are the bounds and the default of the time for which a proposal is open, in seconds.
const (
	MinProposalSeconds     = 60
	MaxProposalSeconds     = 30 * 24 * 60 * 60
	DefaultProposalSeconds = 24 * 60 * 60
)

// Policy says which actions of a journal need two persons. The zero Policy is off: each action needs one person.
type Policy struct {
	// Rules are in the order of their actions, with one rule for each action.
	Rules []PolicyRule `json:"rules"`
	// ProposalSeconds is the time for which a proposal is open.
	ProposalSeconds int `json:"proposal_seconds"`
}

// PolicyRule says that an action needs two persons.
type PolicyRule struct {
	Action string `json:"action"`
	// Threshold is the smallest amount that needs two persons, in the unit of the action. All amounts do if it is nil.
	// (omitzero would leave out a threshold of 0.)
	Threshold *fixed.Decimal `json:"threshold,omitempty"`
}

// On reports whether the policy has a rule. Its change then needs two persons.
func (p *Policy) On() bool { return len(p.Rules) > 0 }

// Covers reports whether an action needs two persons.
func (p *Policy) Covers(s *Subject) bool {
	for i := range p.Rules {
		if r := &p.Rules[i]; r.Action == s.Action {
			return r.Threshold == nil || s.Amount.Cmp(*r.Threshold) >= 0
		}
	}
	return false
}

// Action is an action that a policy may name.
type Action struct {
	Name string
	// Unit is the unit of the amounts that a threshold is compared with, or "" if the action has no amount.
	Unit string
}

// SetPolicy asks to replace the policy of a journal. It needs two persons itself while a policy is on.
//
// Event: four_eyes.set. Refusals: Invalid INVALID_ACTION, INVALID_THRESHOLD, INVALID_PROPOSAL_SECONDS; Conflict
// FOUR_EYES_NOT_IN_FORCE.
type SetPolicy struct{ Policy }

// CommandType returns the type of the command.
func (*SetPolicy) CommandType() string { return CommandSetPolicy }

// Reconstruct implements Payload.
func (p *SetPolicy) Reconstruct(r *Evidence) error {
	if e, ok := EventOf[*PolicySet](r); ok {
		p.Policy = e.Policy
	}
	return nil
}

// Content implements Proposable.
func (p *SetPolicy) Content() any { return &p.Policy }

// PolicySet says which policy is in force from the next record on.
type PolicySet struct{ Policy }

// EventType returns "four_eyes.set".
func (*PolicySet) EventType() string { return TypePolicySet }

// setPolicy decides a SetPolicy command.
func setPolicy(p *SetPolicy, actions []Action) (Event, error) {
	if s := p.ProposalSeconds; s < MinProposalSeconds || s > MaxProposalSeconds {
		return nil, InvalidField("proposal_seconds", "a proposal is open for 60 seconds to 30 days")
	}
	after := Policy{Rules: make([]PolicyRule, 0, len(p.Rules)), ProposalSeconds: p.ProposalSeconds}
	for i, r := range p.Rules {
		at := slices.IndexFunc(actions, func(a Action) bool { return a.Name == r.Action })
		if at < 0 || slices.ContainsFunc(after.Rules, func(o PolicyRule) bool { return o.Action == r.Action }) {
			return nil, invalidRule(i, "action", "the journal has no action "+r.Action+", or it is named twice")
		}
		if r.Threshold != nil {
			if actions[at].Unit == "" || r.Threshold.Sign() < 0 || !r.Threshold.Readable() {
				return nil, invalidRule(i, "threshold", "a threshold is not negative, and "+r.Action+" must have an amount")
			}
			trimmed := r.Threshold.Trim()
			r.Threshold = &trimmed
		}
		after.Rules = append(after.Rules, r)
	}
	slices.SortFunc(after.Rules, func(a, b PolicyRule) int { return strings.Compare(a.Action, b.Action) })
	return &PolicySet{after}, nil
}

// invalidRule is InvalidField for a field of a rule. The field of the refusal names the rule: rules[0].action.
func invalidRule(at int, field, message string) *Refusal {
	r := InvalidField(field, message)
	r.Field = validation.At("rules", at, field).String()
	return r
}

// visit visits the policy. Reading fills p, which is zero.
func (p *Policy) visit(v *pack.Coder) {
	pack.Small(v, &p.ProposalSeconds)
	pack.Slice(v, &p.Rules, func(r *PolicyRule, v *pack.Coder) {
		pack.Word(v, &r.Action)
		pack.Optional(v, &r.Threshold, func(d *fixed.Decimal, v *pack.Coder) {
			pack.Int(v, &d.Coef)
			pack.Byte(v, &d.Scale)
			v.Check(d.Readable())
		})
	})
}

// open returns the time for which a proposal is open.
func (p *Policy) open() scalar.Time { return scalar.Time(p.ProposalSeconds) * scalar.Second }
