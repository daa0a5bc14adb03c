package settings

import (
	"flag"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Group is a group of settings. The help of a command lists the groups that the command uses.
type Group int

// The groups of settings.
const (
	OfNode     Group = iota // interfaces and background work of a node of the venue, or of one that follows it
	OfVenue                 // those that only a node of the venue has
	OfSelf                  // identity of a node among several
	OfFolder                // the data folder
	OfDemo                  // the demo market
	OfBroker                // the embedded broker
	OfKafka                 // the brokers and topics
	OfWriter                // how records are appended
	OfPostgres              // the read models
	OfStores                // the buckets
	OfKeys                  // the key store and the master key
	OfArchive               // the locks of the archive
	OfReader                // the key of an archive that was made for another reader than the venue
	OfAutoTrim              // whether a node trims the log
	OfTrim                  // how far the log is trimmed
	OfQuorum                // the cosignatures that a trim needs
	OfWitness               // the witnesses
	OfLogging               // the process's own log
)

// groupsOf returns the groups of settings that a command uses, or nil for all. The default suits most tools: the log, the read models and
// the stores of a venue.
func groupsOf(command string) []Group {
	switch command {
	case "run", "config", "config check":
		return nil
	case "serve":
		return []Group{OfFolder, OfSelf, OfNode, OfVenue, OfKafka, OfWriter, OfPostgres, OfStores, OfKeys, OfArchive, OfAutoTrim, OfTrim, OfQuorum, OfWitness, OfLogging}
	case "follow":
		return []Group{OfFolder, OfNode, OfBroker, OfKafka, OfPostgres, OfStores, OfReader, OfAutoTrim, OfTrim, OfWitness, OfLogging}
	case "cluster":
		return []Group{OfFolder, OfNode, OfVenue, OfDemo, OfBroker, OfKafka, OfWriter, OfPostgres, OfStores, OfKeys, OfArchive, OfAutoTrim, OfTrim, OfQuorum, OfWitness, OfLogging}
	case "migrate":
		return []Group{OfKafka, OfPostgres, OfLogging}
	case "log", "audit", "audit verify", "audit what-if", "rebuild", "admin forget-log":
		return []Group{OfFolder, OfKafka, OfPostgres, OfStores, OfReader, OfKeys}
	case "doctor":
		return []Group{OfFolder, OfKafka, OfPostgres, OfStores, OfReader, OfKeys, OfLogging}
	case "statement":
		return []Group{OfFolder, OfPostgres}
	case "log archive":
		return []Group{OfFolder, OfKafka, OfPostgres, OfStores, OfKeys, OfArchive, OfLogging}
	case "log trim":
		return []Group{OfFolder, OfKafka, OfPostgres, OfStores, OfReader, OfKeys, OfTrim, OfQuorum, OfWitness}
	case "log copy":
		return []Group{OfKafka, OfWriter, OfPostgres, OfStores, OfKeys}
	case "log restore":
		return []Group{OfFolder, OfKafka, OfWriter, OfPostgres, OfStores, OfKeys, OfLogging}
	case "admin bootstrap":
		return []Group{OfFolder, OfDemo, OfKafka, OfWriter, OfPostgres, OfStores, OfKeys, OfLogging}
	}
	return []Group{OfFolder, OfKafka, OfPostgres, OfStores, OfKeys, OfLogging}
}

// flagsOf returns the flags of a set.
func flagsOf(fs *flag.FlagSet) (out []*flag.Flag) {
	fs.VisitAll(func(f *flag.Flag) { out = append(out, f) })
	return out
}

// PrintUsage writes the beginning of the help of a command: its usage, its description, and its own flags. arguments describes what
// follows the name of the command.
func PrintUsage(std IO, command, arguments string, flags []*flag.Flag) {
	fmt.Fprintf(std.Err, "usage: perpetua %s %s\n", command, arguments)
	if std.About != "" {
		fmt.Fprintf(std.Err, "\n%s\n", std.About)
	}
	if len(flags) > 0 {
		fmt.Fprint(std.Err, "\nFlags:\n")
	}
	for _, f := range flags {
		value, usage := flag.UnquoteUsage(f)
		preset := f.DefValue
		if value == "" || slices.Contains([]string{"0", "0s", "-1", strconv.Itoa(math.MaxInt64)}, preset) { // off, or no limit
			preset = ""
		}
		printFlag(std.Err, f.Name, value, usage, preset)
	}
}

// invalidValue matches the beginning of the flag package's errors about a value, up to the hyphen before the name of the flag.
var invalidValue = regexp.MustCompile(`^(invalid (?:boolean )?value "(?:[^"\\]|\\.)*" for (?:flag )?)-`)

// FlagError returns the usage error for a command line that the flag package refuses.
func FlagError(command string, err error) error {
	text := err.Error()
	if name, ok := strings.CutPrefix(text, "flag provided but not defined: -"); ok {
		text = "there is no flag --" + name
	}
	text = strings.Replace(text, "flag needs an argument: -", "a value is needed after --", 1)
	text = invalidValue.ReplaceAllString(text, "${1}--")
	return Usagef("%s (perpetua %s -h lists the flags)", text, command)
}

// printHelp writes the help of a command: its own flags, then the settings that it uses.
func printHelp(std IO, command string, flags []*flag.Flag) {
	w := std.Err
	PrintUsage(std, command, "[flags]", flags)
	groups := groupsOf(command)
	fmt.Fprint(w, "\nSettings, each a flag or a variable of the environment:\n")
	for _, d := range Table() {
		if groups != nil && !slices.Contains(groups, d.Of) {
			continue
		}
		value, preset := "string", d.preset
		if d.toggle != nil {
			value = ""
			if preset == "false" {
				preset = ""
			}
		}
		printFlag(w, d.Name, value, d.usage+" [$"+d.Variable()+"]", preset)
	}
	if groups != nil {
		fmt.Fprintf(w, "\nThe command accepts all other settings too and ignores them. perpetua config -h lists them.\n")
	}
}

func printFlag(w io.Writer, name, value, usage, preset string) {
	if value != "" {
		name += " " + value
	}
	fmt.Fprintf(w, "  --%s\n        %s", name, usage)
	if preset != "" {
		fmt.Fprintf(w, " (default %s)", preset)
	}
	fmt.Fprintln(w)
}
