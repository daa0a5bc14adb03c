package admin

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Reader follows a partition of a journal. Projection runners and folds are readers.
type Reader struct {
	Name      string
	Journal   string
	Partition int32
	// Position returns the position of the last record applied. Err returns the error that stopped the reader, or
	// nil.
	Position func() record.Position
	Err      func() error
}

// journalShown is a partition of a journal and its readers.
type journalShown struct {
	Journal   string        `json:"journal"`
	JournalID *scalar.ID    `json:"journal_id"`
	Partition int32         `json:"partition"`
	Sequence  int64         `json:"sequence"`
	Hash      record.Hash   `json:"hash"`
	Time      *scalar.Time  `json:"time"`
	Readers   []readerShown `json:"readers"`
}

type readerShown struct {
	Name     string  `json:"name"`
	Sequence int64   `json:"sequence"`
	Lag      int64   `json:"lag"`
	Error    *string `json:"error"`
}

func (h *Handler) listJournals(c echo.Context) error {
	query := rest.Query(c)
	page := rest.ReadNumbered(query)
	if err := query.Done(); err != nil {
		return err
	}
	all := make([]journalShown, 0, len(h.cfg.Tails))
	for _, t := range h.cfg.Tails {
		all = append(all, t.show(h.cfg.Readers))
	}
	return c.JSON(http.StatusOK, rest.Slice(page, all))
}

// show reads the readers' positions before the tail's, so that no reader seems to be ahead of the tail. The tail
// follows its own fold, so a reader may still be ahead; its lag is then 0.
func (t *Tail) show(readers []Reader) journalShown {
	out := journalShown{Journal: t.journal, Partition: t.partition, Readers: []readerShown{}}
	for _, r := range readers {
		if r.Journal != t.journal || r.Partition != t.partition {
			continue
		}
		shown := readerShown{Name: r.Name, Sequence: r.Position().Sequence}
		if err := r.Err(); err != nil {
			text := err.Error()
			shown.Error = &text
		}
		out.Readers = append(out.Readers, shown)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	out.Sequence, out.Hash = t.at.Sequence, t.at.Hash
	if !t.id.IsZero() {
		id, at := t.id, t.time
		out.JournalID, out.Time = &id, &at
	}
	for i := range out.Readers {
		out.Readers[i].Lag = max(0, out.Sequence-out.Readers[i].Sequence)
	}
	return out
}
