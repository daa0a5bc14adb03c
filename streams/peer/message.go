package peer

import (
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/pack"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
	"github.com/perpetua-exchange/perpetua/streams/trace"
)

// stamp is a time on an owner's clock (ServerConfig.Clock), in milliseconds.
type stamp int64

func stampOf(d time.Duration) stamp { return stamp(d.Milliseconds()) }

func (s stamp) time() time.Duration { return time.Duration(s) * time.Millisecond }

func (s stamp) plus(d time.Duration) stamp { return s + stampOf(d) }

// goClock returns Go's monotonic clock.
func goClock() func() time.Duration {
	start := time.Now()
	return func() time.Duration { return time.Since(start) }
}

// message is one command in a Submit frame.
type message struct {
	number uint64 // counts the commands of a node's process for the shard; rises
	// after says that the command MUST NOT be decided unless the one before it in the frame or stream was: both are of
	// one batch.
	after      bool
	deadline   stamp
	id         scalar.ID
	kind       string // type of the command
	actor      decide.Actor
	metadata   decide.Metadata
	credential submit.Credential
	trace      trace.Carried
	payload    []byte // JSON
}

func (m *message) visit(c *pack.Coder) {
	c.Uint(&m.number)
	c.Bool(&m.after)
	pack.Int(c, &m.deadline)
	c.Raw(m.id[:])
	pack.Word(c, &m.kind)
	pack.Word(c, &m.actor.Sub)
	pack.Word(c, &m.actor.Broker)
	pack.Word(c, &m.actor.Customer)
	pack.Word(c, &m.actor.System)
	pack.String(c, &m.metadata.Key)
	pack.String(c, &m.metadata.Fingerprint)
	c.Raw(m.metadata.Session[:])
	pack.Optional(c, &m.metadata.Source, visitSource)
	pack.Int(c, &m.credential.Sequence)
	pack.Word(c, &m.credential.Principal)
	pack.Bytes(c, &m.trace)
	pack.Bytes(c, &m.payload)
}

func visitSource(s *decide.Source, c *pack.Coder) {
	pack.Word(c, &s.Journal)
	pack.Int(c, &s.Sequence)
}

// alarmUnknown is the kind of the alarm that a build cannot read a command of another one.
const alarmUnknown = "unknown_command"

// answerKind is the outcome of a command.
type answerKind uint8

const (
	applied     answerKind = iota // in the record
	repeated                      // the record answers an earlier command
	refused                       // by the rules
	notAccepted                   // it has had no effect and never will
	notOwner                      // the same, because the node does not serve the stream's term any more
	unknown                       // it may be in a record
	failed                        // the rules failed on it
)

// answer is one answer in an Answer frame.
type answer struct {
	number uint64
	kind   answerKind

	// Of the record, or of the state that a refusal refers to.
	sequence int64
	offset   int64
	journal  scalar.ID
	value    []byte // the record's bytes

	refusal    *decide.Refusal
	retryAfter time.Duration
	reason     string // of notAccepted, notOwner and failed
}

func (a *answer) visit(c *pack.Coder) {
	c.Uint(&a.number)
	pack.Byte(c, &a.kind)
	switch a.kind {
	case applied, repeated:
		pack.Int(c, &a.sequence)
		pack.Int(c, &a.offset)
		c.Raw(a.journal[:])
		pack.Bytes(c, &a.value)
	case refused:
		pack.Int(c, &a.sequence)
		if a.refusal == nil {
			a.refusal = new(decide.Refusal)
		}
		visitRefusal(a.refusal, c)
	case notAccepted, notOwner, failed:
		pack.Int(c, &a.retryAfter)
		pack.String(c, &a.reason)
	case unknown:
	default:
		c.Fail(errFrame)
	}
}

func visitRefusal(r *decide.Refusal, c *pack.Coder) {
	pack.Small(c, &r.Kind)
	pack.Word(c, &r.Code)
	pack.String(c, &r.Field)
	pack.String(c, &r.Message)
	pack.Word(c, &r.Alarm)
}

// list visits the content of a frame.
func list[T any](all *[]T, visit func(*T, *pack.Coder)) func(*pack.Coder) {
	return func(c *pack.Coder) { pack.Slice(c, all, visit) }
}

// visitNumbers visits the commands that a Cancel frame names.
func visitNumbers(all *[]uint64) func(*pack.Coder) {
	return list(all, func(n *uint64, c *pack.Coder) { c.Uint(n) })
}

// visitStamp visits the clock in a Pong frame.
func visitStamp(s *stamp) func(*pack.Coder) {
	return func(c *pack.Coder) { pack.Int(c, s) }
}

// answers is the content of an Answer frame.
type answers struct {
	now stamp
	all []answer
}

func (a *answers) visit(c *pack.Coder) {
	pack.Int(c, &a.now)
	pack.Slice(c, &a.all, (*answer).visit)
}

// position returns the position of an answer in a shard.
func (a *answer) position(s submit.Shard) record.LogPosition {
	return record.LogPosition{Journal: s.Journal, Partition: s.Partition, Sequence: a.sequence}
}
