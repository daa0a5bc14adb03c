package admin

import (
	"net/http"
	"slices"
	"sync"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// These constants limit the records that a tail keeps. The last record is kept even if it is larger.
const (
	tailRecords = 1000
	tailBytes   = 4 << 20
)

// Tail holds the position of the last record of a partition that this node has followed, and the text of records
// before it. It uses only memory, so it is available while the log cannot be read.
type Tail struct {
	journal   string
	partition int32

	mu     sync.Mutex
	at     record.Position
	id     scalar.ID
	time   scalar.Time
	recent []keptRecord // in order and without gaps
	bytes  int
}

type keptRecord struct {
	at    record.Position
	value []byte
}

// NewTail returns a tail before genesis. Register its Observe with a fold of the partition.
func NewTail(name string, partition int32) *Tail {
	return &Tail{journal: name, partition: partition, at: record.Before}
}

// Start sets the tail's position to the fold's start. Call it before the fold runs.
func (t *Tail) Start(seed *record.Seed) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at, t.id, t.time = seed.Position, seed.Journal, seed.Time
}

// journalID returns the id of the journal, or zero before the first record.
func (t *Tail) journalID() scalar.ID {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.id
}

// Missing returns the range of sequences that the tail would hold but does not, because the fold started after them.
// If there are none, from is greater than to.
func (t *Tail) Missing() (from, to int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	to = t.at.Sequence
	if len(t.recent) > 0 {
		to = t.recent[0].at.Sequence - 1
	}
	return max(0, t.at.Sequence+1-tailRecords), to
}

// Precede adds records, in order, that precede the oldest record held. They may overlap with records held.
func (t *Tail) Precede(entries []record.Entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := t.at.Sequence + 1
	if len(t.recent) > 0 {
		first = t.recent[0].at.Sequence
	}
	for _, e := range slices.Backward(entries) {
		if e.Position.Sequence >= first {
			continue
		}
		if e.Position.Sequence != first-1 || len(t.recent) >= tailRecords || t.bytes+len(e.Value) > tailBytes {
			return
		}
		t.recent = slices.Insert(t.recent, 0, keptRecord{e.Position, e.Value})
		t.bytes += len(e.Value)
		first--
	}
}

// Observe adds a record. Its signature fits follow.Fold.Listen.
func (t *Tail) Observe(e record.Entry, _ decide.State) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at, t.id, t.time = e.Position, e.Journal, e.Record.Time
	t.recent = append(t.recent, keptRecord{e.Position, e.Value})
	t.bytes += len(e.Value)
	for len(t.recent) > tailRecords || t.bytes > tailBytes && len(t.recent) > 1 {
		t.bytes -= len(t.recent[0].value)
		t.recent[0] = keptRecord{} // free the value; the array stays until append reallocates it
		t.recent = t.recent[1:]
	}
}

// recordShown is a record of the log. Value is a string and not an object, because the hash covers exactly these
// bytes.
type recordShown struct {
	Sequence int64       `json:"sequence"`
	Offset   int64       `json:"offset"`
	Hash     record.Hash `json:"hash"`
	Value    string      `json:"value"`
}

type recordsShown struct {
	Journal   string        `json:"journal"`
	JournalID *scalar.ID    `json:"journal_id"`
	Partition int32         `json:"partition"`
	Records   []recordShown `json:"records"`
}

// beforeAll is the value of after if the request has none: return the last records.
const beforeAll = -1

func (h *Handler) listRecords(c echo.Context) error {
	query := rest.Query(c)
	size := int(query.OptionalInteger("page_size", 1, tailRecords).Or(rest.DefaultPageSize))
	after := query.OptionalInteger("after", 0, 1<<53).Or(beforeAll)
	if err := query.Done(); err != nil {
		return err
	}
	name := rest.Param(c, "journal")
	for _, t := range h.cfg.Tails {
		if t.journal == name {
			return t.serve(c, after, size)
		}
	}
	return problem.NotFound("UNKNOWN_JOURNAL", "There is no such journal.")
}

// serve returns the last records, or the first records after a sequence.
func (t *Tail) serve(c echo.Context, after int64, size int) error {
	out, at, gone := t.records(after, size)
	if gone {
		return problem.New(http.StatusGone, "RECORDS_NOT_HELD",
			"The records after that one are not held here any more. `perpetua log` prints any record.")
	}
	rest.SetReadPosition(c, t.journal, at)
	return c.JSON(http.StatusOK, out)
}

// records returns at most size records, in order, and the sequence of the last record in the tail. gone reports that
// the tail does not reach back to after.
func (t *Tail) records(after int64, size int) (out recordsShown, at int64, gone bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	out = recordsShown{Journal: t.journal, Partition: t.partition, Records: []recordShown{}}
	if !t.id.IsZero() {
		id := t.id
		out.JournalID = &id
	}
	from := max(0, len(t.recent)-size)
	switch {
	case after != beforeAll && len(t.recent) > 0:
		from = int(min(after+1-t.recent[0].at.Sequence, int64(len(t.recent))))
	case after != beforeAll && after < t.at.Sequence:
		from = -1 // the fold started later
	}
	if from < 0 {
		return out, 0, true
	}
	for _, r := range t.recent[from:min(from+size, len(t.recent))] {
		out.Records = append(out.Records, recordShown{r.at.Sequence, r.at.Offset, r.at.Hash, string(r.value)})
	}
	return out, t.at.Sequence, false
}
