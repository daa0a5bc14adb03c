package broker

import (
	"errors"
	"fmt"
	"sync"
)

// FailedError says that the log can no longer be written. Nothing is
// acknowledged after it. What was acknowledged before is on the disk.
type FailedError struct {
	Dir string
	Err error
}

// Error implements error.
func (e *FailedError) Error() string {
	return fmt.Sprintf("the embedded log in %s cannot be written any more, and nothing is acknowledged from here on: %v; "+
		"see to the disk, then start again: what was acknowledged is there", e.Dir, e.Err)
}

// Unwrap returns the cause.
func (e *FailedError) Unwrap() error { return e.Err }

// errStopped is what a response meets whose broker has stopped.
var errStopped = errors.New("broker: it has stopped")

// halt is the end of a broker, by Close or by the first failure, whichever
// comes first. It happens once.
type halt struct {
	once sync.Once
	done chan struct{}
	err  error // written before done is closed, read after it
}

func newHalt() *halt { return &halt{done: make(chan struct{})} }

// stop ends the broker, with an error if it failed, and reports whether it was
// the first to do so.
func (h *halt) stop(err error) (first bool) {
	h.once.Do(func() {
		h.err, first = err, true
		close(h.done)
	})
	return first
}

func (h *halt) stopped() bool {
	select {
	case <-h.done:
		return true
	default:
		return false
	}
}

// cause returns why the broker failed; nil while it serves and after Close.
func (h *halt) cause() error {
	if !h.stopped() {
		return nil
	}
	return h.err
}
