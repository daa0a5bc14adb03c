// Package decide is the contract between a journal and the pure rules whose decisions it records.
//
// A journal (package streams/journal) does not depend on orders or users: it stamps a command with a time and a sequence,
// asks the rules for the consequences of the command, appends them as one record, and folds that record. The rules
// (packages domain/trading, domain/identity, …) do not depend on Kafka. This package holds what they share.
//
// Decide and Step only read the state. Only Evolve changes it, and Evolve MUST apply every valid record without failing. The
// functions MUST NOT read a clock, draw a random number, depend on the order of a map, use a float or do I/O, so that a
// replay of the log gives the same bytes and the same state.
package decide

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Actor says on whose behalf a command is given: a user of a broker, possibly confined to one customer account, or
// the system itself.
type Actor struct {
	Sub      string `json:"sub,omitempty"`
	Broker   string `json:"broker,omitempty"`
	Customer string `json:"customer,omitempty"`
	System   string `json:"system,omitempty"`
}

// Engine is the actor of what the engine does by itself: genesis, terms and steps.
var Engine = Actor{System: "engine"}

// Source is the place in another journal that made a process manager send a command. The target keeps the highest
// sequence applied for each source and ignores the rest.
type Source struct {
	Journal  string `json:"journal"`
	Sequence int64  `json:"sequence"`
}

// Kept is what a record keeps of a command beside its id, type and actor. Everything else that the command said is
// in the events, and is not repeated.
type Kept struct {
	// Key is the client's Idempotency-Key. Its scope is the actor's broker and the route: the command's type, and where
	// several routes make that, what the fingerprint tells of the route.
	Key string `json:"key,omitempty"`
	// Fingerprint tells whether a repeated key or reference came with the same request: lower-case hex. See OfRoute.
	Fingerprint string `json:"fingerprint,omitempty"`
	// Session is the connection that the command came over, if its orders are canceled when that ends.
	Session scalar.ID `json:"session,omitzero"`
	// Source is set on commands that follow from a record of another journal.
	Source *Source `json:"source,omitempty"`
}

// Command is a request to change something, as the handler made it.
type Command struct {
	ID    scalar.ID // UUIDv7, made by the handler
	Type  string
	Actor Actor
	Kept  Kept
	// Payload holds what is wanted: a Payload that the rules of the journal define. (It is of any type here since what
	// journals are tested with need not describe itself.)
	Payload any
}

// Recorded is the part of a command that its record holds, and all of it that Evolve may see.
type Recorded struct {
	ID    scalar.ID
	Type  string
	Actor Actor
	Kept  Kept
}

// Recorded returns the part of c that goes into the record.
func (c Command) Recorded() Recorded {
	return Recorded{ID: c.ID, Type: c.Type, Actor: c.Actor, Kept: c.Kept}
}

// Event is one thing that happened. Implementations are pointers to plain structs whose JSON form is the event's
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

// Stamp says where in the log a decision stands.
type Stamp struct {
	Journal  scalar.ID   // the journal's random identity, from its genesis record
	Sequence int64       // of the record that the decision will become, or that is being folded
	Time     scalar.Time // of that record; never below the time of the record before
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

// Outcome is the fate of a recorded command.
type Outcome string

// The two outcomes of a record.
const (
	Accepted Outcome = "accepted"
	Rejected Outcome = "rejected"
)

// Decision is what Decide or Step want done. A decision with events becomes a record. One without events becomes
// none, and must be Repeated: everything else that changes nothing is a *Refusal.
type Decision struct {
	Outcome Outcome
	Events  []Event
	// Repeated says that the command was decided before, in the record with the sequence Repeat: the answer is
	// rebuilt from that record.
	Repeated bool
	Repeat   int64
	// Pending says that the command's work goes on in steps and that its answer is the record that finishes it.
	Pending bool
	// Finishes is the command, if any, whose Pending answer this decision completes.
	Finishes scalar.ID
	// Alarm is what an operator should look at, if the record says something of the kind. It is no part of the record: its
	// events say the same.
	Alarm Alarm
}

// Alarm is what the owner of a journal raises, with its kind in a metric and its message in the log. The zero Alarm is none.
type Alarm struct{ Kind, Message string }

// Urgency says how due work stands against the commands that wait.
type Urgency int

// The urgencies, from none to most.
const (
	Nothing   Urgency = iota // nothing is due
	Alternate                // one step, one client command, in turn
	Blocking                 // no client command before it is done
)

// State is the fold of one journal partition under its rules. It is not safe for concurrent use: its owner
// serialises Evolve against everything else.
type State interface {
	// Decide says what the command causes at the given stamp. An error is a *Refusal: nothing is recorded.
	Decide(at Stamp, c Command) (Decision, error)
	// Evolve applies one valid record. The journal's own events (genesis, taken) are passed too.
	Evolve(at Stamp, c Recorded, o Outcome, events []Event)
	// Due says whether something on the due list is due at now.
	Due(now scalar.Time) Urgency
	// NextDue returns the earliest time at which something becomes due, if anything ever does.
	NextDue() (scalar.Time, bool)
	// Step decides the next piece of due work. With single set it takes one entry only, because a larger step
	// did not fit or panicked.
	Step(at Stamp, single bool) Decision
	// SetAside decides the event that takes the next due entry off the list after it failed even alone.
	SetAside(at Stamp, cause string) Decision
}

// Agenda is a State that shows its due list.
type Agenda interface {
	// DueEntries returns up to n entries, the first ones left out, in the order in which they will be done, and how many
	// there are.
	DueEntries(first, n int) (entries []DueEntry, total int)
	// SetAsideEntries returns what failed and waits to be put back.
	SetAsideEntries() []DueEntry
	// NamesDueWork reports whether an entry of this name may be on the list: whether its kind is one of this journal's.
	NamesDueWork(entry string) bool
}

// Remembering is a State that tells which Idempotency-Keys it remembers.
type Remembering interface {
	// Remembers reports whether a broker's key was used for a command of a type, as of the last record. Of a type that several
	// routes make it does not say on which.
	Remembers(broker, command, key string) bool
}

// DueEntry is one piece of due work.
type DueEntry struct {
	Entry   string      // its name: the kind of work, a slash, and what it is about
	Time    scalar.Time // when it is due
	Urgency Urgency
	Error   string // why it was set aside
}

// Rules are the rules of one journal.
type Rules interface {
	// Journal is the name, and the topic after its prefix: "trading", "identity", "onboarding".
	Journal() string
	// NewState returns the state before genesis.
	NewState() State
	// Registry knows every event type that the journal may hold.
	Registry() *Registry
	// Limit is the greatest size of a record's value in bytes.
	Limit() int
	// Newest is the highest number of rules that this build knows. Activation raises that of the rules in force; a journal
	// whose rules are higher stops a build.
	Newest() int
}
