package decide

import (
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/pack"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// MaxProposals is the greatest number of proposals in a state: those that are open, and the latest of the others.
const MaxProposals = 1000

// CodeEvidenceChanged is the code of the answer to a confirmation that voided its proposal.
const CodeEvidenceChanged = "EVIDENCE_CHANGED"

// CodeProposalNotOpen is the refusal code for a proposal that has ended otherwise than by its expiry.
const CodeProposalNotOpen = "PROPOSAL_NOT_OPEN"

// Subject describes the action of a command.
type Subject struct {
	Action string // of the names in Governed.Actions
	// Objects name what the action is about, at least one. The names are those that Core.Touch compares.
	Objects []string
	// Amount is compared with the threshold of the policy, in the action's unit.
	Amount fixed.Decimal
	// Reference is the client's name for the action, or "". It is unique among the open proposals about the first object.
	Reference string
}

// Governed is a journal's rules, as far as four eyes need them.
type Governed interface {
	// Act decides a command without regard to the policy.
	Act(at Stamp, c Command) (Decision, error)
	// Subject describes the action of a command. It returns false if no policy may cover the command. Its payload MUST
	// otherwise be Proposable.
	Subject(c Command) (Subject, bool)
	// Actions are all actions that a policy of the journal may name. CommandActivateRules, CommandPutBackDue, and
	// CommandRotateCheckpointKey may be among them.
	Actions() []Action
	// Payloads are those of the journal's commands.
	Payloads() *Payloads
}

// fourEyes is the policy in force, and the proposals in the order in which they were made.
type fourEyes struct {
	policy    Policy
	proposals []*Proposal
	open      int // how many have StatusOpen
}

// Policy implements Facts.
func (c *Core) Policy() Policy { return c.fourEyes.policy }

// Proposals implements Facts.
func (c *Core) Proposals() []Proposal {
	out := make([]Proposal, len(c.proposals))
	for i, p := range c.proposals {
		out[i] = *p
	}
	return out
}

// Govern decides the commands about policies and proposals, and proposes a command that the policy covers. If done is false,
// one person suffices, and the caller must decide the command. The caller must first check that the actor may give the
// command. Commands of the system need no second person.
func (c *Core) Govern(at Stamp, cmd Command, j Governed) (d Decision, done bool, err error) {
	var subject Subject
	switch cmd.Payload.(type) {
	case *SetPolicy, *ConfirmProposal, *RejectProposal, *WithdrawProposal:
		if c.rules < c.numbers.FourEyes {
			return d, true, Refuse(Conflict, "FOUR_EYES_NOT_IN_FORCE", "the rules in force have no policies: activate newer ones")
		}
		if cmd.Actor.Sub == "" && cmd.Actor.System == "" {
			return d, true, notAPerson()
		}
		subject = Subject{Action: CommandSetPolicy, Objects: []string{CommandSetPolicy}}
	default:
		if !c.policy.On() || cmd.Actor.System != "" {
			return d, false, nil
		}
		var governed bool
		if subject, governed = subjectOf(cmd, j); !governed || !c.policy.Covers(&subject) {
			return d, false, nil
		}
	}
	if d, done, err = c.repeated(at, cmd); done {
		return d, true, err
	}
	d, err = c.govern(at, cmd, subject, j)
	return d, true, err
}

func (c *Core) govern(at Stamp, cmd Command, s Subject, j Governed) (Decision, error) {
	switch p := cmd.Payload.(type) {
	case *ConfirmProposal:
		return c.confirm(at, cmd, p.ID, j)
	case *RejectProposal:
		return c.reject(at, cmd.Actor, p)
	case *WithdrawProposal:
		return c.withdraw(at, cmd.Actor, p)
	case *SetPolicy:
		if !c.policy.On() || cmd.Actor.System != "" {
			return act(at, cmd, j)
		}
	}
	return c.propose(at, cmd, s, j)
}

// subjectOf describes the action of a command.
func subjectOf(cmd Command, j Governed) (Subject, bool) {
	switch p := cmd.Payload.(type) {
	case *ActivateRules:
		return Subject{Action: CommandActivateRules, Objects: []string{TypeRulesActivated}}, true
	case *PutBackDue:
		return Subject{Action: CommandPutBackDue, Objects: []string{dueObject(p.Entry)}}, true
	case *RotateCheckpointKey:
		return Subject{Action: CommandRotateCheckpointKey, Objects: []string{TypeCheckpointKeyRotated}}, true
	}
	return j.Subject(cmd)
}

func dueObject(entry string) string { return "due/" + entry }

// act decides a command as if no policy covered it.
func act(at Stamp, cmd Command, j Governed) (Decision, error) {
	p, ok := cmd.Payload.(*SetPolicy)
	if !ok {
		return j.Act(at, cmd)
	}
	e, err := setPolicy(p, j.Actions())
	if err != nil {
		return Decision{}, err
	}
	return Decision{Outcome: Accepted, Events: []Event{e}}, nil
}

func notAPerson() error {
	return Refuse(Forbidden, "FORBIDDEN", "the action needs two persons, and the actor is none")
}

// propose decides a command that needs a second person. A command that the rules refuse now is not proposed.
func (c *Core) propose(at Stamp, cmd Command, s Subject, j Governed) (Decision, error) {
	if cmd.Actor.Sub == "" {
		return Decision{}, notAPerson()
	}
	if d, err := act(at, cmd, j); err != nil || d.Repeated {
		return d, err
	}
	if p := c.referenced(at.Time, &s); p != nil {
		if p.Fingerprint != cmd.Metadata.Fingerprint {
			return Decision{}, &Refusal{Kind: Conflict, Code: "REFERENCE_ID_REUSED", Field: "reference_id", Message: "the reference_id was used for another request"}
		}
		return Decision{Repeated: true, Repeat: p.Sequence}, nil
	}
	if len(c.proposals) >= MaxProposals && c.disposable(at.Time) < 0 {
		return Decision{}, Refuse(Conflict, "TOO_MANY_PROPOSALS", "as many proposals are open as there may be")
	}
	return Decision{Outcome: Accepted, Events: []Event{&ProposalMade{ID: at.Derive(0), Action: s.Action, Command: cmd.Type,
		Content: contentOf(cmd.Payload.(Proposable)), Objects: s.Objects, Reference: s.Reference, ProposedBy: cmd.Actor.Sub,
		Seen: at.Sequence - 1, Created: at.Time, Expires: at.Time + c.policy.open()}}}, nil
}

// referenced returns the open proposal with the reference of a subject, or nil.
func (c *Core) referenced(now scalar.Time, s *Subject) *Proposal {
	for _, p := range c.proposals {
		if s.Reference != "" && p.Reference == s.Reference && p.Objects[0] == s.Objects[0] && p.StatusAt(now) == StatusOpen {
			return p
		}
	}
	return nil
}

// disposable returns the index of the oldest proposal that is not open, or -1.
func (c *Core) disposable(now scalar.Time) int {
	return slices.IndexFunc(c.proposals, func(p *Proposal) bool { return p.StatusAt(now) != StatusOpen })
}

// pending returns an open proposal.
func (c *Core) pending(now scalar.Time, id scalar.ID) (*Proposal, error) {
	at := slices.IndexFunc(c.proposals, func(p *Proposal) bool { return p.ID == id })
	if at < 0 {
		return nil, Refuse(NotFound, "UNKNOWN_PROPOSAL", "there is no such proposal")
	}
	p := c.proposals[at]
	switch status := p.StatusAt(now); status {
	case StatusOpen:
		return p, nil
	case StatusExpired:
		return nil, Refuse(Conflict, "PROPOSAL_EXPIRED", "the proposal has expired")
	default:
		return nil, Refuse(Conflict, CodeProposalNotOpen, "the proposal is "+string(status))
	}
}

// pendingOfOther returns an open proposal of another person.
func (c *Core) pendingOfOther(now scalar.Time, id scalar.ID, by Actor) (*Proposal, error) {
	p, err := c.pending(now, id)
	switch {
	case err != nil:
		return nil, err
	case by.Sub == "":
		return nil, notAPerson()
	case by.Sub == p.ProposedBy:
		return nil, Refuse(Forbidden, "SELF_APPROVAL", "a proposal is confirmed or rejected by another person; its proposer may withdraw it")
	}
	return p, nil
}

// end returns the data of the event that ends a proposal.
func (p *Proposal) end(at Stamp, by Actor) ProposalEnd {
	return ProposalEnd{ID: p.ID, Action: p.Action, ProposedBy: p.ProposedBy, Proposed: p.Sequence, By: by.Sub, Time: at.Time}
}

// void decides that a proposal can't be confirmed because of a later record.
func (p *Proposal) void(at Stamp, by Actor, changed int64) Decision {
	return Decision{Outcome: Rejected, Events: []Event{&ProposalVoided{p.end(at, by), changed}}}
}

// proposed returns the command that the confirmation of a proposal has decided.
func (p *Proposal) proposed(confirmation Command, payloads *Payloads) (Command, error) {
	payload, err := p.Payload(payloads)
	return Command{ID: confirmation.ID, Type: p.Command, Actor: p.Proposer, Metadata: Metadata{Fingerprint: p.Fingerprint}, Payload: payload}, err
}

// Confirmed returns the proposed command for a ConfirmProposal command, and any other command unchanged.
func (c *Core) Confirmed(cmd Command, payloads *Payloads) Command {
	if confirm, ok := cmd.Payload.(*ConfirmProposal); ok {
		at := slices.IndexFunc(c.proposals, func(p *Proposal) bool { return p.ID == confirm.ID })
		if at < 0 {
			return cmd
		}
		if proposed, err := c.proposals[at].proposed(cmd, payloads); err == nil {
			return proposed
		}
	}
	return cmd
}

// confirm decides a ConfirmProposal command. The action is decided again, now and for its proposer. Its events come first,
// because derived ids contain the index of their event.
func (c *Core) confirm(at Stamp, cmd Command, id scalar.ID, j Governed) (Decision, error) {
	p, err := c.pendingOfOther(at.Time, id, cmd.Actor)
	if err != nil {
		return Decision{}, err
	}
	if p.Changed != 0 {
		return p.void(at, cmd.Actor, p.Changed), nil
	}
	proposed, err := p.proposed(cmd, j.Payloads())
	if err != nil {
		return Decision{}, err
	}
	d, err := act(at, proposed, j)
	switch {
	case err != nil:
		return Decision{}, err
	case d.Repeated: // the same request has taken effect meanwhile
		return p.void(at, cmd.Actor, d.Repeat), nil
	}
	d.Input = "" // the proposal has the whole payload
	d.Events = append(d.Events[:len(d.Events):len(d.Events)], &ProposalConfirmed{p.end(at, cmd.Actor)})
	return d, nil
}

func (c *Core) reject(at Stamp, by Actor, r *RejectProposal) (Decision, error) {
	p, err := c.pendingOfOther(at.Time, r.ID, by)
	if err == nil {
		err = c.checkReason(r.Reason)
	}
	if err != nil {
		return Decision{}, err
	}
	return Decision{Outcome: Accepted, Events: []Event{&ProposalRejected{p.end(at, by), r.Reason}}}, nil
}

func (c *Core) withdraw(at Stamp, by Actor, w *WithdrawProposal) (Decision, error) {
	p, err := c.pending(at.Time, w.ID)
	if err == nil && by.Sub != p.ProposedBy {
		err = Refuse(Forbidden, "NOT_THE_PROPOSER", "only its proposer may withdraw a proposal")
	}
	if err == nil {
		err = c.checkReason(w.Reason)
	}
	if err != nil {
		return Decision{}, err
	}
	return Decision{Outcome: Accepted, Events: []Event{&ProposalWithdrawn{p.end(at, by), w.Reason}}}, nil
}

// checkReason returns why a proposal may not be ended for this reason, or nil.
func (c *Core) checkReason(reason string) error {
	switch {
	case reason == "":
		return nil
	case c.rules < c.numbers.Reasons:
		return &Refusal{Kind: Conflict, Code: "REASONS_NOT_IN_FORCE", Field: "reason", Message: "the rules in force record no reasons: activate newer ones"}
	case len(reason) > MaxProposalReason || !utf8.ValidString(reason):
		return InvalidField("reason", "the reason is too long, or not UTF-8")
	}
	return nil
}

// Touch notes which open proposals a record voids. The journal calls it before Evolve. touched returns the names of the objects
// that an event of the journal changes.
func (c *Core) Touch(at Stamp, events []Event, touched func(Event) []string) {
	if c.open == 0 {
		return
	}
	for _, e := range events {
		names := touchedByShared(e)
		if names == nil {
			names = touched(e)
		}
		for _, p := range c.proposals {
			if len(names) > 0 && p.Status == StatusOpen && p.Changed == 0 && slices.ContainsFunc(p.Objects, func(o string) bool { return slices.Contains(names, o) }) {
				p.Changed = at.Sequence
			}
		}
	}
}

// touchedByShared returns the objects that an event changes, if it is one that occurs in every journal.
func touchedByShared(e Event) []string {
	switch e := e.(type) {
	case *RulesActivated:
		return []string{TypeRulesActivated}
	case *PolicySet:
		return []string{CommandSetPolicy}
	case *DueSetAside:
		return []string{dueObject(e.Entry)}
	case *DuePutBack:
		return []string{dueObject(e.Entry)}
	case *CheckpointKeyRotated:
		return []string{TypeCheckpointKeyRotated}
	}
	return nil
}

// RequestFingerprint returns the fingerprint of the request that the events of a record answer: for a confirmation, that of
// the proposal.
func (c *Core) RequestFingerprint(cmd Recorded, events []Event) string {
	if cmd.Type != CommandConfirmProposal {
		return cmd.Metadata.Fingerprint
	}
	e, _ := EventOf[*ProposalConfirmed](&Evidence{Events: events})
	for _, p := range c.proposals {
		if e != nil && p.ID == e.ID {
			return p.Fingerprint
		}
	}
	return cmd.Metadata.Fingerprint
}

// follow applies an event.
func (f *fourEyes) follow(at Stamp, cmd Recorded, e Event) {
	switch e := e.(type) {
	case *PolicySet:
		f.policy = e.Policy
	case *ProposalMade:
		f.make(at, cmd, e)
	case proposalEnded:
		f.end(at, e)
	}
}

func (f *fourEyes) make(at Stamp, cmd Recorded, e *ProposalMade) {
	if len(f.proposals) >= MaxProposals {
		old := slices.IndexFunc(f.proposals, func(p *Proposal) bool { return p.StatusAt(at.Time) != StatusOpen })
		if f.proposals[old].Status == StatusOpen {
			f.open--
		}
		f.proposals = slices.Delete(f.proposals, old, old+1)
	}
	f.proposals = append(f.proposals, &Proposal{ProposalMade: *e, Sequence: at.Sequence, Fingerprint: cmd.Metadata.Fingerprint, Proposer: cmd.Actor, Status: StatusOpen})
	f.open++
}

func (f *fourEyes) end(at Stamp, e proposalEnded) {
	for _, p := range f.proposals {
		if p.ID == e.ended().ID && p.Status == StatusOpen {
			p.Status, p.EndedBy, p.Reason, p.Ended, p.EndedAt = e.status(), e.ended().By, e.why(), at.Time, at.Sequence
			f.open--
			if p.Status == StatusConfirmed {
				p.Changed = 0 // its own action changed the objects
			}
		}
	}
}

// visit visits the policy and the proposals. Reading fills f, which is zero.
func (f *fourEyes) visit(v *pack.Coder) {
	f.policy.visit(v)
	pack.List(v, &f.proposals, func(p *Proposal) {
		p.visit(v)
		v.Check(len(p.Objects) > 0 && jsontext.Value(p.Content).IsValid() && p.Status != "")
		if v.Reading() && p.Status == StatusOpen {
			f.open++
		}
	})
}
