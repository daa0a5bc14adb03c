package record

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Base says where a trimmed log begins: the topic holds every record from Sequence on, and it may hold earlier ones. A log
// that begins with its genesis has no Base.
//
// A Base identifies the log that it belongs to: it names the journal's identity, and record Sequence names Prev. Records
// before it are verified by the archive alone. Offsets are not part of a Base, because a copy of the log has others.
type Base struct {
	Journal    string    `json:"journal"`
	Partition  int32     `json:"partition"`
	Partitions int32     `json:"partitions"` // as in the genesis
	JournalID  scalar.ID `json:"journal_id"` // as in the genesis
	Sequence   int64     `json:"sequence"`   // of the first record that the log must hold; at least 1
	Prev       Hash      `json:"prev"`       // hash of the record before it
	Term       int64     `json:"term"`       // that the record before it belongs to; 0 before the first term
}

// ParseBase reads the JSON form of a base. It accepts exactly the bytes that JSON returns.
func ParseBase(text []byte) (Base, error) {
	var b Base
	if err := json.Unmarshal(text, &b, json.RejectUnknownMembers(true), jsontext.AllowDuplicateNames(false)); err != nil {
		return Base{}, fmt.Errorf("this is not the base of a log: %w", err)
	}
	if err := b.Validate(); err != nil {
		return Base{}, err
	}
	if string(b.JSON()) != string(text) {
		return Base{}, errors.New("this is not the base of a log: its JSON is not in the canonical form")
	}
	return b, nil
}

// JSON returns the JSON form: the members in the order of the fields, without white space.
func (b Base) JSON() []byte {
	text, err := json.Marshal(b)
	if err != nil { // only a string that is not UTF-8 can't be marshaled, and Validate refuses that
		panic(err)
	}
	return text
}

// Validate returns an error if no log can have this base.
func (b Base) Validate() error {
	reason := ""
	switch {
	case b.Journal == "" || strings.Trim(b.Journal, "abcdefghijklmnopqrstuvwxyz") != "":
		reason = fmt.Sprintf("%q is not the name of a journal", b.Journal)
	case b.Partition < 0 || b.Partition >= b.Partitions:
		reason = fmt.Sprintf("partition %d of %d", b.Partition, b.Partitions)
	case b.JournalID.IsZero():
		reason = "it has no journal id"
	case b.Sequence < 1:
		reason = fmt.Sprintf("sequence %d", b.Sequence)
	case b.Prev == Hash{}:
		reason = "it has no hash of the record before it"
	case b.Term < 0 || b.Term >= b.Sequence: // each term opens with a record, and the first record is the genesis
		reason = fmt.Sprintf("term %d before record %d", b.Term, b.Sequence)
	default:
		return nil
	}
	return fmt.Errorf("this is not the base of a log: %s", reason)
}

// Before returns the position of the record before the base, after which a reader without a state starts. Its offset is not
// known.
func (b Base) Before() Position { return Position{Offset: -1, Sequence: b.Sequence - 1, Hash: b.Prev} }

// String names the log and the first record.
func (b Base) String() string {
	return fmt.Sprintf("base of %s/%d at record %d after hash %s", b.Journal, b.Partition, b.Sequence, b.Prev.String()[:16])
}

// Contradicts returns why two bases can't be those of one log at two times, or "". Bases with different sequences can be
// compared further only by the records between them.
func (b Base) Contradicts(c Base) string {
	if b.Sequence > c.Sequence {
		b, c = c, b
	}
	switch {
	case b.Journal != c.Journal || b.Partition != c.Partition:
		return fmt.Sprintf("one is of %s/%d, the other of %s/%d", b.Journal, b.Partition, c.Journal, c.Partition)
	case b.JournalID != c.JournalID:
		return fmt.Sprintf("one is of the journal %v, the other of %v", b.JournalID, c.JournalID)
	case b.Partitions != c.Partitions:
		return fmt.Sprintf("one has %d partitions, the other %d", b.Partitions, c.Partitions)
	case b.Sequence == c.Sequence && b.Prev != c.Prev:
		return fmt.Sprintf("record %d has the hashes %s and %s", b.Sequence-1, b.Prev, c.Prev)
	case b.Sequence == c.Sequence && b.Term != c.Term:
		return fmt.Sprintf("record %d is in the terms %d and %d", b.Sequence-1, b.Term, c.Term)
	case b.Term > c.Term:
		return fmt.Sprintf("record %d is in term %d, and the later record %d in term %d", b.Sequence-1, b.Term, c.Sequence-1, c.Term)
	}
	return ""
}
