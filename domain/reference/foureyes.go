package reference

import (
	"maps"
	"strings"
)

// policyShape is the data of four_eyes.set.
type policyShape struct {
	Rules []struct {
		Action    string `json:"action"`
		Threshold dec    `json:"threshold"`
	} `json:"rules"`
}

// proposalShape is the data of the events about a proposal.
type proposalShape struct {
	ID         string `json:"id"`
	Action     string `json:"action"`
	Command    string `json:"command"`
	ProposedBy string `json:"proposed_by"`
	Proposed   int64  `json:"proposed"`
	By         string `json:"by"`
	Seen       int64  `json:"seen"`
	Expires    moment `json:"expires_at"`
	Changed    int64  `json:"changed"`
	Reason     string `json:"reason"`
}

// proposal is an open proposal.
type proposal struct {
	proposalShape
	sequence int64
}

// fourEyes is the policy in force and the proposals that have not ended or expired.
type fourEyes struct {
	thresholds map[string]dec // by action
	proposals  map[string]*proposal
}

// person returns the user that gave the record's command.
func (a *Auditor) person() string {
	actor := a.r.Command.Actor
	must(actor.Sub != "" && actor.System == "", "an action with two persons is by %q of the system %q", actor.Sub, actor.System)
	return actor.Sub
}

func (a *Auditor) setPolicy(e *policyShape) {
	must(a.rules >= 4, "a policy is set under rules %d", a.rules)
	after := make(map[string]dec, len(e.Rules))
	for _, r := range e.Rules {
		_, twice := after[r.Action]
		must(!twice, "the policy names %s twice", r.Action)
		after[r.Action] = r.Threshold
	}
	a.thresholds = after
}

func (a *Auditor) propose(e *proposalShape) {
	r := a.r
	must(len(r.Events) == 1 && r.Command.Type == e.Command, "a proposal of %s is not the only event of %s", e.Command, r.Command.Type)
	must(e.ProposedBy == a.person() && e.Seen == r.Sequence-1 && e.Expires > r.Time, "the proposal %s is not by %s at %d", e.ID, e.ProposedBy, e.Seen)
	must(a.proposals[e.ID] == nil, "the proposal %s is made twice", e.ID)
	if a.proposals == nil {
		a.proposals = make(map[string]*proposal)
	}
	maps.DeleteFunc(a.proposals, func(_ string, p *proposal) bool { return r.Time >= p.Expires })
	a.proposals[e.ID] = &proposal{*e, r.Sequence}
}

// endProposal checks that a proposal was open, and that the right person ended it. A confirmation is the last event of a record,
// after the events of the action. The other ends are the only event.
func (a *Auditor) endProposal(n int, how string, e *proposalShape) {
	r, p := a.r, a.proposals[e.ID]
	must(p != nil, "the proposal %s is %s, and is not open", e.ID, how)
	must(p.ProposedBy == e.ProposedBy && p.Action == e.Action && p.sequence == e.Proposed && r.Time < p.Expires, "the proposal %s is not the one that is %s", e.ID, how)
	must(e.By == a.person() && (e.By == e.ProposedBy) == (how == "withdrawn"), "the proposal of %s is %s by %s", e.ProposedBy, how, e.By)
	must(n == len(r.Events)-1 && (n > 0) == (how == "confirmed"), "the record of a proposal that is %s has %d events", how, len(r.Events))
	must((r.Outcome == "rejected") == (how == "voided"), "a proposal is %s with the outcome %s", how, r.Outcome)
	must(how != "voided" || e.Changed > p.sequence && e.Changed < r.Sequence, "the proposal %s is voided by record %d", e.ID, e.Changed)
	must(e.Reason == "" || a.rules >= 6 && (how == "rejected" || how == "withdrawn"), "a proposal is %s for a reason under rules %d", how, a.rules)
	delete(a.proposals, e.ID)
	if how == "confirmed" {
		a.Seen.Confirmed++
	}
}

// governed checks that a command which needs two persons has only been proposed. It is called before the events are applied.
func (a *Auditor) governed() {
	r := a.r
	threshold, covered := a.thresholds[r.Command.Type]
	if r.Command.Type == "four_eyes.set" {
		threshold, covered = dec{}, len(a.thresholds) > 0
	}
	if !covered || r.Command.Actor.System != "" || r.Events[0].Type == "proposal.made" {
		return
	}
	e := parse[accountShape](r.Events[len(r.Events)-1].Data)
	amount := e.Amount.v
	switch {
	case r.Command.Type == "opening.import":
		e := parse[openingShape](r.Events[0].Data)
		amount = e.BalanceTotal.v
		must(e.Positions == 0, "positions are imported without a second person")
	case r.Command.Type == "fee_profile.set":
		if !strings.Contains(string(r.Command.Data.Input), `"operator":true`) {
			return // a broker's own fees
		}
		amount = -e.MakerFee.v
	case strings.HasPrefix(r.Command.Type, "withdrawal."):
		amount = -amount
	}
	must(threshold.set && amount < threshold.v, "%s of %d takes effect without a second person", r.Command.Type, amount)
}
