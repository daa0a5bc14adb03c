package spec

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var documents = map[string]string{"trading.md": Trading, "trading-decisions.md": TradingDecisions,
	"onboarding.md": Onboarding, "onboarding-decisions.md": OnboardingDecisions}

// TestCopies holds the copies against the documents, where these lie beside the repository: a document that changes fails
// here until the copy, and with it the checks of what it says, have followed.
func TestCopies(t *testing.T) {
	for name, copied := range documents {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "spec", name))
		if errors.Is(err, fs.ErrNotExist) {
			t.Skip("the documents are not there")
		}
		if err != nil {
			t.Fatal(err)
		}
		if string(text) != copied {
			t.Errorf("%s has changed: copy it to schemas/spec, and have the tests that name its facts follow", name)
		}
	}
}

func TestParse(t *testing.T) {
	facts := Parse(`# Title

One thing; another. A third.

## Table
| Method | Path | Notes |
|---|---|---|
| GET | /a | none |
| GET | /b | read; twice |

## Lists
Rules:
1. First. Second
2. Third

Not a title: really.
- bullet,
  which goes on

| Version | Change |
|---|---|
| 1.0.0 | breaking: a, b; added c |
`)
	var got []string
	for _, f := range facts {
		got = append(got, f.Section+" | "+f.Key())
	}
	want := []string{"Title | One thing", "Title | another", "Title | A third",
		"Table | GET /a · Notes: none", "Table | GET /b · Notes: read", "Table | GET /b · Notes: twice",
		"Lists | Rules 1. First", "Lists | Rules 1. Second", "Lists | Rules 2. Third", "Lists | Not a title: really", "Lists | Rules. bullet, which goes on",
		"Lists | 1.0.0 · Change: breaking: a", "Lists | 1.0.0 · Change: b", "Lists | 1.0.0 · Change: added c"}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if facts[5].Line != 9 {
		t.Errorf("%+v", facts[5])
	}
}

// TestNothingIsLost reads the documents again: each line that is no structure is the line of a fact, and no two facts of
// a section are the same.
func TestNothingIsLost(t *testing.T) {
	for name, document := range documents {
		said, keys := make(map[int]int), make(map[string]bool)
		for _, f := range Parse(document) {
			said[f.Line] += len(f.Text)
			if key := f.Section + " | " + f.Key(); keys[key] {
				t.Errorf("%s:%d: twice: %s", name, f.Line, key)
			} else {
				keys[key] = true
			}
		}
		lines := strings.Split(document, "\n")
		for i, line := range lines {
			structure := line == "" || strings.HasPrefix(line, "#") || strings.HasSuffix(line, ":") || strings.HasPrefix(line, "|---") ||
				i+1 < len(lines) && strings.HasPrefix(lines[i+1], "|---")
			// Of a table's row the first cells are the subject, and of any line only signs between facts are left out.
			if strings.HasPrefix(line, "  ") { // goes on with the item above
				continue
			}
			if said[i+1] == 0 && !structure {
				t.Errorf("%s:%d: no fact: %s", name, i+1, line)
			} else if !strings.HasPrefix(line, "|") && !structure && said[i+1] < len(line)*9/10-4 {
				t.Errorf("%s:%d: facts of %d bytes in %d: %s", name, i+1, said[i+1], len(line), line)
			}
		}
	}
}
