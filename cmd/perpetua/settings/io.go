package settings

import (
	"fmt"
	"io"
	"os"
)

// IO is where a command reads and writes; tests give their own.
type IO struct {
	In       io.Reader
	Out, Err io.Writer
	Env      func(string) (string, bool) // looks up an environment variable
}

// StandardIO returns that of the process.
func StandardIO() IO {
	return IO{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.LookupEnv}
}

// UsageError is an error in the words of the command line: exit code 2.
type UsageError struct{ message string }

// Error says what was wrong.
func (e *UsageError) Error() string { return e.message }

// Usagef returns a UsageError with a formatted message.
func Usagef(format string, args ...any) error {
	return &UsageError{fmt.Sprintf(format, args...)}
}
