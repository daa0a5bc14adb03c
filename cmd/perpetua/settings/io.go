package settings

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// IO holds the input and output of a command. Tests replace it.
type IO struct {
	In       io.Reader
	Out, Err io.Writer
	Env      func(string) (string, bool) // looks up an environment variable
	Environ  func() []string             // lists the environment as NAME=value; nil to skip the search for misspelled names
	About    string                      // description of the command, for its help; may be empty
	Overrides
}

// Overrides holds what no flag sets. Tests set it; a zero field stands for the usual value.
type Overrides struct {
	// PasswordMemory is the memory for a new password hash, in KiB. Tests that do not concern passwords use less, because
	// hashing takes most of the time of a venue's first start.
	PasswordMemory uint32
	// ClockAhead is the difference between the wall clock of this process's terms and the system clock; negative if it
	// is behind. Tests of work that is due at an hour of the day set it, with --accept-clock.
	ClockAhead   time.Duration
	ArchiveRange int64 // the number of records of a range of the archive
	SegmentBytes int   // of a segment of the embedded broker
}

// StandardIO returns the input and output of the process.
func StandardIO() IO {
	return IO{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.LookupEnv, Environ: os.Environ}
}

// progressEvery is the time between two lines of progress that are not printed on a terminal.
const progressEvery = 30 * time.Second

// Progress returns a function that prints a line about the progress of a command to Err. If Err is not a terminal, a command that
// takes long prints one line in 30 seconds, and a shorter one prints none.
func (i IO) Progress() func(line string) {
	every := progressEvery
	if f, ok := i.Err.(*os.File); ok {
		if about, err := f.Stat(); err == nil && about.Mode()&os.ModeCharDevice != 0 {
			every = 0
		}
	}
	var mu sync.Mutex
	last := time.Now()
	return func(line string) {
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now(); now.Sub(last) >= every {
			last = now
			fmt.Fprintln(i.Err, line)
		}
	}
}

// UsageError is an error in the command line or a setting. Its exit code is 2.
type UsageError struct{ message string }

// Error returns the message.
func (e *UsageError) Error() string { return e.message }

// Usagef returns a UsageError with a formatted message.
func Usagef(format string, args ...any) error {
	return &UsageError{fmt.Sprintf(format, args...)}
}
