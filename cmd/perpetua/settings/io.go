package settings

import (
	"fmt"
	"io"
	"os"
	"time"
)

// IO is where a command reads and writes; tests give their own.
type IO struct {
	In       io.Reader
	Out, Err io.Writer
	Env      func(string) (string, bool) // looks up an environment variable
	Environ  func() []string             // lists the environment as NAME=value; nil to skip the search for misspelled names
	// PasswordMemory is what a new hash of a password takes, in KiB; 0 for what is safe. Tests that are not about passwords
	// take less: most of a venue's first start goes into hashes.
	PasswordMemory uint32
	// ClockAhead is how far the wall clock of this process's terms is ahead of the machine's; below 0 it is behind. Tests of what
	// falls due at an hour of the day set it, with --accept-clock.
	ClockAhead time.Duration
}

// StandardIO returns that of the process.
func StandardIO() IO {
	return IO{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.LookupEnv, Environ: os.Environ}
}

// UsageError is an error in the words of the command line: exit code 2.
type UsageError struct{ message string }

// Error says what was wrong.
func (e *UsageError) Error() string { return e.message }

// Usagef returns a UsageError with a formatted message.
func Usagef(format string, args ...any) error {
	return &UsageError{fmt.Sprintf(format, args...)}
}
