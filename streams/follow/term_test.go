package follow_test

import (
	"errors"
	"testing"

	"github.com/perpetua-exchange/perpetua/streams/follow"
	"github.com/perpetua-exchange/perpetua/streams/journal/journaltest"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// TestAFoldFromASeedKnowsItsTerm starts folds from seeds that say which term they are in, and then has another term begin:
// it follows one of them only.
func TestAFoldFromASeedKnowsItsTerm(t *testing.T) {
	c := journaltest.NewClient(t, "trading")
	say, stop := serve(t, c)
	at := say("one").Position
	from := func(term int64) *follow.Fold {
		f := follow.New(c, journaltest.Words{Name: "trading"}, 0, follow.FromSeed(record.Seed{State: new(journaltest.WordList), Position: at, Term: term}))
		run(t, f)
		return f
	}
	right, wrong := from(1), from(4)
	stop()
	say, _ = serve(t, c)
	last := say("two").Position
	if err := right.Wait(within(t), last.Sequence); err != nil {
		t.Error(err)
	}
	var broken *record.BrokenRecordError
	if err := wrong.Wait(within(t), last.Sequence); !errors.As(err, &broken) || !wrong.Position().Equal(at) {
		t.Errorf("from a seed in term 4, term 2 was followed to %v: %v", wrong.Position(), err)
	}
}
