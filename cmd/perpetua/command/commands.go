package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/launch"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/operate"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/tools"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/version"
)

// Exit codes of every command, as help lists them.
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

// subcommands lists all commands. Help and completion are derived from this table and from the output of each command for -h.
func subcommands() []subcommand {
	return []subcommand{
		{"run", "bring up everything on embedded defaults and serve", launch.Run},
		{"cluster", "two nodes of each role as processes of this machine, to try it out", launch.Cluster},
		{"serve", "serve on a given Kafka and Postgres", launch.Serve},
		{"follow", "follow a venue: verify its log, and answer reads from a database of this node's own", launch.Follow(tools.NewModel)},
		{"migrate", "create the topics and the database tables", launch.Migrate},
		{"config", "print the settings in force, without secrets; config check looks for mistakes", launch.Config},
		{"log", "print the records of a journal, checking the chain; log copy moves them, log archive, verify, trim and restore keep them in a bucket, log parquet writes them for analysts", tools.Log},
		{"receipt", "verify a receipt without the venue: receipt verify FILE", tools.Receipt},
		{"monitor", "compare the checkpoints of a transparency log at several places", tools.Monitor},
		{"liabilities", "liabilities verify checks the proof of what the venue owes a customer", tools.Liabilities},
		{"statement", "print a customer's statement of a period as CSV, JSON, or Parquet", tools.Statement},
		{"audit", "compare the read models with the log; audit verify verifies the log, audit what-if decides it under other parameters", tools.Audit},
		{"doctor", "check a deployment: brokers, topics, journals, Postgres, clock, disk, key store", tools.Doctor},
		{"rebuild", "make the read models anew beside the live ones, compare, switch", tools.Rebuild},
		{"admin", "what operators do, over REST; bootstrap; forget a lost log; take over", adminCommand},
		{"completion", "print the completion of a shell: bash, zsh or fish", completionCommand},
		{"version", "print the version, the commit, the log format and the rules", versionCommand},
	}
}

// nested lists the subcommands of a subcommand. Each has its own flags.
func nested(name string) []subcommand {
	switch name {
	case "admin":
		return []subcommand{
			{"bootstrap", "the first users and instruments, or new passwords", launch.Bootstrap},
			{"forget-log", "a journal that is lost, to begin anew", tools.ForgetLog},
			{"take-over", "a copy of a venue, to act in place of the other", tools.TakeOver},
			{"reader", "a database user who may read the read models", tools.Reader},
		}
	case "liabilities":
		return []subcommand{{"verify", "check a customer's proof of liabilities, offline", tools.VerifyLiabilities}}
	case "config":
		return []subcommand{{"check", "look for mistakes in the settings, and for misspelled variables", launch.Config}}
	case "audit":
		return []subcommand{
			{"verify", "verify the journals themselves: in the topics, in a file, or in an archive", tools.VerifyLog},
			{"what-if", "decide the journal trading again under other parameters of instruments", tools.WhatIf},
		}
	case "log":
		return []subcommand{
			{"copy", "copy the journals between data folders, brokers and files", tools.CopyLog},
			{"archive", "archive the journals in a bucket", tools.ArchiveLog},
			{"verify", "verify every record of an archive", tools.VerifyArchive},
			{"trim", "delete what is archived and needed by nothing from the journals", tools.TrimLog},
			{"restore", "append what the journals lack from the archive", tools.RestoreLog},
			{"compat", "check whether this build reads and applies every record, before a switch to it", tools.CompatLog},
			{"parquet", "write the journals as Parquet files for analysts", tools.ParquetLog},
		}
	case "receipt":
		return []subcommand{{"verify", "verify a receipt in a file", tools.VerifyReceipt}}
	}
	return nil
}

// dispatch runs the command that args name and returns the exit code.
func dispatch(ctx context.Context, args []string, std settings.IO) int {
	if len(args) == 0 {
		usage(std.Err)
		return exitUsage
	}
	switch args[0] {
	case "help", "-h", "--help":
		if len(args) > 1 { // perpetua help COMMAND
			return dispatch(ctx, append(args[1:], "-h"), std)
		}
		usage(std.Out)
		return exitDone
	case "-v", "--version":
		args[0] = "version"
	}
	for _, c := range subcommands() {
		if c.name != args[0] {
			continue
		}
		err := c.run(ctx, args[1:], std)
		name := c.called(args[1:])
		var wrong *settings.UsageError
		var refused *operate.Problem
		switch {
		case err == nil, errors.Is(err, flag.ErrHelp):
			return exitDone
		case errors.As(err, &wrong):
			fmt.Fprintf(std.Err, "perpetua %s: %s\n", name, wrong.Error())
			return exitUsage
		case errors.As(err, &refused):
			fmt.Fprintf(std.Err, "perpetua %s: %s\n", name, err.Error())
			return exitFailed
		default:
			fmt.Fprintf(std.Err, "perpetua %s: %s\n", name, oneLine(err.Error()))
			return exitFailed
		}
	}
	fmt.Fprintf(std.Err, "perpetua: unknown command %q\n\n", args[0])
	usage(std.Err)
	return exitUsage
}

// called returns the name of the command that the arguments select: the command's, followed by its subcommand's if they begin with one.
func (c subcommand) called(args []string) string {
	if len(args) > 0 && slices.ContainsFunc(nested(c.name), func(n subcommand) bool { return n.name == args[0] }) {
		return c.name + " " + args[0]
	}
	return c.name
}

// oneLine joins the lines of an error and drops repeated ones: pgx writes a line for each address that it tried.
func oneLine(text string) string {
	var lines []string
	seen := make(map[string]bool)
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimSpace(line); line != "" && !seen[line] {
			lines, seen[line] = append(lines, line), true
		}
	}
	return strings.ReplaceAll(strings.Join(lines, "; "), ":; ", ": ")
}

func usage(w io.Writer) {
	fmt.Fprint(w, "usage: perpetua COMMAND [flags]   (perpetua COMMAND -h lists the flags)\n\n")
	for _, c := range subcommands() {
		fmt.Fprintf(w, "  %-11s %s\n", c.name, c.summary)
	}
	fmt.Fprintf(w, `
Exit codes:
  %d  done
  %d  failed, or a check found an error
  %d  wrong command line or setting
A node that is stopped by Ctrl-C or SIGTERM shuts down in order and exits with %d. Results go to the standard output,
as JSON with --json; logs and errors go to the standard error.
`, exitDone, exitFailed, exitUsage, exitDone)
}

// adminCommand runs a command that does not use the REST interface, or else an operation of the operator.
func adminCommand(ctx context.Context, args []string, std settings.IO) error {
	if len(args) == 0 {
		operate.List(std.Err, "")
		fmt.Fprint(std.Err, "\nOn the log itself, without REST:\n")
		for _, c := range nested("admin") {
			fmt.Fprintf(std.Err, "  perpetua admin %-13s %s\n", c.name, c.summary)
		}
		return settings.Usagef("which?")
	}
	for _, c := range nested("admin") {
		if c.name == args[0] {
			return c.run(ctx, args[1:], std)
		}
	}
	return operate.Command(ctx, args, std)
}

// versionCommand prints the version of this build.
func versionCommand(_ context.Context, args []string, std settings.IO) error {
	var asJSON bool
	fs := flag.NewFlagSet("perpetua version", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	settings.JSONFlag(fs, &asJSON)
	switch err := fs.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(std.Err, "usage: perpetua version [flags]\n  --json\n        print the result as JSON\n")
		return err
	case err != nil:
		return settings.Usagef("%v", err)
	case fs.NArg() > 0:
		return settings.Usagef("unexpected argument %q", fs.Arg(0))
	}
	if asJSON {
		return std.PrintJSON(version.Current())
	}
	version.Current().Print(std.Out)
	return nil
}
