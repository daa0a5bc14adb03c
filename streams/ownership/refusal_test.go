package ownership_test

import (
	"context"
	"errors"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/journal/journaltest"
	"github.com/perpetua-exchange/perpetua/streams/ownership"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// strict are rules that refuse the word "no".
type strict struct{ journaltest.Words }

func (strict) NewState() decide.State { return new(stern) }

type stern struct{ journaltest.WordList }

func (s *stern) Decide(at decide.Stamp, c decide.Command) (decide.Decision, error) {
	if c.Payload == "no" {
		return decide.Decision{}, decide.Refuse(decide.Conflict, "NO", "This word is refused.")
	}
	return s.WordList.Decide(at, c)
}

// TestAnOwnerThatAnEngineDoesNotHearRefusesNothing: the engine may have removed it from the group already. What the owner
// records needs no lease.
func TestAnOwnerThatAnEngineDoesNotHearRefusesNothing(t *testing.T) {
	c := journaltest.NewClient(t, "trading")
	n := startNode(t, ownership.Config{Client: c, NodeID: "n1", URL: "http://n1:8080", Build: "test",
		Rules: []decide.Rules{strict{journaltest.Words{Name: "trading"}}}})
	eventually(t, "the node serves", func() bool { return n.serves("trading") })
	refuses := func() bool {
		_, one := n.Submit(context.Background(), "trading", journaltest.Say("no"))
		two := n.SubmitAll(context.Background(), "trading", []decide.Command{journaltest.Say("yes"), journaltest.Say("no")})
		var refused *submit.RefusedError
		var busy *submit.NotAcceptedError
		switch {
		case two[0].Err != nil:
			t.Fatal(two[0].Err)
		case errors.As(one, &refused) && errors.As(two[1].Err, &refused):
			return true
		case !errors.As(one, &refused) && !errors.As(one, &busy) || !errors.As(two[1].Err, &refused) && !errors.As(two[1].Err, &busy):
			t.Fatal(one, two[1].Err)
		}
		return false
	}
	enqueued := func() error {
		term, _ := n.Serving("trading", 0)
		outcome, ready := make(chan submit.Outcome, 1), make(chan struct{}, 2)
		n.Enqueue(submit.InTerm(context.Background(), term), "trading", submit.Batch{Commands: []decide.Command{journaltest.Say("no")},
			Reply: func(_ int, o submit.Outcome) { outcome <- o }, Replied: func() { ready <- struct{}{} }})
		err := (<-outcome).Err
		<-ready // the answer can be sent
		return err
	}
	eventually(t, "the node refuses", refuses)
	var refused *submit.RefusedError
	if err := enqueued(); !errors.As(err, &refused) {
		t.Errorf("an enqueued command: %v", err)
	}
	eventually(t, "it refuses nothing while an engine asks and hears no answer", func() bool {
		answer, err := n.Term(context.Background(), ownership.Question{Journal: "trading", Engine: "n2"})
		if err != nil || !answer.Serving {
			t.Fatal(answer, err)
		}
		return !refuses()
	})
	if _, err := n.Term(context.Background(), ownership.Question{Journal: "trading", Engine: "n2"}); err != nil {
		t.Fatal(err)
	}
	var busy *submit.NotAcceptedError
	if err := enqueued(); !errors.As(err, &busy) {
		t.Errorf("an enqueued command is answered %v while an engine hears no answer", err)
	}
	eventually(t, "it refuses again when the engine is gone", refuses)
}
