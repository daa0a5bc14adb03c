package term

import (
	"log/slog"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// Clock is one reading of a node's clocks. The driver reads them once for each Step.
type Clock struct {
	Wall time.Time     // may be set, and jump
	Mono time.Duration // since any fixed instant; never goes back
}

// Input is one thing that has happened. A Machine keeps no slice of an input.
type Input interface{ input() }

// The inputs, in the order in which a term meets them.
type (
	// Assigned says that this process is to own the shard. It precedes the first Begin of a row of terms.
	Assigned struct{}

	// Begin starts a term: the log is replayed from the seed up to the offset End. The driver MUST determine End after Known,
	// so that a log that ends before a known position has lost its end. Output.Scan and Output.Hold say what comes first.
	Begin struct {
		Seed  *record.Seed // at a position that the log holds, with its present offset and the journal's identity; nil for the genesis
		Known []record.Position
		End   int64
	}
	// Scanned passes the records of Output.Scan, in order.
	Scanned struct{ Entries []record.Entry }
	// Replayed passes the records after the seed, in order.
	Replayed struct{ Entries []record.Entry }
	// ReplayEnded says that the replay has reached the end.
	ReplayEnded struct{}
	// SetClock has the machine check the node's clock against the log and a reference, and continue from the last time of the log.
	SetClock struct{ Reference ReferenceClock }
	// Take has the machine append a record that opens the term.
	Take struct{}
	// Serve has the machine decide commands. It is valid in the phase Taken.
	Serve struct{}

	// Read passes what the term's reader has found. Next is the offset after the last record that the reader has passed.
	Read struct {
		Entries []record.Entry
		Next    int64
	}
	// Acked passes results of the producer with the given number.
	Acked struct {
		Producer uint64
		Acks     []Ack
	}
	// LogEnd answers Output.AskEnd: after it was asked, the brokers reported that the log ends at Offset.
	LogEnd struct {
		Question uint64
		Offset   int64
	}
	// Found answers a ReadAt. The entry is nil if the record could not be read.
	Found struct {
		Request *Request
		Entry   *record.Entry
	}
	// Submit passes requests in their order.
	Submit struct{ Requests []*Request }
	// Withdraw says that the clients of the requests have gone. The machine answers them in this step. Withdraw may
	// come before Submit.
	Withdraw struct{ Requests []*Request }
	// Tick says that time has passed. In the phase Serving it also has the machine decide one thing.
	Tick struct{}
	// Expire says that time has passed, like Tick, but has no effect except that requests expire.
	Expire struct{}

	// Drain has the machine decide nothing more and complete what is in flight.
	Drain struct{}
	// Fail ends the decisions of a term because of an error outside of the machine. End follows.
	Fail struct{}
	// End ends the term, after an error or when it is drained. The driver has closed the producer before; Acks are the
	// results that it reported and that were not passed yet.
	End struct{ Acks []Ack }
	// GiveUp says that this node will open no further term. The machine answers all requests that are left.
	GiveUp struct{}
)

func (Assigned) input()    {}
func (Begin) input()       {}
func (Scanned) input()     {}
func (Replayed) input()    {}
func (ReplayEnded) input() {}
func (SetClock) input()    {}
func (Take) input()        {}
func (Serve) input()       {}
func (Read) input()        {}
func (Acked) input()       {}
func (LogEnd) input()      {}
func (Found) input()       {}
func (Submit) input()      {}
func (Withdraw) input()    {}
func (Tick) input()        {}
func (Expire) input()      {}
func (Drain) input()       {}
func (Fail) input()        {}
func (End) input()         {}
func (GiveUp) input()      {}

// Ack is the producer's result for one record.
type Ack struct {
	Sequence int64
	Offset   int64 // where it was appended; see Err
	Err      error // nil if it was appended; else it may have been or may still be
	TooLarge bool  // the brokers rejected it, or a batch that contains it, for the size
}

// Output lists the actions that the driver must perform after a Step, in the order of the fields. The driver resets and
// reuses it.
type Output struct {
	Plan

	// Producer is the number of a new producer, or 0 to go on with the last one. The driver closes the last one before, so
	// that no record of it is sent after those of the new one.
	Producer uint64
	Append   []Append // to the producer, in order
	Replies  []Reply
	AskEnd   uint64   // the number of a question to the brokers, where the log ends; 0 for none
	ReadAt   []ReadAt // old records to read, each for one request

	Completed []Completed
	Decided   *Request // the request that was decided in this step
	Notes     []Note
}

// Plan says how to continue.
type Plan struct {
	Scan   *Scan             // after Begin: records to read first
	Hold   []record.Position // after Begin: positions that the log must hold; if one is missing, the term must not go on
	More   bool              // Tick again at once
	Done   bool              // after Drain: nothing is in flight any more
	WakeAt time.Duration     // when to Tick, on the monotonic clock; in the phase Serving only a Tick without More sets it
	Time   scalar.Time       // the time that a record would have had in this step; set by a Tick in the phase Serving
}

// Scan is a stretch of the log: the records after From and up to the offset To, exclusively. It reaches the sequence Through.
type Scan struct {
	From    record.Position
	To      int64
	Through int64
}

// Append is a record for the producer.
type Append struct {
	Entry *record.Entry // its offset is not known
	At    time.Duration // when it was decided
}

// Reply is the answer to a request. Each request gets one.
type Reply struct {
	Request *Request
	Result  submit.Result
	Err     error // *submit.RefusedError, *submit.NotAcceptedError, *submit.OutcomeUnknownError or *submit.DecideError
}

// ReadAt asks for a record that a request repeats. Reading may start after From.
type ReadAt struct {
	Request  *Request
	Sequence int64
	From     record.Position
}

// Completed is a record that has become complete.
type Completed struct {
	Entry   *record.Entry
	Request *Request // nil for a step
	At      time.Duration
}

// Note is a line for the log of the process. With an Alarm, an operator should look at it.
type Note struct {
	Level   slog.Level
	Alarm   string // the kind
	Message string
	Args    []any

	OfRules bool        // the alarm comes from the rules, which may repeat it often
	Time    scalar.Time // with OfRules
}

// Reset clears the output for the next Step and keeps its memory.
func (o *Output) Reset() {
	clear(o.Append)
	clear(o.Replies)
	clear(o.ReadAt)
	clear(o.Completed)
	clear(o.Notes)
	*o = Output{Append: o.Append[:0], Replies: o.Replies[:0], ReadAt: o.ReadAt[:0], Completed: o.Completed[:0], Notes: o.Notes[:0]}
}

// alarm notes a condition that an operator should look at.
func (m *Machine) alarm(kind, message string, args ...any) {
	m.out.Notes = append(m.out.Notes, Note{Level: slog.LevelError, Alarm: kind, Message: message, Args: args})
}

// alarmOfRules notes an alarm of the rules.
func (m *Machine) alarmOfRules(now scalar.Time, a decide.Alarm, args ...any) {
	m.out.Notes = append(m.out.Notes, Note{Level: slog.LevelError, Alarm: a.Kind, Message: a.Message, Args: args, OfRules: true, Time: now})
}

func (m *Machine) note(level slog.Level, message string, args ...any) {
	m.out.Notes = append(m.out.Notes, Note{Level: level, Message: message, Args: args})
}
