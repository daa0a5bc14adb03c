// Package decide is the contract between a journal and the pure rules that decide its records.
//
// A journal (package streams/journal) does not depend on orders or users: it stamps a command with a time and a
// sequence, asks the rules for the consequences of the command, appends them as one record, and folds that record. The
// rules (packages domain/trading, domain/identity, …) do not depend on Kafka. This package holds what they share.
//
// Decide and Step only read the state. Only Evolve changes it, and Evolve MUST apply every valid record without failing.
// The functions MUST NOT read a clock, draw a random number, depend on the order of a map, use a float or do I/O, so
// that a replay of the log gives the same bytes and the same state.
package decide

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Actor is the originator of a command: a user of a broker, possibly confined to one customer account, or the system.
type Actor struct {
	Sub      string `json:"sub,omitempty"`
	Broker   string `json:"broker,omitempty"`
	Customer string `json:"customer,omitempty"`
	System   string `json:"system,omitempty"`
}

// Engine is the actor of the engine's own records: genesis, terms and steps.
var Engine = Actor{System: "engine"}

// Source is the record in another journal from which a process manager derived a command. The target keeps the highest
// applied sequence of each source and ignores commands up to it.
type Source struct {
	Journal  string `json:"journal"`
	Sequence int64  `json:"sequence"`
}

// Metadata is the part of a command that its record keeps besides the id, type and actor. The rest of the command is in the
// events and is not repeated.
type Metadata struct {
	// Key is the client's Idempotency-Key. Its scope is the actor's broker and the route. The command's type identifies
	// the route; where several routes produce the same type, the fingerprint identifies it.
	Key string `json:"key,omitempty"`
	// Fingerprint shows whether a repeated key or reference came with the same request. It is lower-case hex. See
	// OfRoute.
	Fingerprint string `json:"fingerprint,omitempty"`
	// Session is the connection that the command arrived on. It is set if the orders of the session are canceled when
	// the connection ends.
	Session scalar.ID `json:"session,omitzero"`
	// Source is set on commands that follow from a record of another journal.
	Source *Source `json:"source,omitempty"`
}

// Command is a request to change the state, as the handler made it.
type Command struct {
	ID       scalar.ID // UUIDv7, made by the handler
	Type     string
	Actor    Actor
	Metadata Metadata
	// Payload is the content of the command: a Payload defined by the rules of the journal. Its type is any because the
	// payloads of journals in tests need not implement Payload.
	Payload any
}

// Recorded is the part of a command that its record holds. Evolve sees no other part.
type Recorded struct {
	ID       scalar.ID
	Type     string
	Actor    Actor
	Metadata Metadata
}

// Recorded returns the part of c that goes into the record.
func (c Command) Recorded() Recorded {
	return Recorded{ID: c.ID, Type: c.Type, Actor: c.Actor, Metadata: c.Metadata}
}

// Event is one thing that happened. Implementations are pointers to plain structs. Their JSON form is the event's
// data; they are immutable once returned from Decide or decoded from a record, since many readers share them.
type Event interface {
	// EventType is the name, for example "order.rejected".
	EventType() string
}

// Versioned is an Event whose data may have another shape than version 1. A type that changes shape MUST implement it and
// register an upcaster for each older version.
type Versioned interface {
	Event
	// EventVersion returns the version of the shape, from 1.
	EventVersion() int
}

// VersionOf returns the version of the shape of e's data: 1 unless e is Versioned.
func VersionOf(e Event) int {
	if v, ok := e.(Versioned); ok {
		return v.EventVersion()
	}
	return 1
}

// Stamp is the position of a decision in the log.
type Stamp struct {
	Journal  scalar.ID   // the journal's random identity, from its genesis record
	Sequence int64       // of the record that the decision will become, or that is being folded
	Time     scalar.Time // of that record; never below the time of the record before
	// Prev is the SHA-256 of the value of the record before, and zero for the genesis.
	Prev [sha256.Size]byte `json:"-"`
}

// Derive returns the id that belongs to event number index of the record at s: the first 16 bytes of
// SHA-256(journal id ‖ sequence as uint64 ‖ index as uint32, big-endian), as a UUID of version 8.
func (s Stamp) Derive(index int) scalar.ID {
	var b [28]byte
	copy(b[:16], s.Journal[:])
	binary.BigEndian.PutUint64(b[16:], uint64(s.Sequence))
	binary.BigEndian.PutUint32(b[24:], uint32(index))
	sum := sha256.Sum256(b[:])
	var id scalar.ID
	copy(id[:], sum[:16])
	id[6] = id[6]&0x0f | 0x80
	id[8] = id[8]&0x3f | 0x80
	return id
}

// Derivable reports whether a text has the form of an id that Derive returns: a UUID of version 8 in lower case.
func Derivable(text string) bool {
	if len(text) != 36 || text[14] != '8' {
		return false
	}
	id, err := scalar.ParseID(text)
	return err == nil && id[8]>>6 == 2 && id.String() == text
}

// Outcome is the fate of a recorded command.
type Outcome string

// The two outcomes of a record.
const (
	Accepted Outcome = "accepted"
	Rejected Outcome = "rejected"
)

// Decision is the result of Decide or Step. A decision with events becomes a record. A decision without events MUST be
// Repeated and does not become a record. A command that changes nothing for any other reason is answered with a
// *Refusal.
type Decision struct {
	Outcome Outcome
	Events  []Event
	// Repeated says that the command was decided before, in the record with sequence Repeat. The journal rebuilds the
	// answer from that record.
	Repeated bool
	Repeat   int64
	// Pending says that steps continue the command's work. The record that completes it is the answer.
	Pending bool
	// Finishes is the command, if any, that had a Pending answer which this decision completes.
	Finishes scalar.ID
	// Alarm is set if an operator should look at the decision. It is not part of the record, but repeats what the events
	// say.
	Alarm Alarm
	// Input is the part of the command's payload that the events do not carry: a JSON object without insignificant space,
	// or "" if there is none. The record keeps it for readers that reconstruct the command. Evolve does not see it. See
	// EncodeInput.
	Input string
}

// Alarm is raised by the owner of a journal: Kind labels a metric and Message goes to the log. The zero Alarm raises
// nothing.
type Alarm struct{ Kind, Message string }

// Urgency is the priority of due work over waiting client commands.
type Urgency int

// The urgencies, in ascending order.
const (
	Nothing   Urgency = iota // nothing is due
	Alternate                // steps alternate with client commands
	Blocking                 // client commands wait until the work is done
)

// State is the fold of one journal partition under its rules. It is not safe for concurrent use: its owner serializes
// Evolve with all other calls.
type State interface {
	// Decide returns the consequences of the command at the given stamp. An error is a *Refusal: nothing is recorded.
	Decide(at Stamp, c Command) (Decision, error)
	// Evolve applies one valid record. It also receives the journal's own events (genesis, taken).
	Evolve(at Stamp, c Recorded, o Outcome, events []Event)
	// Due returns the urgency of the work that is due at now.
	Due(now scalar.Time) Urgency
	// NextDue returns the earliest time at which something becomes due, if anything ever does.
	NextDue() (scalar.Time, bool)
	// Step decides the next piece of due work. With single set it decides one entry only, because a larger step did not
	// fit into a record or panicked.
	Step(at Stamp, single bool) Decision
	// SetAside decides the event that removes the next due entry from the list after the entry failed alone.
	SetAside(at Stamp, cause string) Decision
}

// Agenda is a State that exposes its due list.
type Agenda interface {
	// DueEntries skips the first entries and returns up to n of the following ones, in the order in which they will be
	// done, and the total number of entries.
	DueEntries(first, n int) (entries []DueEntry, total int)
	// SetAsideEntries returns the entries that failed and wait for due.put_back.
	SetAsideEntries() []DueEntry
	// NamesDueWork reports whether an entry with this name may be on the list: whether its kind is one of this
	// journal's.
	NamesDueWork(entry string) bool
}

// DueEntry is one piece of due work.
type DueEntry struct {
	Entry   string      // its name: the kind of work, a slash, and what it is about
	Time    scalar.Time // when it is due
	Urgency Urgency
	Error   string // the reason why the entry was set aside
}

// Rules are the rules of one journal.
type Rules interface {
	// Journal is the name of the journal and, after the prefix, of the topic: "trading", "identity", "onboarding".
	Journal() string
	// NewState returns the state before genesis.
	NewState() State
	// Registry contains every event type that the journal may hold.
	Registry() *Registry
	// Limit is the greatest size of a record's value in bytes.
	Limit() int
	// Newest is the highest number of rules that this build supports. The build stops at a journal that follows a higher
	// number. The command rules.activate raises the number in force.
	Newest() int
}
