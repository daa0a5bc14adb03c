// Package submit is how handlers have commands decided: the interface of what accepts them, the answers, and the errors.
//
// A command is decided by the owner of a shard, which is one partition of one journal. The answer is the record that the
// decision produced, and it is returned when the log holds the record. Without a record, the error says what is known:
//
//   - *RefusedError: the command was decided, changed nothing, and left no record.
//   - *NotAcceptedError: the command has had no effect and never will. It may be submitted again.
//   - *OutcomeUnknownError: the command may be in a record, and the log may or may not hold it. Submitting the command again
//     with the same idempotency key or reference returns its one outcome.
//   - *ElsewhereError: the command was not decided here. Another node owns the shard. Only a node's own owners return it;
//     package peer sends the command on.
//   - *DecideError: the rules failed on the command. Nothing was recorded. This and every other error is
//     an error of the program.
//
// The package has no implementation and imports no Kafka. The owner in package journal and the node in package ownership
// implement its interfaces.
package submit

import (
	"context"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Shard is one partition of a journal: a log that has at most one owner.
type Shard struct {
	Journal   string
	Partition int32
}

// Submitter has commands decided by the owner of a journal.
type Submitter interface {
	// Submit has a command decided and waits until the log holds its record, or until ctx ends or the time limit of the
	// implementation is over. The errors are those of the package comment.
	//
	// An implementation MUST NOT have a command recorded twice. It MUST NOT return a *NotAcceptedError or an *ElsewhereError
	// for a command that may be in a record, and MUST NOT return a result before the log holds the record.
	Submit(ctx context.Context, journal string, c decide.Command) (Result, error)
}

// BatchSubmitter is a Submitter that also accepts several commands in one call.
type BatchSubmitter interface {
	Submitter
	// SubmitAll has the commands decided in their order, each in its own record, and waits until all are answered. Commands
	// of others may be decided in between. The outcomes are in the order of the commands, and each is what Submit would
	// return, with two exceptions. When a command is not decided, because the queue is full or the time is over, none after it
	// is decided, and their outcome is a *NotAcceptedError. A refusal that the owner cannot confirm is a *NotAcceptedError, and
	// commands after it may have been decided.
	SubmitAll(ctx context.Context, journal string, cs []decide.Command) []Outcome
}

// Batch is the commands of one call of Enqueue.
type Batch struct {
	Commands []decide.Command
	// Until is when it is too late to decide a command, on the owner's monotonic clock; 0 for the implementation's limit.
	Until time.Duration
	// Reply is called once for each command, in any order and possibly before Enqueue returns. It MUST NOT block or call the
	// implementation.
	Reply func(i int, o Outcome)
	// Replied is called after calls of Reply, when no more are ready, so that answers can be sent together. It MUST NOT block
	// either.
	Replied func()
}

// Enqueuer has commands decided without a goroutine that waits for them.
type Enqueuer interface {
	// Enqueue queues the commands of a batch and returns. They are decided as those of BatchSubmitter.SubmitAll, and commands
	// that are enqueued later are decided later. withdraw says that the client has gone: commands that are not decided yet never
	// are, and all others that wait are answered soon. It does not block.
	Enqueue(ctx context.Context, journal string, b Batch) (withdraw func())
}

// Result is the answer to a command.
type Result struct {
	Position record.LogPosition // of the record
	Entry    *record.Entry      // nil if the record was not read, because the work of the command goes on
	Repeated bool               // the record answers an earlier command with the same idempotency key or reference
}

// Outcome is what Submit returns for one of several commands.
type Outcome struct {
	Result Result
	Err    error
}
