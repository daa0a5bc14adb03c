package decide

import (
	"strings"

	"github.com/perpetua-exchange/perpetua/domain/epoch"
)

// RotateCommitment asks to put the next generation of the venue's secret in force, from the record after its own on. The first
// generation is in force from the genesis on, so that its command only names the secret. The secret is in the key store before
// the command is sent.
//
// Event: commitment.rotated. Refusals: Invalid secret; Conflict GENERATION_NOT_NEXT, COMMITMENTS_NOT_IN_FORCE.
type RotateCommitment struct {
	Generation int
	Secret     string // the secret's id
}

// CommandType returns the type of the command.
func (*RotateCommitment) CommandType() string { return CommandRotateCommitment }

// Reconstruct implements Payload.
func (p *RotateCommitment) Reconstruct(r *Evidence) error {
	if e, ok := EventOf[*CommitmentRotated](r); ok {
		*p = RotateCommitment(*e)
	}
	return nil
}

// CommitmentRotated says which secret of the venue is in force from the next record on. That of the first generation has been
// since the genesis.
type CommitmentRotated struct {
	Generation int    `json:"generation"` // from 1
	Secret     string `json:"secret"`     // the secret's id: 32 hex digits
}

// EventType returns "commitment.rotated".
func (*CommitmentRotated) EventType() string { return TypeCommitmentRotated }

// DiscloseCommitment asks to record that a recipient gets the epoch keys for the records from From to To, both included.
//
// Event: commitment.disclosed. Refusals: Invalid from, to, recipient; Conflict COMMITMENTS_NOT_IN_FORCE,
// SECRET_NOT_NAMED.
type DiscloseCommitment struct {
	From, To  int64  // sequences of the journal, of records before the command's
	Recipient string // who gets them: 1 to 255 characters
}

// CommandType returns the type of the command.
func (*DiscloseCommitment) CommandType() string { return CommandDiscloseCommitment }

// Reconstruct implements Payload. The event has the bounds that Decide widens to, and it leaves these unchanged.
func (p *DiscloseCommitment) Reconstruct(r *Evidence) error {
	if e, ok := EventOf[*CommitmentDisclosed](r); ok {
		p.From, p.To, p.Recipient = e.From, min(e.To, r.At.Sequence-1), e.Recipient
	}
	return nil
}

// CommitmentDisclosed says that a recipient gets the epoch keys for a span of records. The span includes every sequence that
// the keys cover, also of records to come.
type CommitmentDisclosed struct {
	From      int64  `json:"from"`
	To        int64  `json:"to"` // included
	Recipient string `json:"recipient"`
	By        string `json:"by"` // the user that asked for them, or the system
}

// EventType returns "commitment.disclosed".
func (*CommitmentDisclosed) EventType() string { return TypeCommitmentDisclosed }

const (
	secretDigits = 32
	maxRecipient = 255
)

// Commitments implements Facts.
func (c *Core) Commitments() epoch.Schedule { return c.commitments.Clone() }

// committing returns a refusal if the rules in force do not have the events of commitments, at which an older build stops.
func (c *Core) committing() error {
	if c.rules < c.numbers.Commitments {
		return Refuse(Conflict, "COMMITMENTS_NOT_IN_FORCE", "the rules in force do not record this: activate newer ones")
	}
	return nil
}

// rotate decides a RotateCommitment command.
func (c *Core) rotate(p *RotateCommitment) (Event, error) {
	if err := c.committing(); err != nil {
		return nil, err
	}
	if len(p.Secret) != secretDigits || strings.Trim(p.Secret, "0123456789abcdef") != "" {
		return nil, InvalidField("secret", "the secret's id has 32 hex digits")
	}
	if p.Generation != c.commitments.Generation()+1 {
		return nil, &Refusal{Kind: Conflict, Code: "GENERATION_NOT_NEXT", Field: "generation", Message: "generations are put in force one after the other"}
	}
	return (*CommitmentRotated)(p), nil
}

// disclose decides a DiscloseCommitment command.
func (c *Core) disclose(at Stamp, by Actor, p *DiscloseCommitment) (Event, error) {
	if err := c.committing(); err != nil {
		return nil, err
	}
	switch {
	case p.From < 0:
		return nil, InvalidField("from", "a sequence is 0 or more")
	case p.To < p.From || p.To >= at.Sequence:
		return nil, InvalidField("to", "the last sequence is that of a record, and not before the first")
	case p.Recipient == "" || len(p.Recipient) > maxRecipient || strings.ContainsFunc(p.Recipient, isControl):
		return nil, InvalidField("recipient", "the recipient must be 1 to 255 bytes without control characters")
	}
	if c.commitments.Generation() == 0 {
		return nil, Refuse(Conflict, "SECRET_NOT_NAMED", "no record names the first secret: rotate the secret of this journal first")
	}
	who := by.Sub
	if who == "" {
		who = by.System
	}
	return &CommitmentDisclosed{c.commitments.Around(p.From).From, c.commitments.Around(p.To).To, p.Recipient, who}, nil
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f || r == '\uFFFD' }
