package journal_test

import (
	"context"
	"errors"
	"testing"

	"github.com/perpetua-exchange/perpetua/streams/term"
)

// TestATermsGoroutineAnswersForIt: while it works it describes its term; while it does not, there is no answer, although
// everything else of the process works.
func TestATermsGoroutineAnswersForIt(t *testing.T) {
	r := newRig(t)
	o := r.owner("a").ready()
	log := r.all()
	taken := log[len(log)-1]
	s, serving, err := o.Standing(t.Context())
	if want := (term.Standing{Term: 1, Taken: taken.Position.Hash, Journal: taken.Journal}); err != nil || !serving || s != want {
		t.Errorf("%+v, %v, %v instead of %+v", s, serving, err, want)
	}
	h := &hold{make(chan struct{}), make(chan struct{})}
	answered := make(chan error, 1)
	go func() {
		_, err := o.insist(command(h))
		answered <- err
	}()
	<-h.entered
	asking, cancel := context.WithCancel(t.Context())
	asked := make(chan error, 1)
	go func() {
		_, _, err := o.Standing(asking)
		asked <- err
	}()
	select {
	case err := <-asked:
		t.Errorf("a goroutine that is held answers %v", err)
	default:
	}
	cancel()
	if err := <-asked; !errors.Is(err, context.Canceled) {
		t.Errorf("the answer of a goroutine that is held is %v", err)
	}
	close(h.leave)
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
	if _, serving, err := o.Standing(t.Context()); !serving || err != nil {
		t.Errorf("after it went on: %v, %v", serving, err)
	}
	if err := o.end(); err != nil {
		t.Fatal(err)
	}
	if s, serving, err := o.Standing(t.Context()); serving || err != nil || s != (term.Standing{}) {
		t.Errorf("after its end: %+v, %v, %v", s, serving, err)
	}
}
