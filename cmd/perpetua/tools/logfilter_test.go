package tools

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
)

// TestFiltersThatNothingPasses: `perpetua log` refuses a filter that no record can pass, and says what was probably meant.
func TestFiltersThatNothingPasses(t *testing.T) {
	for _, c := range []struct {
		journal string
		f       logFilter
		says    string // "" if it is a good filter
	}{
		{"trading", logFilter{to: math.MaxInt64}, ""},
		{"trading", logFilter{to: 9, kind: "order.place"}, ""},
		{"trading", logFilter{to: 9, kind: "trade.executed"}, ""},
		{"onboarding", logFilter{to: 9, kind: "engine.step"}, ""},
		{"identity", logFilter{to: 9, kind: "journal.genesis"}, ""},
		{"trading", logFilter{to: 9, kind: "order.opend"}, "did you mean order.opened?"},
		{"trading", logFilter{to: 9, kind: "user.changed"}, "did you mean --journal identity?"},
		{"trading", logFilter{to: 9, kind: "nope"}, `--type takes the type of a command or an event of the journal trading`},
		{"trading", logFilter{from: -1, to: 9}, "--from takes"},
		{"trading", logFilter{from: 10, to: 9}, "--to is"},
	} {
		j, err := journals.All().Of(c.journal)
		if err != nil {
			t.Fatal(err)
		}
		var usage *settings.UsageError
		switch err := c.f.check(j); {
		case c.says == "" && err != nil:
			t.Errorf("%s %+v: %v", c.journal, c.f, err)
		case c.says != "" && (!errors.As(err, &usage) || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%s %+v: %v, without %q", c.journal, c.f, err, c.says)
		}
	}
}

// TestEveryTypeCanBeFiltered: each type in the records of the stories is one that --type takes.
func TestEveryTypeCanBeFiltered(t *testing.T) {
	of := regexp.MustCompile(`"type":\s*"([a-z_]+\.[a-z_]+)"`)
	for _, j := range journals.All() {
		types := recordTypes(j)
		files, err := filepath.Glob("../../../schemas/events/" + j.Name() + "/golden/*")
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", j.Name(), len(files), err)
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, found := range of.FindAllSubmatch(content, -1) {
				if !slices.Contains(types, string(found[1])) {
					t.Errorf("%s: %s", file, found[1])
				}
			}
		}
	}
}
