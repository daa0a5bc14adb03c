package settings

import (
	"encoding/json"
	"flag"
)

// JSONFlag declares the flag --json.
func JSONFlag(fs *flag.FlagSet, asJSON *bool) {
	fs.BoolVar(asJSON, "json", false, "print the result as JSON")
}

// PrintJSON writes a value to the standard output as indented JSON.
func (i IO) PrintJSON(v any) error {
	out := json.NewEncoder(i.Out)
	out.SetIndent("", "  ")
	out.SetEscapeHTML(false)
	return out.Encode(v)
}

// Row is a setting with its value in force.
type Row struct {
	Name   string `json:"name"`
	Value  string `json:"value"` // "(set)" for a secret
	Source string `json:"source"`
}

// Rows returns all settings in force, in the order of Table.
func (s *Settings) Rows() (out []Row) {
	for _, d := range Table() {
		v := d.Value(s)
		if d.secret && v != "" {
			v = "(set)"
		}
		out = append(out, Row{d.Name, v, s.sources[d.Name]})
	}
	return out
}

// Unknown returns the unknown variables of the environment.
func (s *Settings) Unknown() []Unknown { return s.unknown }
