package settings

import (
	"fmt"
	"io"
	"os"
	"time"
)

// IO holds the input and output of a command. Tests replace it.
type IO struct {
	In       io.Reader
	Out, Err io.Writer
	Env      func(string) (string, bool) // looks up an environment variable
	Environ  func() []string             // lists the environment as NAME=value; nil to skip the search for misspelled names
	// PasswordMemory is the memory for a new password hash, in KiB; 0 for a safe default. Tests that do not concern
	// passwords use less, because hashing takes most of the time of a venue's first start.
	PasswordMemory uint32
	// ClockAhead is the difference between the wall clock of this process's terms and the system clock; negative if it
	// is behind. Tests of work that is due at an hour of the day set it, with --accept-clock.
	ClockAhead time.Duration
	// ArchiveRange is the number of records of a range of the archive; 0 for the usual one. Tests set it.
	ArchiveRange int64
	// SegmentBytes is the size of a segment of the embedded broker; 0 for its default. Tests of trims set it.
	SegmentBytes int
}

// StandardIO returns the input and output of the process.
func StandardIO() IO {
	return IO{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.LookupEnv, Environ: os.Environ}
}

// Progress returns a function that prints a line about the progress of a command, or nil if Err is not a terminal.
func (i IO) Progress() func(line string) {
	terminal, ok := i.Err.(*os.File)
	if !ok {
		return nil
	}
	if about, err := terminal.Stat(); err != nil || about.Mode()&os.ModeCharDevice == 0 {
		return nil
	}
	return func(line string) { fmt.Fprintln(terminal, line) }
}

// UsageError is an error in the command line or a setting. Its exit code is 2.
type UsageError struct{ message string }

// Error returns the message.
func (e *UsageError) Error() string { return e.message }

// Usagef returns a UsageError with a formatted message.
func Usagef(format string, args ...any) error {
	return &UsageError{fmt.Sprintf(format, args...)}
}
