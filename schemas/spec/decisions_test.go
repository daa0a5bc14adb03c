package spec

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// root is the repository's folder.
var root = filepath.Join("..", "..")

// TestEveryDecisionHasATest holds the decisions against the tables of the tests that name them, trading-decisions.tests and
// onboarding-decisions.tests: each fact stands there, word by word under its section, with the tests that fail where it does not
// hold; and there are such tests. Who changes a decision, or takes a test away, finds out here what has to follow.
//
// TestConformance holds the running venue against each fact of trading.md, and TestOnboardingConformance against each of
// onboarding.md, so they are named with the fact that stands for the decision; they fail themselves if that fact has no check.
func TestEveryDecisionHasATest(t *testing.T) {
	for name, decisions := range map[string]string{"trading": TradingDecisions, "onboarding": OnboardingDecisions} {
		text, err := os.ReadFile(name + "-decisions.tests")
		if err != nil {
			t.Fatal(err)
		}
		for _, fault := range untested(Parse(decisions), string(text), make(tests).exist) {
			t.Errorf("%s: %s", name, fault)
		}
	}
}

// conformance and onboarded are the tests whose parts are the facts of trading.md and of onboarding.md.
const (
	conformance = "cmd/perpetua/e2e.TestConformance"
	onboarded   = "cmd/perpetua/e2e.TestOnboardingConformance"
)

// untested returns what is wrong with a table of tests: lines of facts, under headings, each followed by lines that begin with a
// tab and name its tests. A fact of the interface's document, whose words may have commas, has a line of its own.
func untested(facts []Fact, table string, exists func(test string) bool) (faults []string) {
	named, section, key := make(map[string][]string), "", ""
	for line := range strings.Lines(table) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "## "):
			section = line[3:]
		case strings.HasPrefix(line, "\t"+conformance+"/"), strings.HasPrefix(line, "\t"+onboarded+"/"):
			named[key] = append(named[key], line[1:])
		case strings.HasPrefix(line, "\t"):
			named[key] = append(named[key], strings.Split(line[1:], ", ")...)
		case line != "":
			key = section + ": " + line
			if _, twice := named[key]; twice {
				faults = append(faults, "twice: "+key)
			}
			named[key] = nil
		}
	}
	for _, f := range facts {
		key := f.Section + ": " + f.Key()
		if len(named[key]) == 0 {
			faults = append(faults, "no test: "+key)
		}
		for _, test := range named[key] {
			if !exists(test) {
				faults = append(faults, "there is no "+test+", for: "+key)
			}
		}
		delete(named, key)
	}
	for _, key := range slices.Sorted(maps.Keys(named)) {
		faults = append(faults, "nobody decided: "+key)
	}
	return faults
}

var testFunction = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)

// tests are the names of the tests of each folder that was asked for.
type tests map[string][]string

// exist reports whether there is a test: "scenario NAME", "folder/of/the/package.TestName", or a test of conformance with the
// section and the key of a fact of its document, "…/Section/Key".
func (all tests) exist(test string) bool {
	for name, document := range map[string]string{conformance: Trading, onboarded: Onboarding} {
		if said, ok := strings.CutPrefix(test, name); ok {
			return slices.ContainsFunc(Parse(document), func(f Fact) bool { return said == "/"+f.Section+"/"+f.Key() })
		}
	}
	if scenario, ok := strings.CutPrefix(test, "scenario "); ok {
		_, err := os.Stat(filepath.Join(root, "domain", "trading", "testdata", scenario+".scenario"))
		return err == nil
	}
	folder, name, _ := strings.Cut(test, ".")
	if _, known := all[folder]; !known {
		all[folder] = nil
		files, _ := filepath.Glob(filepath.Join(root, filepath.FromSlash(folder), "*_test.go"))
		for _, file := range files {
			text, _ := os.ReadFile(file) // what can't be read has no tests
			for _, found := range testFunction.FindAllStringSubmatch(string(text), -1) {
				all[folder] = append(all[folder], found[1])
			}
		}
	}
	return slices.Contains(all[folder], name)
}

func TestUntested(t *testing.T) {
	facts := Parse("## Orders\n- Stops wait; they fire. Terminal never reopens\n")
	const all = "## Orders\nStops wait\n\tscenario a, p.TestB\nthey fire\n\tscenario a\nTerminal never reopens\n\tp.TestB\n"
	for name, test := range map[string]struct {
		table string
		want  []string
	}{
		"all is well":           {all, nil},
		"a fact is missing":     {strings.Replace(all, "they fire\n\tscenario a\n", "", 1), []string{"no test: Orders: they fire"}},
		"a fact without a test": {strings.Replace(all, "\tscenario a\n", "", 1), []string{"no test: Orders: they fire"}},
		"a fact that changed":   {strings.Replace(all, "never", "may", 1), []string{"no test: Orders: Terminal never reopens", "nobody decided: Orders: Terminal may reopens"}},
		"a test that is gone":   {strings.Replace(all, "scenario a\nT", "scenario c\nT", 1), []string{"there is no scenario c, for: Orders: they fire"}},
		"commas of a fact":      {strings.Replace(all, "scenario a\nT", conformance+"/Limits/a, b\n\tscenario a\nT", 1), []string{"there is no " + conformance + "/Limits/a, b, for: Orders: they fire"}},
		"a fact twice":          {all + "they fire\n\tscenario a\n", []string{"twice: Orders: they fire"}},
	} {
		got := untested(facts, test.table, func(test string) bool { return test == "scenario a" || test == "p.TestB" })
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	for test, want := range map[string]bool{"schemas/spec.TestUntested": true, "schemas/spec.TestUnteste": false, "schemas/nowhere.TestUntested": false, "scenario no_such": false, "scenario cash": true,
		onboarded: false, onboarded + "/Limits/Lists observed with page size 50": true, onboarded + "/Limits/leverage · Value: integer 1 to 13": false,
		conformance: false, conformance + "/Limits/leverage · Value: integer 1 to 13": true, conformance + "/Limits/leverage · Value: integer 1 to 14": false, conformance + "/Errors/leverage · Value: integer 1 to 13": false} {
		if make(tests).exist(test) != want {
			t.Errorf("%s: %v", test, !want)
		}
	}
}
