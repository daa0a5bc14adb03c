package broker

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
)

// FailedError reports that the log can no longer be written. The broker acknowledges nothing after it. Everything
// acknowledged before is on disk.
type FailedError struct {
	Dir string
	Err error
}

// Error implements error.
func (e *FailedError) Error() string {
	return fmt.Sprintf("the embedded log in %s cannot be written any more, and nothing is acknowledged from here on: %v; "+
		"%s, then start again: what was acknowledged is there", e.Dir, e.Err, remedy(e.Err))
}

// remedy says what to do about an error. It compares texts, since kfake logs errors as texts.
func remedy(err error) string {
	if text := err.Error(); strings.Contains(text, syscall.EMFILE.Error()) {
		return "raise the limit of open files (ulimit -n)"
	} else if strings.Contains(text, syscall.EFBIG.Error()) {
		return "raise the limit of the size of files (ulimit -f)"
	}
	return "see to the disk"
}

// Unwrap returns the cause.
func (e *FailedError) Unwrap() error { return e.Err }

// errStopped is the error of a response that is written after the broker stopped.
var errStopped = errors.New("broker: it has stopped")

// halt records the end of a broker, by Close or by its first failure. It happens once.
type halt struct {
	once sync.Once
	done chan struct{}
	err  error // written before done is closed, read afterwards
}

func newHalt() *halt { return &halt{done: make(chan struct{})} }

// stop ends the broker, with an error if it failed, and reports whether this call was the first.
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

// cause returns the error that stopped the broker. It is nil while the broker serves and after Close.
func (h *halt) cause() error {
	if !h.stopped() {
		return nil
	}
	return h.err
}
