package journal

import (
	"errors"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// TestNobodyFillsTheQueueAlone: a user who sends without end gets as much of an owner's queue as leaves others room, and
// has it again once its commands have been taken out, whatever becomes of them.
func TestNobodyFillsTheQueueAlone(t *testing.T) {
	o := &Owner{queue: make(chan *request, 16), journal: "test"}
	o.accepting.Store(true)
	line := func(a decide.Actor) (n int) {
		for range 2 * cap(o.queue) {
			_, err := o.enqueue(t.Context(), decide.Command{Type: "a", Actor: a}, nil)
			if err == nil {
				n++
				continue
			}
			var notAccepted *submit.NotAcceptedError
			if !errors.As(err, &notAccepted) || notAccepted.RetryAfter == 0 {
				t.Fatal(err)
			}
		}
		return n
	}
	user := func(name string) decide.Actor { return decide.Actor{Sub: name, Broker: "alpha"} }
	want := func(who decide.Actor, most int) {
		t.Helper()
		if n := line(who); n != most {
			t.Errorf("%d commands of %v were lined up, want %d", n, who, most)
		}
	}
	serving := &term{o: o}
	for name, takeOut := range map[string]func(){
		"decided": func() {
			for serving.nextRequest() != nil {
			}
		},
		"refused": func() { o.refuse("a stall") },
	} {
		t.Run(name, func(t *testing.T) {
			want(user("greedy"), 8)
			want(user("greedy"), 0)
			want(user("second"), 4)
			want(user("third"), 2)
			want(decide.Actor{System: "gateway"}, 2) // the rest
			want(user("fourth"), 0)
			takeOut()
		})
	}
	want(user("second"), 8)
}
