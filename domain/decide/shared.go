package decide

// The commands that every journal accepts and the types of the events that occur in every journal.
const (
	CommandActivateRules       = "rules.activate"        // *ActivateRules
	CommandPutBackDue          = "due.put_back"          // *PutBackDue
	CommandRotateCommitment    = "commitment.rotate"     // *RotateCommitment
	CommandDiscloseCommitment  = "commitment.disclose"   // *DiscloseCommitment
	CommandRotateCheckpointKey = "checkpoint_key.rotate" // *RotateCheckpointKey
	CommandSetPolicy           = "four_eyes.set"         // *SetPolicy
	CommandConfirmProposal     = "proposal.confirm"      // *ConfirmProposal
	CommandRejectProposal      = "proposal.reject"       // *RejectProposal
	CommandWithdrawProposal    = "proposal.withdraw"     // *WithdrawProposal

	TypeRulesActivated       = "rules.activated"
	TypeDueSetAside          = "due.set_aside"
	TypeDuePutBack           = "due.put_back"
	TypeCommitmentRotated    = "commitment.rotated"
	TypeCommitmentDisclosed  = "commitment.disclosed"
	TypeCheckpointKeyRotated = "checkpoint_key.rotated"
	TypePolicySet            = "four_eyes.set"
	TypeProposalMade         = "proposal.made"
	TypeProposalConfirmed    = "proposal.confirmed"
	TypeProposalRejected     = "proposal.rejected"
	TypeProposalWithdrawn    = "proposal.withdrawn"
	TypeProposalVoided       = "proposal.voided"
)

// sharedEvents returns the constructors of the events that occur in every journal.
func sharedEvents() []func() Event {
	return []func() Event{
		func() Event { return new(RulesActivated) },
		func() Event { return new(DueSetAside) },
		func() Event { return new(DuePutBack) },
		func() Event { return new(CommitmentRotated) },
		func() Event { return new(CommitmentDisclosed) },
		func() Event { return new(CheckpointKeyRotated) },
		func() Event { return new(PolicySet) },
		func() Event { return new(ProposalMade) },
		func() Event { return new(ProposalConfirmed) },
		func() Event { return new(ProposalRejected) },
		func() Event { return new(ProposalWithdrawn) },
		func() Event { return new(ProposalVoided) },
	}
}

// isShared reports whether an event occurs in every journal.
func isShared(e Event) bool {
	switch e.(type) {
	case *RulesActivated, *DueSetAside, *DuePutBack, *CommitmentRotated, *CommitmentDisclosed, *CheckpointKeyRotated, *PolicySet, *ProposalMade:
		return true
	}
	_, ends := e.(proposalEnded)
	return ends
}

// sharedPayloads returns the constructors of the payloads that every journal accepts.
func sharedPayloads() []func() Payload {
	return []func() Payload{
		func() Payload { return new(ActivateRules) },
		func() Payload { return new(PutBackDue) },
		func() Payload { return new(RotateCommitment) },
		func() Payload { return new(DiscloseCommitment) },
		func() Payload { return new(RotateCheckpointKey) },
		func() Payload { return new(SetPolicy) },
		func() Payload { return new(ConfirmProposal) },
		func() Payload { return new(RejectProposal) },
		func() Payload { return new(WithdrawProposal) },
	}
}

// ActivateRules asks to raise the number of the rules in force by one.
//
// Event: rules.activated. Refusals: Conflict RULES_NOT_NEXT; Unacceptable RULES_NOT_SUPPORTED by this build.
type ActivateRules struct{ Rules int }

// CommandType returns the type of the command.
func (*ActivateRules) CommandType() string { return CommandActivateRules }

// Reconstruct implements Payload.
func (p *ActivateRules) Reconstruct(r *Evidence) error {
	if e, ok := EventOf[*RulesActivated](r); ok {
		p.Rules = e.Rules
	}
	return nil
}

// rulesContent is the JSON form of an ActivateRules.
type rulesContent struct {
	Rules int `json:"rules"`
}

// Content implements Proposable.
func (p *ActivateRules) Content() any { return (*rulesContent)(p) }

// activate decides an ActivateRules command.
func (c *Core) activate(p *ActivateRules) (Event, error) {
	switch {
	case p.Rules > c.numbers.Newest:
		return nil, &Refusal{Kind: Unacceptable, Code: "RULES_NOT_SUPPORTED", Field: "rules", Message: "this build does not know these rules"}
	case p.Rules != c.rules+1:
		return nil, &Refusal{Kind: Conflict, Code: "RULES_NOT_NEXT", Field: "rules", Message: "rules are activated one after the other"}
	}
	return &RulesActivated{Rules: p.Rules}, nil
}

// RulesActivated says that the rules with this number are in force from the next record on.
type RulesActivated struct {
	Rules int `json:"rules"`
}

// EventType returns "rules.activated".
func (*RulesActivated) EventType() string { return TypeRulesActivated }

// PutBackDue asks to return due work that was set aside to the due list.
//
// Event: due.put_back. Refusals: NotFound UNKNOWN_DUE_ENTRY.
type PutBackDue struct{ Entry string }

// CommandType returns the type of the command.
func (*PutBackDue) CommandType() string { return CommandPutBackDue }

// Reconstruct implements Payload.
func (p *PutBackDue) Reconstruct(r *Evidence) error {
	if e, ok := EventOf[*DuePutBack](r); ok {
		p.Entry = e.Entry
	}
	return nil
}

// entryContent is the JSON form of a PutBackDue.
type entryContent struct {
	Entry string `json:"entry"`
}

// Content implements Proposable.
func (p *PutBackDue) Content() any { return (*entryContent)(p) }

// putBack decides a PutBackDue command.
func putBack(p *PutBackDue, agenda Agenda) (Event, error) {
	if agenda != nil {
		for _, e := range agenda.SetAsideEntries() {
			if e.Entry == p.Entry {
				return &DuePutBack{Entry: p.Entry}, nil
			}
		}
	}
	return nil, Refuse(NotFound, "UNKNOWN_DUE_ENTRY", "no due work of this name was set aside")
}

// DueSetAside says that due work failed even alone and was removed from the due list.
type DueSetAside struct {
	// Entry names the work: its kind, a slash, and its subject.
	Entry string `json:"entry"`
	Error string `json:"error"`
}

// EventType returns "due.set_aside".
func (*DueSetAside) EventType() string { return TypeDueSetAside }

// DuePutBack says that work that was set aside is due again.
type DuePutBack struct {
	Entry string `json:"entry"`
}

// EventType returns "due.put_back".
func (*DuePutBack) EventType() string { return TypeDuePutBack }
