package settings

import (
	"errors"
	"flag"
	"io"
	"strings"
)

// ParseOwn reads the command line of a command that uses no settings. It returns the arguments before and after the flags. usage
// describes them for the help.
func ParseOwn(command, usage string, args []string, std IO, declare func(*flag.FlagSet)) (rest []string, err error) {
	fs := flag.NewFlagSet("perpetua "+command, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	declare(fs)
	for len(args) > 0 && (args[0] == "-" || !strings.HasPrefix(args[0], "-")) {
		rest, args = append(rest, args[0]), args[1:]
	}
	switch err := fs.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		PrintUsage(std, command, usage, flagsOf(fs))
		return nil, err
	case err != nil:
		return nil, FlagError(command, err)
	}
	return append(rest, fs.Args()...), nil
}
