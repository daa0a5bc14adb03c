// Package altered is perpetua as the end-to-end tests run it: environment variables change settings that are constant in
// production.
package altered

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/command"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
)

// The variables that Main reads.
const (
	// ClockAhead is a duration by which the clock of the process is ahead of the machine's. It may be negative.
	ClockAhead = "PERPETUA_TEST_CLOCK_AHEAD"
	// CheapPasswords makes the process hash passwords at next to no cost if it is not empty.
	CheapPasswords = "PERPETUA_TEST_CHEAP_PASSWORDS"
	// ArchiveRange is the number of records in a range of an archive.
	ArchiveRange = "PERPETUA_TEST_ARCHIVE_RANGE"
	// SegmentBytes is the size of a segment of the embedded broker.
	SegmentBytes = "PERPETUA_TEST_SEGMENT_BYTES"
)

// Main runs a command line of perpetua with the variables of the environment, and returns the exit code. It panics if the
// value of a variable is invalid.
func Main(args []string) int {
	std := settings.StandardIO()
	if os.Getenv(CheapPasswords) != "" {
		std.PasswordMemory = 32
	}
	std.ClockAhead = read(ClockAhead, std.ClockAhead, time.ParseDuration)
	std.ArchiveRange = read(ArchiveRange, std.ArchiveRange, func(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) })
	std.SegmentBytes = read(SegmentBytes, std.SegmentBytes, strconv.Atoi)
	return command.Main(args, std)
}

// read returns the value of a variable, or otherwise if it is not set.
func read[T any](variable string, otherwise T, parse func(string) (T, error)) T {
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	value, err := parse(text)
	if err != nil {
		panic(fmt.Errorf("%s: %w", variable, err))
	}
	return value
}
