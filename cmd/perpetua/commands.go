package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

// Exit codes of every command.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// stdio is where a command reads and writes; tests give their own.
type stdio struct {
	in       io.Reader
	out, err io.Writer
	env      func(string) (string, bool)
}

func standardIO() stdio {
	return stdio{in: os.Stdin, out: os.Stdout, err: os.Stderr, env: os.LookupEnv}
}

// usageError is an error in the words of the command line: exit code 2.
type usageError struct{ message string }

func (e *usageError) Error() string { return e.message }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}

// subcommand is one verb of the binary.
type subcommand struct {
	name, summary string
	run           func(ctx context.Context, args []string, std stdio) error
}

func subcommands() []subcommand {
	return []subcommand{
		{"run", "bring up everything on embedded defaults and serve", runCommand},
		{"cluster", "two nodes of each role as processes of this machine, to try it out", clusterCommand},
		{"serve", "serve on a given Kafka and Postgres", serveCommand},
		{"migrate", "create the topics and the database tables", migrateCommand},
		{"config", "print the settings in force, without secrets", configCommand},
		{"log", "print the records of a journal as JSON lines, checking the chain", logCommand},
		{"audit", "fold the trading journal and hold the read models against it", auditCommand},
		{"bench", "measure the system beside its raw limits and rivals", benchCommand},
		{"rebuild", "make the read models anew beside the live ones, compare, switch", rebuildCommand},
		{"admin", "bootstrap users and instruments; forget a lost log", adminCommand},
	}
}

// dispatch runs the command that args name and returns the exit code.
func dispatch(ctx context.Context, args []string, std stdio) int {
	if len(args) == 0 || args[0] == "help" || args[0] == "-h" || args[0] == "--help" {
		usage(std.err)
		if len(args) == 0 {
			return exitUsage
		}
		return exitDone
	}
	for _, c := range subcommands() {
		if c.name != args[0] {
			continue
		}
		err := c.run(ctx, args[1:], std)
		var wrong *usageError
		switch {
		case err == nil, errors.Is(err, flag.ErrHelp):
			return exitDone
		case errors.As(err, &wrong):
			fmt.Fprintf(std.err, "perpetua %s: %s\n", c.name, wrong.message)
			return exitUsage
		default:
			fmt.Fprintf(std.err, "perpetua %s: %v\n", c.name, err)
			return exitFailed
		}
	}
	fmt.Fprintf(std.err, "perpetua: unknown command %q\n\n", args[0])
	usage(std.err)
	return exitUsage
}

func usage(w io.Writer) {
	fmt.Fprintln(w, "usage: perpetua COMMAND [flags]   (perpetua COMMAND -h lists the flags)")
	fmt.Fprintln(w)
	for _, c := range subcommands() {
		fmt.Fprintf(w, "  %-9s %s\n", c.name, c.summary)
	}
}
