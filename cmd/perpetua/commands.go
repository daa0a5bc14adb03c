package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/bench"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/launch"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/operate"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/tools"
)

// Exit codes of every command.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// subcommand is one verb of the binary.
type subcommand struct {
	name, summary string
	run           func(ctx context.Context, args []string, std settings.IO) error
}

func subcommands() []subcommand {
	return []subcommand{
		{"run", "bring up everything on embedded defaults and serve", launch.Run},
		{"cluster", "two nodes of each role as processes of this machine, to try it out", launch.Cluster},
		{"serve", "serve on a given Kafka and Postgres", launch.Serve},
		{"migrate", "create the topics and the database tables", launch.Migrate},
		{"config", "print the settings in force, without secrets", settings.Config},
		{"log", "print the records of a journal, checking the chain; log copy moves them", tools.Log},
		{"audit", "fold the trading journal and hold the read models against it", tools.Audit},
		{"bench", "measure the system beside its raw limits and rivals", benchCommand},
		{"rebuild", "make the read models anew beside the live ones, compare, switch", tools.Rebuild},
		{"admin", "what operators do, over REST; bootstrap users and instruments; forget a lost log", adminCommand},
	}
}

// dispatch runs the command that args name and returns the exit code.
func dispatch(ctx context.Context, args []string, std settings.IO) int {
	if len(args) == 0 || args[0] == "help" || args[0] == "-h" || args[0] == "--help" {
		usage(std.Err)
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
		var wrong *settings.UsageError
		switch {
		case err == nil, errors.Is(err, flag.ErrHelp):
			return exitDone
		case errors.As(err, &wrong):
			fmt.Fprintf(std.Err, "perpetua %s: %s\n", c.name, wrong.Error())
			return exitUsage
		default:
			fmt.Fprintf(std.Err, "perpetua %s: %v\n", c.name, err)
			return exitFailed
		}
	}
	fmt.Fprintf(std.Err, "perpetua: unknown command %q\n\n", args[0])
	usage(std.Err)
	return exitUsage
}

func usage(w io.Writer) {
	fmt.Fprintln(w, "usage: perpetua COMMAND [flags]   (perpetua COMMAND -h lists the flags)")
	fmt.Fprintln(w)
	for _, c := range subcommands() {
		fmt.Fprintf(w, "  %-9s %s\n", c.name, c.summary)
	}
}

// adminCommand runs one of the commands that do not go through the interface, or else an operation of the operator's.
func adminCommand(ctx context.Context, args []string, std settings.IO) error {
	if len(args) == 0 {
		operate.List(std.Err, "")
		fmt.Fprint(std.Err, `
On the log itself, and not by way of REST:
  perpetua admin bootstrap     the first users and instruments, or new passwords
  perpetua admin forget-log    a journal that is lost, to begin anew
`)
		return settings.Usagef("which?")
	}
	switch args[0] {
	case "bootstrap":
		return launch.Bootstrap(ctx, args[1:], std)
	case "forget-log":
		return tools.ForgetLog(ctx, args[1:], std)
	}
	return operate.Command(ctx, args, std)
}

// benchCommand measures the system beside what bounds it.
func benchCommand(ctx context.Context, args []string, std settings.IO) error {
	err := bench.Command(ctx, args, std.In, std.Out, std.Err)
	var wrong *bench.UsageError
	if errors.As(err, &wrong) {
		return settings.Usagef("%v", wrong)
	}
	return err
}
