package blob

import (
	"fmt"
	"time"
)

// worker asks the store about one blob, one question after the other, in a goroutine of its own: a store that hangs holds up
// that goroutine, not who asks. It lives as long as the blob is open, so a piece of a blob costs no allocation, which ask
// would for its goroutine, its channel and its timer.
//
// One goroutine uses it.
type worker struct {
	line      *line
	questions chan question
	answers   chan answered
	quiet     *time.Timer
	asked     int // questions so far
}

// question is what to do, and the bytes to do it with.
type question struct {
	number int
	do     func([]byte) (int, error)
	bytes  []byte
}

type answered struct {
	number int
	n      int
	err    error
}

// newWorker starts a worker, which runs until its end.
func newWorker(l *line) *worker {
	// Room for two: nothing but the end is asked behind a question that hangs, and whoever asked waits for neither.
	w := &worker{line: l, questions: make(chan question, 2), answers: make(chan answered, 2), quiet: time.NewTimer(0)}
	w.quiet.Stop()
	go w.run()
	return w
}

func (w *worker) run() {
	for q := range w.questions {
		n, err := q.do(q.bytes)
		<-w.line.free // whenever that is: until then the question counts
		w.answers <- answered{q.number, n, err}
	}
}

// end has the worker end once it has done all that was asked.
func (w *worker) end() { close(w.questions) }

// ask returns what comes of a question, or ErrSilent once the store has not answered for so long. A question that is left
// behind then may go on, and one that is asked later waits for it.
func (w *worker) ask(within time.Duration, do func([]byte) (int, error), bytes []byte) (int, error) {
	w.quiet.Reset(within)
	defer w.quiet.Stop()
	select {
	case w.line.free <- struct{}{}:
	case <-w.quiet.C: // as many questions as there may be hang
		return 0, w.silent(within)
	}
	w.asked++
	w.questions <- question{w.asked, do, bytes}
	for {
		select {
		case a := <-w.answers:
			if a.number < w.asked { // of the one that was left behind
				continue
			}
			w.line.silent.Store(0)
			return a.n, a.err
		case <-w.quiet.C:
			return 0, w.silent(within)
		}
	}
}

func (w *worker) silent(within time.Duration) error {
	w.line.silent.Store(time.Now().UnixNano())
	return fmt.Errorf("%w within %v", ErrSilent, within)
}
