package launch

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/node"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
)

// Config prints every setting with its value and source. For a secret it prints only whether it is set.
func Config(_ context.Context, args []string, std settings.IO) error {
	if len(args) > 0 && args[0] == "check" {
		return CheckConfig(args[1:], std)
	}
	var asJSON bool
	s, err := settings.Parse("config", args, std, func(fs *flag.FlagSet) { settings.JSONFlag(fs, &asJSON) })
	if err != nil {
		return err
	}
	rows := s.Rows()
	if asJSON {
		return std.PrintJSON(rows)
	}
	for _, r := range rows {
		fmt.Fprintf(std.Out, "%-18s %-40s # %s\n", r.Name, r.Value, r.Source)
	}
	return nil
}

// checked is the JSON output of CheckConfig.
type checked struct {
	OK       bool               `json:"ok"`
	Problems []string           `json:"problems"`
	Unknown  []settings.Unknown `json:"unknown_variables"`
}

// CheckConfig validates the settings in force as a node does at its start, and looks for misspelled variables in the environment. It
// opens no connection. It fails if it finds anything, also what a node only warns of.
func CheckConfig(args []string, std settings.IO) error {
	var asJSON bool
	s, err := settings.Parse("config check", args, std, func(fs *flag.FlagSet) { settings.JSONFlag(fs, &asJSON) })
	if errors.Is(err, flag.ErrHelp) {
		return err
	}
	asJSON = asJSON || slices.Contains(args, "--json") // a wrong variable ends Parse before it reads flags
	found := checked{Problems: []string{}, Unknown: []settings.Unknown{}}
	if err != nil {
		found.Problems = append(found.Problems, err.Error())
	} else {
		for _, wrong := range append(node.CheckSettings(s), s.Doubtful()...) {
			found.Problems = append(found.Problems, wrong.Error())
		}
		found.Unknown = append(found.Unknown, s.Unknown()...)
	}
	n := len(found.Problems) + len(found.Unknown)
	found.OK = n == 0
	if asJSON {
		if err := std.PrintJSON(found); err != nil {
			return err
		}
	} else {
		for _, p := range found.Problems {
			fmt.Fprintln(std.Out, p)
		}
		for _, u := range found.Unknown {
			fmt.Fprintln(std.Out, u)
		}
	}
	switch {
	case n > 0:
		return fmt.Errorf("mistakes in the settings: %d", n)
	case !asJSON:
		fmt.Fprintln(std.Out, "the settings can be used")
	}
	return nil
}
