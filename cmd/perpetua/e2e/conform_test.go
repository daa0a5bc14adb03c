package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/perpetua-exchange/perpetua/schemas/spec"
)

// conformanceReport is the variable that names a folder for the reports of the tests of conformance, in Markdown.
const conformanceReport = "PERPETUA_CONFORMANCE_REPORT"

// conformanceFront is the variable by which the tests of conformance send all requests to a node that owns no journal.
const conformanceFront = "PERPETUA_CONFORMANCE_FRONT"

// check holds one fact of a document against the running venue. What it reads there it notes; a check that reads nothing
// fails.
type check struct {
	says    string // the fact's key
	decided string // where the document says "not shown": words of the decisions that say what holds, or nothing
	holds   func()
}

// nothing is said anywhere: what is checked is only that the venue does not say it either.
const nothing = "nothing decides it"

// TestConformance holds the running venue against every fact of the document of the trading interface: each table row,
// rule, bullet, sentence and line of the changelog has a check of its own, which notes the values that it read. A fact without
// a check fails, and so does a check without a fact: a document that changes loses the checks of what it no longer says.
func TestConformance(t *testing.T) {
	t.Parallel() // for most of its time it waits for the end of a minute
	c := &conformance{root: t, reading: &reading{desk: &desk{venue: newVenue(t, "--accept-clock")}}, orders: make(map[string]object), cash: make(map[string]bool)}
	if os.Getenv(conformanceFront) != "" {
		c.putFront()
	}
	c.open()
	interfaceDocument{"trading", spec.Trading, spec.TradingDecisions}.hold(t, c.reading, c.checks())
}

// interfaceDocument fixes an interface, with what is decided where it is silent.
type interfaceDocument struct{ name, text, decisions string }

// hold holds a venue against every fact of the document, if there is a check of each, and reports what was read.
func (d interfaceDocument) hold(t *testing.T, c *reading, sections map[string][]check) {
	t.Helper()
	if c.front != nil {
		defer func() {
			if n := c.scrape().value("perpetua_peer_commands_total"); !(n > 0) {
				t.Error("the node in front sent no commands to the owner")
			}
		}()
	}
	facts := spec.Parse(d.text)
	checks, faults := d.matched(facts, sections)
	for _, fault := range faults {
		t.Error(fault)
	}
	if len(faults) > 0 {
		return
	}
	var report bytes.Buffer
	fmt.Fprintf(&report, "# What the %s interface says, and what was read of the running venue\n\n| section | fact | read |\n|---|---|---|\n", d.name)
	for _, f := range facts {
		holds := checks[f.Section+"\n"+f.Key()]
		c.values = nil
		ok := c.within(t, strings.NewReplacer("/", "∕", " ", "_").Replace(f.Section+"/"+f.Key()), func(t *testing.T) {
			holds()
			if len(c.values) == 0 {
				t.Error("the check read nothing")
			}
		})
		fmt.Fprintf(&report, "| %s | %s | %s%s |\n", cell(f.Section), cell(f.Key()), map[bool]string{false: "**FAILED** "}[ok], cell(strings.Join(c.values, "; ")))
	}
	fmt.Fprintf(&report, "\n%d facts\n", len(facts))
	t.Logf("\n%s", &report)
	if folder := os.Getenv(conformanceReport); folder != "" {
		if err := os.WriteFile(filepath.Join(folder, "conformance-"+d.name+".md"), report.Bytes(), 0o600); err != nil {
			t.Error(err)
		}
	}
}

// matched returns the check of each fact, by section and key, and what is wrong with the facts and the checks.
func (d interfaceDocument) matched(facts []spec.Fact, sections map[string][]check) (checks map[string]func(), faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	said := make(map[string]spec.Fact)
	for _, f := range facts {
		said[f.Section+"\n"+f.Key()] = f
	}
	checks = make(map[string]func())
	for section, of := range sections {
		for _, c := range of {
			key := section + "\n" + c.says
			_, there := said[key]
			switch silent := strings.Contains(c.says, "not shown"); {
			case !there:
				fault("%s: the document does not say: %s", section, c.says)
			case checks[key] != nil:
				fault("%s: two checks of: %s", section, c.says)
			case silent != (c.decided != ""):
				fault("%s: what decides it? %s", section, c.says)
			case silent && c.decided != nothing && !strings.Contains(d.decisions, c.decided):
				fault("%s: %s: no decision says: %s", section, c.says, c.decided)
			}
			checks[key] = c.holds
		}
	}
	for _, f := range facts {
		if checks[f.Section+"\n"+f.Key()] == nil {
			fault("%s.md:%d: no check of: %s: %s", d.name, f.Line, f.Section, f.Key())
		}
	}
	return checks, faults
}

// TestConformanceTellsWhatIsMissing takes a check away, changes what the document says, and asks for decisions that nobody took.
func TestConformanceTellsWhatIsMissing(t *testing.T) {
	facts := spec.Parse("## Limits\nRate limits: not shown.\n\n| Limit | Value |\n|---|---|\n| leverage | 1 to 13 |\n")
	complete := func() []check {
		return []check{{"Rate limits: not shown", "Rate limits: a token bucket per user", t.Fail}, {"leverage · Value: 1 to 13", "", t.Fail}}
	}
	for name, test := range map[string]struct {
		change func([]check) []check
		want   []string
	}{
		"all is well":          {func(all []check) []check { return all }, nil},
		"a check is missing":   {func(all []check) []check { return all[:1] }, []string{"trading.md:6: no check of: Limits: leverage · Value: 1 to 13"}},
		"the document changed": {func(all []check) []check { all[1].says = "leverage · Value: 1 to 20"; return all }, []string{"Limits: the document does not say: leverage · Value: 1 to 20", "trading.md:6: no check of: Limits: leverage · Value: 1 to 13"}},
		"two checks":           {func(all []check) []check { return append(all, all[1]) }, []string{"Limits: two checks of: leverage · Value: 1 to 13"}},
		"nothing decides":      {func(all []check) []check { all[0].decided = ""; return all }, []string{"Limits: what decides it? Rate limits: not shown"}},
		"nobody decided that":  {func(all []check) []check { all[0].decided = "no such words"; return all }, []string{"Limits: Rate limits: not shown: no decision says: no such words"}},
		"decided and shown":    {func(all []check) []check { all[1].decided = nothing; return all }, []string{"Limits: what decides it? leverage · Value: 1 to 13"}},
	} {
		limits := interfaceDocument{"trading", "", spec.TradingDecisions}
		if _, got := limits.matched(facts, map[string][]check{"Limits": test.change(complete())}); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// cell is a text in a cell of a table, cut to a length that can be read.
func cell(text string) string {
	const most = 300
	text = strings.NewReplacer("|", "\\|", "\n", " ").Replace(text)
	if utf8.RuneCountInString(text) > most {
		text = string([]rune(text)[:most]) + " …"
	}
	return text
}
