package record

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// The types of the records that the journal itself makes. Each is the type of the command and of the only event.
const (
	TypeGenesis     = "journal.genesis"
	TypeTermStarted = decide.TypeTaken
)

// Genesis is the event of the first record of a partition, which has sequence 0.
type Genesis struct {
	Journal    string    `json:"journal"`    // the name
	JournalID  scalar.ID `json:"journal_id"` // random; the ids that the rules derive depend on it
	Partition  int32     `json:"partition"`
	Partitions int32     `json:"partitions"`
}

// EventType returns journal.genesis.
func (*Genesis) EventType() string { return TypeGenesis }

// TermStarted starts a term, in which one node decides commands. Once its record is valid, no record that an earlier term
// still has in flight can become valid.
type TermStarted struct {
	Term  int64  `json:"term"` // one more than that of the previous TermStarted; 1 for the first
	Node  string `json:"node"`
	URL   string `json:"url"`
	Build string `json:"build"`
}

// EventType returns journal.taken.
func (*TermStarted) EventType() string { return TypeTermStarted }

// Shapes returns the registry of the events that the journal itself makes. Every journal may hold them, in addition to those
// that the rules make.
func Shapes() *decide.Registry {
	r := decide.NewRegistry()
	r.Add(func() decide.Event { return new(Genesis) })
	r.Add(func() decide.Event { return new(TermStarted) })
	return r
}
