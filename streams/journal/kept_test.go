package journal

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// TestACommandThatOutlivedItsTermWaitsToBeDecidedAnew lets the next term come to a kept command late: it is waited for
// until the command's time is over, and not only as long as a command waits that nobody has decided yet.
func TestACommandThatOutlivedItsTermWaitsToBeDecidedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &Owner{queue: make(chan *request, 2)}
		o.cfg.Deadline = 10 * time.Second
		o.accepting.Store(true)
		enqueue := func() (*request, <-chan error) {
			ended := make(chan error, 1)
			go func() {
				r, err := o.enqueue(t.Context(), decide.Command{}, nil)
				if err == nil {
					_, err = o.await(t.Context(), r)
				}
				ended <- err
			}()
			return <-o.queue, ended
		}
		answered := func(ended <-chan error) bool {
			synctest.Wait()
			return len(ended) > 0
		}
		waiting, ended := enqueue()
		time.Sleep(patience)
		if !answered(ended) {
			t.Error("a command that nobody decides is waited for")
		}
		if waiting.move(queued) {
			t.Error("it is not abandoned")
		}

		outlived, ended := enqueue()
		outlived.move(uncertain)
		time.Sleep(patience / 2)
		(&term{}).anew(kept{request: outlived})
		time.Sleep(2 * patience)
		if answered(ended) || !outlived.move(uncertain) {
			t.Error("a command that outlived its term is given up before its time")
		}
		outlived.answer(submit.Result{}, nil)
		if !answered(ended) || <-ended != nil {
			t.Error("it is not answered when it is decided")
		}

		late, ended := enqueue()
		late.move(uncertain)
		(&term{}).anew(kept{request: late})
		time.Sleep(o.cfg.Deadline)
		if !answered(ended) {
			t.Fatal("a command that outlived its term is waited for longer than its time")
		}
		if err, ok := (<-ended).(*submit.NotAcceptedError); !ok {
			t.Errorf("it is answered with %v", err)
		}
	})
}
