package blob

import (
	"fmt"
	"time"
)

// worker runs the questions about one open blob sequentially in one goroutine, so that a store that hangs blocks that
// goroutine and not the caller. The goroutine lives as long as the blob is open, so a piece of a blob costs no
// allocation, whereas ask allocates a goroutine, a channel and a timer.
//
// A worker is not safe for concurrent use.
type worker struct {
	line          *line
	questions     chan question
	answers       chan answered
	quiet         *time.Timer
	questionCount int // number of questions so far
}

// question is an operation and its argument.
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

// newWorker starts a worker. Its goroutine runs until end is called.
func newWorker(l *line) *worker {
	// Room for two: after a question that hangs, only the closing question follows, and the caller waits for neither.
	w := &worker{line: l, questions: make(chan question, 2), answers: make(chan answered, 2), quiet: time.NewTimer(0)}
	w.quiet.Stop()
	go w.run()
	return w
}

func (w *worker) run() {
	for q := range w.questions {
		n, err := q.do(q.bytes)
		<-w.line.free // a question counts as pending until it ends
		w.answers <- answered{q.number, n, err}
	}
}

// end makes the goroutine end after all questions asked so far.
func (w *worker) end() { close(w.questions) }

// ask runs a question and returns its result, or ErrSilent if the store does not answer in time. The abandoned question
// may continue, and later questions wait for it.
func (w *worker) ask(within time.Duration, do func([]byte) (int, error), bytes []byte) (int, error) {
	step, left := within/countSteps, countSteps // as countdown does
	w.quiet.Reset(step)
	defer w.quiet.Stop()
	w.questionCount++
	for free := w.line.free; ; {
		select {
		case free <- struct{}{}:
			free = nil // a send to nil blocks: the question is asked once
			w.questions <- question{w.questionCount, do, bytes}
		case a := <-w.answers:
			if a.number < w.questionCount { // answer to an abandoned question
				continue
			}
			w.line.silent.Store(nil)
			return a.n, a.err
		case <-w.quiet.C: // pending questions hang, or this one
			if left--; left == 0 {
				return 0, w.silent(within)
			}
			w.quiet.Reset(step)
		}
	}
}

func (w *worker) silent(within time.Duration) error {
	w.line.failed()
	return fmt.Errorf("%w within %v", ErrSilent, within)
}
