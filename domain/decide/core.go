package decide

import (
	"fmt"
	"strings"

	"github.com/perpetua-exchange/perpetua/domain/checkpointkey"
	"github.com/perpetua-exchange/perpetua/domain/epoch"
	"github.com/perpetua-exchange/perpetua/domain/pack"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Core is the part of the state that all journals share: the Idempotency-Keys that were used, the last command applied
// from each other journal, the rules in force, the generations of the venue's secret, the keys of the transparency logs, and, in a
// journal with policies, the policy and the proposals. A State embeds or holds one Core. It calls Core.Decide before its own rules
// and Core.Evolve first for every record. A journal with policies also calls Core.Govern before Core.Decide, and Core.Touch before
// Core.Evolve.
type Core struct {
	Memory
	fourEyes
	rules       int // the number of the rules in force
	numbers     Numbers
	sources     map[string]applied
	commitments epoch.Schedule

	checkpointKeys checkpointkey.Schedule
}

// Numbers are numbers of rules.
type Numbers struct {
	Newest      int // the highest number that this build supports
	Commitments int // the first number with the events of commitments
	FourEyes    int // the first number with policies and proposals
	Reasons     int // the first number with reasons for the end of proposals

	CheckpointKeys int // the first number with rotations of the keys of transparency logs
}

// applied is the last command applied from another journal: its sequence there and its sequence here.
type applied struct{ source, sequence int64 }

// NewCore returns the core before genesis.
func NewCore(n Numbers) Core { return Core{rules: 1, numbers: n, sources: make(map[string]applied)} }

// Facts are the facts of a Core that others may know. A State embeds its Core as Facts.
type Facts interface {
	// ActiveRules returns the number of the rules in force.
	ActiveRules() int
	// Time returns the time of the last record.
	Time() scalar.Time
	// Commitments returns the generations of the venue's secret that were in force in the journal.
	Commitments() epoch.Schedule
	// CheckpointKeys returns the rotations of the keys that sign the journal's transparency logs.
	CheckpointKeys() checkpointkey.Schedule
	// MayRotateCheckpointKey returns why the key of a log, named by its origin, may not be rotated now, or nil. A node asks
	// before it makes the next key, which would otherwise be in the key store, and in its backups, long before it is used.
	MayRotateCheckpointKey(origin string, now scalar.Time) error
	// Remembers reports whether a broker used the Idempotency-Key for a command of the type, as of the last record. If several
	// routes produce that type, the result does not say which of them used the key.
	Remembers(broker, command, key string) bool
	// Policy returns the policy in force. The caller MUST NOT change it.
	Policy() Policy
	// Proposals returns copies of the proposals in the state, the oldest first. It has all open ones.
	Proposals() []Proposal
}

// ActiveRules implements Facts.
func (c *Core) ActiveRules() int { return c.rules }

// Time implements Facts.
func (c *Core) Time() scalar.Time { return c.last }

// Decide answers a command that was decided before, and decides the commands that every journal accepts. If done is false, the journal's own rules must decide the command. The caller must first check that
// the actor may give the command. The agenda is the journal's; it is nil in a journal where nothing becomes due.
func (c *Core) Decide(at Stamp, cmd Command, agenda Agenda) (d Decision, done bool, err error) {
	if d, done, err := c.repeated(at, cmd); done {
		return d, true, err
	}
	var event Event
	switch p := cmd.Payload.(type) {
	case *ActivateRules:
		event, err = c.activate(p)
	case *PutBackDue:
		event, err = putBack(p, agenda)
	case *RotateCommitment:
		event, err = c.rotate(p)
	case *DiscloseCommitment:
		event, err = c.disclose(at, cmd.Actor, p)
	case *RotateCheckpointKey:
		event, err = c.rotateCheckpointKey(at, p)
	default:
		return Decision{}, false, nil
	}
	if err != nil {
		return Decision{}, true, err
	}
	return Decision{Outcome: Accepted, Events: []Event{event}}, true, nil
}

// repeated answers a command that was decided before, and refuses one with a key that was used for another request.
func (c *Core) repeated(at Stamp, cmd Command) (d Decision, done bool, err error) {
	if source := cmd.Metadata.Source; source != nil {
		if last, ok := c.sources[source.Journal]; ok && source.Sequence <= last.source {
			return Decision{Repeated: true, Repeat: last.sequence}, true, nil
		}
	}
	d, found, err := c.Lookup(at.Time, cmd)
	return d, found || err != nil, err
}

// Evolve applies a record.
func (c *Core) Evolve(at Stamp, cmd Recorded, events []Event) {
	c.Note(at, cmd)
	if source := cmd.Metadata.Source; source != nil {
		c.sources[source.Journal] = applied{source.Sequence, at.Sequence}
	}
	c.checkpointKeys.Pass(at.Sequence, at.Time)
	for _, e := range events {
		switch e := e.(type) {
		case *RulesActivated:
			c.activated(e.Rules)
		case *CommitmentRotated:
			_ = c.commitments.Rotate(at.Sequence, e.Generation, e.Secret) // Decide records the next generation only
		case *CheckpointKeyRotated:
			_ = c.checkpointKeys.Rotate(checkpointkey.Rotation{Sequence: at.Sequence, Generation: e.Generation, Previous: e.Previous, Key: e.Key, Until: e.Until})
		default:
			c.follow(at, cmd, e)
		}
	}
}

// activated puts rules in force.
func (c *Core) activated(rules int) {
	// With rules that it does not support, this build would compute a different state than all others.
	if rules > c.numbers.Newest {
		panic(fmt.Sprintf("the journal follows rules %d from here on, of which this build knows %d: it must be upgraded", rules, c.numbers.Newest))
	}
	c.rules = rules
}

// Visit visits the core. What is read goes into c, which is new. Reading fails for rules that this build does not know.
func (c *Core) Visit(v *pack.Coder) {
	pack.Small(v, &c.rules)
	if c.rules < 1 || c.rules > c.numbers.Newest {
		v.Fail(fmt.Errorf("the saved state follows rules %d, of which this build knows %d", c.rules, c.numbers.Newest))
		return
	}
	c.commitments.Visit(v)
	c.checkpointKeys.Visit(v)
	c.Memory.visit(v)
	c.fourEyes.visit(v)
	pack.Map(v, &c.sources, strings.Compare, func(name string, a applied) (string, applied) {
		pack.Word(v, &name)
		pack.Int(v, &a.source)
		pack.Int(v, &a.sequence)
		return name, a
	})
}
