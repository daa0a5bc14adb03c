package settings

import (
	"flag"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
)

// Group is a group of settings. The help of a command lists the groups that the command uses.
type Group int

// The groups of settings.
const (
	OfNode     Group = iota // interfaces and background work of a node
	OfSelf                  // identity of a node among several
	OfFolder                // the data folder
	OfDemo                  // the demo market
	OfBroker                // the embedded broker
	OfKafka                 // the brokers and topics
	OfWriter                // how records are appended
	OfPostgres              // the read models
	OfStores                // the bucket, the key store and the master key
	OfTrim                  // how far the log is trimmed, and the witnesses
	OfLogging               // the process's own log
)

// groupsOf returns the groups of settings that a command uses, or nil for all. The default suits most tools: the log, the read models and
// the stores of a venue.
func groupsOf(command string) []Group {
	switch command {
	case "run", "config", "config check":
		return nil
	case "serve":
		return []Group{OfFolder, OfSelf, OfNode, OfKafka, OfWriter, OfPostgres, OfStores, OfTrim, OfLogging}
	case "follow":
		return []Group{OfFolder, OfNode, OfBroker, OfKafka, OfPostgres, OfStores, OfLogging}
	case "cluster":
		return []Group{OfFolder, OfNode, OfDemo, OfBroker, OfKafka, OfWriter, OfPostgres, OfStores, OfTrim, OfLogging}
	case "migrate":
		return []Group{OfKafka, OfPostgres, OfLogging}
	case "log", "audit", "audit verify", "audit what-if", "rebuild", "admin forget-log":
		return []Group{OfFolder, OfKafka, OfPostgres, OfStores}
	case "statement":
		return []Group{OfFolder, OfPostgres}
	case "log trim":
		return []Group{OfFolder, OfKafka, OfPostgres, OfStores, OfTrim}
	case "log copy":
		return []Group{OfKafka, OfWriter, OfPostgres, OfStores}
	case "log restore":
		return []Group{OfFolder, OfKafka, OfWriter, OfPostgres, OfStores, OfLogging}
	case "admin bootstrap":
		return []Group{OfFolder, OfDemo, OfKafka, OfWriter, OfPostgres, OfStores, OfLogging}
	}
	return []Group{OfFolder, OfKafka, OfPostgres, OfStores, OfLogging}
}

// flagsOf returns the flags of a set.
func flagsOf(fs *flag.FlagSet) (out []*flag.Flag) {
	fs.VisitAll(func(f *flag.Flag) { out = append(out, f) })
	return out
}

// printHelp writes the help of a command: its own flags, then the settings that it uses.
func printHelp(w io.Writer, command string, own []*flag.Flag) {
	fmt.Fprintf(w, "usage: perpetua %s [flags]\n", command)
	for _, f := range own {
		value, usage := flag.UnquoteUsage(f)
		preset := f.DefValue
		if value == "" || preset == "0" || preset == strconv.Itoa(math.MaxInt64) { // off, or no limit
			preset = ""
		}
		printFlag(w, f.Name, value, usage, preset)
	}
	groups := groupsOf(command)
	fmt.Fprint(w, "\nSettings, as flags or in the environment:\n")
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
		fmt.Fprintf(w, "\nOther settings are accepted and have no effect here. perpetua config -h lists all settings.\n")
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
