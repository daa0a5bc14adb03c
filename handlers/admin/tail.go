package admin

import (
	"net/http"
	"slices"
	"sync"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/web"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// The bounds of what a tail keeps of the last records. The last one is kept whatever its size.
const (
	tailRecords = 1000
	tailBytes   = 4 << 20
)

// Tail knows the last records of a journal's partition that this node has followed to: the place of the very last one,
// and the text of some before it. It holds memory only, so it answers also while the log cannot be read.
type Tail struct {
	journal   string
	partition int32

	mu    sync.Mutex
	at    record.Position
	id    scalar.ID
	time  scalar.Time
	kept  []keptRecord // in order, without a gap
	bytes int
}

type keptRecord struct {
	at    record.Position
	value []byte
}

// NewTail makes a tail that stands before genesis. Its Observe has to be registered with a fold of the partition.
func NewTail(name string, partition int32) *Tail {
	return &Tail{journal: name, partition: partition, at: record.Before}
}

// Start makes the tail stand where the fold starts, before that runs.
func (t *Tail) Start(seed *record.Seed) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at, t.id, t.time = seed.Position, seed.Journal, seed.Time
}

// Missing returns the sequences of the records, from and to, that the tail would have kept and doesn't, because the fold
// started after them; from is above to if there are none.
func (t *Tail) Missing() (from, to int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	to = t.at.Sequence
	if len(t.kept) > 0 {
		to = t.kept[0].at.Sequence - 1
	}
	return max(0, t.at.Sequence+1-tailRecords), to
}

// Precede adds records, in order, that lead up to those which are kept. They may overlap.
func (t *Tail) Precede(entries []record.Entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := t.at.Sequence + 1
	if len(t.kept) > 0 {
		first = t.kept[0].at.Sequence
	}
	for _, e := range slices.Backward(entries) {
		if e.Position.Sequence >= first {
			continue
		}
		if e.Position.Sequence != first-1 || len(t.kept) >= tailRecords || t.bytes+len(e.Value) > tailBytes {
			return
		}
		t.kept = slices.Insert(t.kept, 0, keptRecord{e.Position, e.Value})
		t.bytes += len(e.Value)
		first--
	}
}

// Observe takes note of a record. It has the form that follow.Fold.Listen wants.
func (t *Tail) Observe(e record.Entry, _ decide.State) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at, t.id, t.time = e.Position, e.Journal, e.Record.Time
	t.kept = append(t.kept, keptRecord{e.Position, e.Value})
	t.bytes += len(e.Value)
	for len(t.kept) > tailRecords || t.bytes > tailBytes && len(t.kept) > 1 {
		t.bytes -= len(t.kept[0].value)
		t.kept[0] = keptRecord{} // the array lives on until append moves the rest
		t.kept = t.kept[1:]
	}
}

// recordShown is a record as it stands in the log. Its value is given as text and not as an object, because the hash is
// that of exactly these bytes.
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

// beforeAll stands for no sequence given: the last records are wanted.
const beforeAll = -1

func (h *Handler) listRecords(c echo.Context) error {
	query := web.Query(c)
	size := int(query.OptionalInteger("page_size", 1, tailRecords).Or(web.DefaultPageSize))
	after := query.OptionalInteger("after", 0, 1<<53).Or(beforeAll)
	if err := query.Done(); err != nil {
		return err
	}
	name := web.Param(c, "journal")
	for _, t := range h.cfg.Tails {
		if t.journal == name {
			return t.serve(c, after, size)
		}
	}
	return web.NotFound("UNKNOWN_JOURNAL", "There is no such journal.")
}

// serve answers with the last records, or with the first ones after a sequence.
func (t *Tail) serve(c echo.Context, after int64, size int) error {
	out, at, gone := t.records(after, size)
	if gone {
		return web.NewProblem(http.StatusGone, "RECORDS_NOT_HELD",
			"The records after that one are not held here any more. `perpetua log` prints any record.")
	}
	web.SetReadPosition(c, t.journal, at)
	return c.JSON(http.StatusOK, out)
}

// records returns at most size records, in order, and the sequence of the last one that the tail knows of. gone says
// that the tail does not reach back to after.
func (t *Tail) records(after int64, size int) (out recordsShown, at int64, gone bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	out = recordsShown{Journal: t.journal, Partition: t.partition, Records: []recordShown{}}
	if !t.id.IsZero() {
		id := t.id
		out.JournalID = &id
	}
	from := max(0, len(t.kept)-size)
	switch {
	case after != beforeAll && len(t.kept) > 0:
		from = int(min(after+1-t.kept[0].at.Sequence, int64(len(t.kept))))
	case after != beforeAll && after < t.at.Sequence:
		from = -1 // the fold started later
	}
	if from < 0 {
		return out, 0, true
	}
	for _, r := range t.kept[from:min(from+size, len(t.kept))] {
		out.Records = append(out.Records, recordShown{r.at.Sequence, r.at.Offset, r.at.Hash, string(r.value)})
	}
	return out, t.at.Sequence, false
}
