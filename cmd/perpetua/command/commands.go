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
		{"run", "start a venue in one process, with an embedded broker and an embedded Postgres", launch.Run},
		{"cluster", "start a venue of two nodes in each role on this machine, to try out failures", launch.Cluster},
		{"serve", "start one node on a given Kafka and Postgres", launch.Serve},
		{"follow", "follow a venue: verify its log, and answer reads from a separate database", launch.Follow(tools.NewModel)},
		{"migrate", "create the topics and the database tables", launch.Migrate},
		{"config", "print the settings in force, without secrets", launch.Config},
		{"log", "print the records of a journal, and check its hash chain", tools.Log},
		{"receipt", "verify receipts", tools.Receipt},
		{"monitor", "compare the checkpoints that several places serve for one transparency log", tools.Monitor},
		{"liabilities", "verify proofs of liabilities", tools.Liabilities},
		{"statement", "print a customer's statement of a period as CSV, JSON, or Parquet", tools.Statement},
		{"audit", "compare the tables in Postgres with the log", tools.Audit},
		{"doctor", "check a deployment: brokers, topics, journals, Postgres, clock, disk, key store", tools.Doctor},
		{"rebuild", "compute the tables again from the log, and correct the live ones", tools.Rebuild},
		{"admin", "run an operator's action over REST; perpetua admin help lists them", adminCommand},
		{"completion", "print the completion script for bash, zsh, or fish", completionCommand},
		{"version", "print the version, the commit, the log format, and the rules", versionCommand},
	}
}

// nested lists the subcommands of a subcommand. Each has its own flags.
func nested(name string) []subcommand {
	switch name {
	case "admin":
		return []subcommand{
			{"bootstrap", "create the first users and instruments, or new passwords", launch.Bootstrap},
			{"forget-log", "discard what is known of a lost journal, so that a new one can begin", tools.ForgetLog},
			{"take-over", "let a copy of a venue act in place of the original", tools.TakeOver},
			{"reader", "create a database user who may query the tables, or a new password", tools.Reader},
		}
	case "liabilities":
		return []subcommand{{"verify", "verify a customer's proof of liabilities, without the venue", tools.VerifyLiabilities}}
	case "config":
		return []subcommand{{"check", "look for mistakes in the settings, and for misspelled variables", launch.Config}}
	case "audit":
		return []subcommand{
			{"verify", "verify the journals themselves, in the topics, a file, or an archive", tools.VerifyLog},
			{"what-if", "decide the journal trading again with other parameters of instruments", tools.WhatIf},
		}
	case "log":
		return []subcommand{
			{"copy", "copy journals between data folders, brokers, and files", tools.CopyLog},
			{"archive", "archive journals in a bucket", tools.ArchiveLog},
			{"verify", "verify every record of an archive", tools.VerifyArchive},
			{"trim", "delete archived records that nothing needs from the journals", tools.TrimLog},
			{"restore", "append the records that the journals lack, from the archive", tools.RestoreLog},
			{"compat", "check whether this build reads and applies every record, before a switch to it", tools.CompatLog},
			{"parquet", "write journals as Parquet files for analysts", tools.ParquetLog},
		}
	case "receipt":
		return []subcommand{{"verify", "verify a receipt, without the venue", tools.VerifyReceipt}}
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
		name := c.called(args[1:])
		std.About = about(name)
		err := c.run(ctx, args[1:], std)
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
	fmt.Fprintf(std.Err, "perpetua: there is no command %q (perpetua help lists the commands)\n", args[0])
	return exitUsage
}

// called returns the name of the command that the arguments select: the command's, followed by its subcommand's if they begin with one.
func (c subcommand) called(args []string) string {
	if len(args) > 0 && slices.ContainsFunc(nested(c.name), func(n subcommand) bool { return n.name == args[0] }) {
		return c.name + " " + args[0]
	}
	return c.name
}

// about returns the description of a command for its help: its summary, and its subcommands with theirs.
func about(name string) string {
	var out strings.Builder
	for _, c := range subcommands() {
		for _, n := range nested(c.name) {
			if c.name+" "+n.name == name {
				return n.summary
			}
		}
		if c.name != name {
			continue
		}
		out.WriteString(c.summary)
		if len(nested(name)) > 0 {
			fmt.Fprintf(&out, "\n\nSubcommands, each with flags that -h lists:")
		}
		for _, n := range nested(name) {
			fmt.Fprintf(&out, "\n  %-20s  %s", name+" "+n.name, n.summary)
		}
	}
	return out.String()
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
	fmt.Fprint(w, `usage: perpetua COMMAND [flags]

Start with perpetua run. perpetua COMMAND -h lists the flags and settings of a command.

`)
	for _, c := range subcommands() {
		fmt.Fprintf(w, "  %-18s  %s\n", c.name, c.summary)
		for _, n := range nested(c.name) {
			fmt.Fprintf(w, "  %-18s  %s\n", c.name+" "+n.name, n.summary)
		}
	}
	fmt.Fprintf(w, `
Exit codes:
  %d  done
  %d  failed, or a check found an error
  %d  wrong command line or setting

A node that is stopped by Ctrl-C, SIGTERM, or SIGHUP exits with %d. Results go to the standard output, as JSON with --json. Logs and
errors go to the standard error.
`, exitDone, exitFailed, exitUsage, exitDone)
}

// adminCommand runs a command that does not use the REST interface, or else an operation of the operator.
func adminCommand(ctx context.Context, args []string, std settings.IO) error {
	if len(args) == 0 {
		return settings.Usagef("name a group and a verb, such as users list (perpetua admin help lists them), or one of %s", strings.Join(withoutREST(), ", "))
	}
	if args[0] == "help" || args[0] == "-h" || args[0] == "--help" {
		operate.List(std.Err, "")
		fmt.Fprint(std.Err, "\nThese need no running venue, but the settings of a node:\n\n")
		for _, c := range nested("admin") {
			fmt.Fprintf(std.Err, "  %-10s  %s\n", c.name, c.summary)
		}
		return flag.ErrHelp
	}
	for _, c := range nested("admin") {
		if c.name == args[0] {
			return c.run(ctx, args[1:], std)
		}
	}
	return operate.Command(ctx, args, std)
}

// withoutREST returns the names of the commands of admin that are not operations over REST.
func withoutREST() (names []string) {
	for _, c := range nested("admin") {
		names = append(names, c.name)
	}
	return names
}

// versionCommand prints the version of this build.
func versionCommand(_ context.Context, args []string, std settings.IO) error {
	var asJSON bool
	rest, err := settings.ParseOwn("version", "[flags]", args, std, func(fs *flag.FlagSet) { settings.JSONFlag(fs, &asJSON) })
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return settings.Usagef("unexpected argument %q", rest[0])
	}
	if asJSON {
		return std.PrintJSON(version.Current())
	}
	version.Current().Print(std.Out)
	return nil
}
