package journal

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// The types of the journal's own records, each both the command's type and that of the record's first event.
const (
	TypeGenesis = "journal.genesis"
	TypeTaken   = decide.TypeTaken
)

// Genesis is the first event of a journal.
type Genesis struct {
	Journal    string    `json:"journal"`
	JournalID  scalar.ID `json:"journal_id"` // random; derived ids depend on it
	Partition  int32     `json:"partition"`
	Partitions int32     `json:"partitions"`
}

// EventType returns journal.genesis.
func (*Genesis) EventType() string { return TypeGenesis }

// Taken opens a term: from this record on, nothing that an earlier term still has in flight can become valid.
type Taken struct {
	Term  int64  `json:"term"` // that of the last taken, plus one; the first is 1
	Node  string `json:"node"`
	URL   string `json:"url"`
	Build string `json:"build"`
}

// EventType returns journal.taken.
func (*Taken) EventType() string { return TypeTaken }

// Shapes returns the registry of the journal's own event types, which every journal may hold beside those of its
// rules.
func Shapes() *decide.Registry {
	r := decide.NewRegistry()
	r.Add(func() decide.Event { return new(Genesis) })
	r.Add(func() decide.Event { return new(Taken) })
	return r
}
