package node

import (
	"fmt"
	"testing"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/records"
	"github.com/perpetua-exchange/perpetua/streams/journal/journaltest"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// wordsCodec saves what was heard as one line.
type wordsCodec struct{}

func (wordsCodec) Version() int          { return 1 }
func (wordsCodec) Size(decide.State) int { return 64 }
func (wordsCodec) Append(b []byte, s decide.State) []byte {
	return fmt.Appendf(b, "%q", s.(*journaltest.WordList).Words)
}
func (wordsCodec) Read([]byte) (decide.State, error) { return new(journaltest.WordList), nil }

// TestAThirdJournalIsOneEntry gives a node one more entry in its table, and nothing else. Its journal has an owner, a
// fold, rows, snapshots and metrics, and is told of wherever the others are.
func TestAThirdJournalIsOneEntry(t *testing.T) {
	words := journals.Journal{Rules: journaltest.Words{Name: "words"}, Codec: wordsCodec{},
		Projections: []projections.Projection{records.Projection{Journal: "words"}}}
	b := newBench(t, append(journals.All(), words), "--snapshot-records", "1")
	n := b.start(t)

	said := n.submit(t, "words", journaltest.Say("hello"))
	fold, err := n.Fold("words")
	if err != nil {
		t.Fatal(err)
	}
	if err := fold.Wait(t.Context(), said.Position.Sequence); err != nil {
		t.Fatal(err)
	}
	fold.View(func(s decide.State, _ record.Position) {
		if heard := s.(*journaltest.WordList).Words; len(heard) != 1 || heard[0] != "hello" {
			t.Errorf("the fold heard %q", heard)
		}
	})
	f, err := n.followers.of("words")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.rows.Wait(t.Context(), said.Position.Sequence); err != nil {
		t.Fatal(err)
	}
	var rows int
	err = n.stores.pool.QueryRow(t.Context(), `SELECT count(*) FROM records WHERE journal = 'words' AND sequence = $1`, said.Position.Sequence).Scan(&rows)
	if err != nil || rows != 1 {
		t.Errorf("%d rows: %v", rows, err)
	}
	eventually(t, "a snapshot of the third journal", func() string {
		at, err := n.stores.snapshots.store.Positions(t.Context(), "words", 0)
		if err != nil || len(at) == 0 {
			return fmt.Sprint(at, err)
		}
		return ""
	})
	var state struct{ Journals map[string]string }
	b.get(t, n.URL()+"/readyz", &state)
	if state.Journals["words"] != said.Position.String() {
		t.Errorf("/readyz tells of %v, want words at %v", state.Journals, said.Position)
	}
}

// TestAnUnknownJournalIsAnError asks by a name that is not in the table, which once meant the trading journal.
func TestAnUnknownJournalIsAnError(t *testing.T) {
	if j, err := journals.All().Of("onbording"); err == nil {
		t.Errorf("it is %v", j)
	}
	n := newBench(t, journals.All()).start(t)
	if _, err := n.Fold("onbording"); err == nil {
		t.Error("there is a fold of it")
	}
	if _, err := n.stores.snapshots.Seed(t.Context(), "onbording", 0); err == nil {
		t.Error("it has snapshots")
	}
	if _, err := n.Submitter().Submit(t.Context(), "onbording", decide.Command{ID: scalar.ID{1}, Type: "instrument.list"}); err == nil {
		t.Error("commands are submitted to it")
	}
}
