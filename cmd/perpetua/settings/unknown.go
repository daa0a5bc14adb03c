package settings

import (
	"log/slog"
	"slices"
	"strings"
)

// Unknown is a variable of the environment that has the prefix of settings and matches none.
type Unknown struct {
	Variable string `json:"variable"`
	// Nearest is the known variable with the most similar name, or "" if no name is similar.
	Nearest string `json:"nearest,omitzero"`
}

// String returns a message with the suggestion.
func (u Unknown) String() string {
	if u.Nearest == "" {
		return u.Variable + " is not a setting"
	}
	return u.Variable + " is not a setting: did you mean " + u.Nearest + "?"
}

const (
	prefix = "PERPETUA_"
	// testPrefix is the prefix of variables that only tests read.
	testPrefix = prefix + "TEST_"
)

// otherVariables returns the known variables that are not settings.
func otherVariables() []string {
	return []string{prefix + "ADMIN_URL", prefix + "ADMIN_USER", prefix + "ADMIN_PASSWORD", prefix + "ADMIN_TOKEN",
		prefix + "CONFORMANCE_REPORT", prefix + "UPDATE_GOLDEN"}
}

// unknownVariables returns the variables with the prefix of settings that are unknown, sorted by name.
func unknownVariables(std IO) (out []Unknown) {
	if std.Environ == nil {
		return nil
	}
	known := otherVariables()
	for _, d := range Table() {
		known = append(known, d.Variable())
	}
	for _, pair := range std.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		if strings.HasPrefix(name, prefix) && !strings.HasPrefix(name, testPrefix) && !slices.Contains(known, name) {
			out = append(out, Unknown{name, Nearest(name, known, (len(name)-len(prefix))/3)})
		}
	}
	slices.SortFunc(out, func(a, b Unknown) int { return strings.Compare(a.Variable, b.Variable) })
	return out
}

// Nearest returns the known name with the smallest edit distance, or "" if none is within that many edits.
func Nearest(name string, known []string, within int) (best string) {
	least := within + 1
	for _, k := range known {
		if n := edits(name, k); n < least {
			best, least = k, n
		}
	}
	return best
}

// edits returns the Levenshtein distance of two texts in bytes.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// WarnUnknown logs a warning for every unknown variable.
func (s *Settings) WarnUnknown(log *slog.Logger) {
	for _, u := range s.unknown {
		log.Warn("unknown setting in the environment", "variable", u.Variable, "nearest", u.Nearest)
	}
}
