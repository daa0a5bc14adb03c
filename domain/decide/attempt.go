package decide

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
)

// ErrNoStep reports that a step or DueSetAside was decided and that nothing is due.
var ErrNoStep = errors.New("the step does nothing")

// PanicError is the error of a decision in which the rules panicked.
type PanicError struct {
	Value any
	Stack string
}

// panicPrefix begins the text of a PanicError.
const panicPrefix = "panic: "

// Error returns the text of the panic. Logs contain it: see CauseOf.
func (e *PanicError) Error() string { return fmt.Sprint(panicPrefix, e.Value) }

// IsPanicCause reports whether a cause is that of a PanicError.
func IsPanicCause(cause string) bool { return strings.HasPrefix(cause, panicPrefix) }

// Guard runs a decision and turns a panic of the rules into a *PanicError. Decide and Step never change the state, so the
// state is still valid after a panic.
func Guard(run func() (Decision, error)) (d Decision, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &PanicError{p, string(debug.Stack())}
		}
	}()
	return run()
}

// GuardStep runs State.Step or State.SetAside like Guard. It returns ErrNoStep if the decision has no events.
func GuardStep(run func() Decision) (Decision, error) {
	d, err := Guard(func() (Decision, error) { return run(), nil })
	if err == nil && len(d.Events) == 0 {
		err = ErrNoStep
	}
	return d, err
}

// maxCause is the number of bytes of an error's text that a record stores.
const maxCause = 1024

// CauseOf returns the text of an error as DueSetAside stores it: valid UTF-8, cut to maxCause bytes first. The rules may
// panic with arbitrary text.
func CauseOf(err error) string {
	text := err.Error()
	return strings.ToValidUTF8(text[:min(len(text), maxCause)], "\uFFFD")
}
