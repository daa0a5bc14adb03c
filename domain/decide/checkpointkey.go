package decide

import (
	"strings"

	"github.com/perpetua-exchange/perpetua/domain/checkpointkey"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// RotateCheckpointKey asks to record the next key of one of the journal's transparency logs. The key is in the key store before
// the command is sent. From this record on, both keys sign checkpoints for 30 days of the log's time.
//
// Event: checkpoint_key.rotated. Refusals: Invalid key, previous; Conflict CHECKPOINT_KEYS_NOT_IN_FORCE, GENERATION_NOT_NEXT,
// ANOTHER_CHECKPOINT_KEY, CHECKPOINT_KEYS_OVERLAP.
type RotateCheckpointKey struct {
	Generation int
	Previous   string // the verifier key that signs until now
	Key        string // the next verifier key
}

// CommandType returns the type of the command.
func (*RotateCheckpointKey) CommandType() string { return CommandRotateCheckpointKey }

// Reconstruct implements Payload.
func (p *RotateCheckpointKey) Reconstruct(r *Evidence) error {
	if e, ok := EventOf[*CheckpointKeyRotated](r); ok {
		*p = RotateCheckpointKey{e.Generation, e.Previous, e.Key}
	}
	return nil
}

// rotationContent is the JSON form of a RotateCheckpointKey.
type rotationContent struct {
	Generation int    `json:"generation"`
	Previous   string `json:"previous"`
	Key        string `json:"key"`
}

// Content implements Proposable.
func (p *RotateCheckpointKey) Content() any { return (*rotationContent)(p) }

// CheckpointKeyRotated names the next key of a transparency log. Trees that contain this record are signed by it. Until a record
// of the time Until or later, they are signed by the previous key too.
type CheckpointKeyRotated struct {
	Generation int         `json:"generation"` // from 2
	Previous   string      `json:"previous"`
	Key        string      `json:"key"`
	Until      scalar.Time `json:"until"`
}

// EventType returns "checkpoint_key.rotated".
func (*CheckpointKeyRotated) EventType() string { return TypeCheckpointKeyRotated }

// CheckpointKeys implements Facts.
func (c *Core) CheckpointKeys() checkpointkey.Schedule { return c.checkpointKeys.Clone() }

// rotateCheckpointKey decides a RotateCheckpointKey command.
func (c *Core) rotateCheckpointKey(at Stamp, p *RotateCheckpointKey) (Event, error) {
	origin := checkpointkey.Origin(p.Key)
	if err := checkpointkey.Check(p.Key); err != nil {
		return nil, InvalidField("key", err.Error())
	}
	if err := checkpointkey.Check(p.Previous); err != nil {
		return nil, InvalidField("previous", err.Error())
	}
	last, rotated := c.checkpointKeys.Last(origin)
	switch {
	case !strings.HasSuffix(origin, "/"+at.Journal.String()):
		return nil, InvalidField("key", "the key is that of another journal's log")
	case checkpointkey.Origin(p.Previous) != origin || p.Previous == p.Key:
		return nil, InvalidField("previous", "the previous key is another one of the same log")
	case p.Generation != max(last.Generation, checkpointkey.FirstGeneration)+1:
		return nil, &Refusal{Kind: Conflict, Code: "GENERATION_NOT_NEXT", Field: "generation", Message: "keys are rotated one after the other"}
	case rotated && last.Key != p.Previous:
		return nil, Refuse(Conflict, "ANOTHER_CHECKPOINT_KEY", "the last rotation names another key than the one that is to be replaced")
	}
	if err := c.MayRotateCheckpointKey(origin, at.Time); err != nil {
		return nil, err
	}
	return &CheckpointKeyRotated{p.Generation, p.Previous, p.Key, at.Time + checkpointkey.Overlap}, nil
}

// MayRotateCheckpointKey implements Facts.
func (c *Core) MayRotateCheckpointKey(origin string, now scalar.Time) error {
	if c.rules < c.numbers.CheckpointKeys { // an older build stops at the event
		return Refuse(Conflict, "CHECKPOINT_KEYS_NOT_IN_FORCE", "the rules in force do not record this: activate newer ones")
	}
	if last, rotated := c.checkpointKeys.Last(origin); rotated && last.Retired == 0 && now < last.Until {
		return Refuse(Conflict, "CHECKPOINT_KEYS_OVERLAP", "the key before the last one signs until "+last.Until.String()+": rotate after that")
	}
	return nil
}
