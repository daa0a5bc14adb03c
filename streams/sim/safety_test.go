package sim

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// safetyRule is a rule of the protocol, and the change of its source that can switch it off.
type safetyRule struct {
	name     string
	file     string
	from, to string // OFF in to stands for the condition that the rule is switched off
}

// safetyRules are the rules without which the protocol would break a promise.
var safetyRules = []safetyRule{
	{"an answer waits until the record that it was decided on is complete", "term/deferred.go",
		"t.deferred.peek().tip <= t.flight.last.Sequence", "(OFF || t.deferred.peek().tip <= t.flight.last.Sequence)"},
	{"an acknowledgement beyond a gap completes nothing", "term/flight.go",
		"f.gap || offset != f.last.Offset+1 ||", "!OFF && (f.gap || offset != f.last.Offset+1) ||"},
	{"within a gap only the reader completes records", "term/flight.go",
		"return s.seenAt, s.seen", "if OFF {\n\t\treturn s.ackedAt, true\n\t}\n\treturn s.seenAt, s.seen"},
	{"a refusal waits until the log is accounted for up to its end", "term/readindex.go",
		"x.end > f.accounted()", "!OFF && x.end > f.accounted()"},
	{"a refusal waits for the end of the log", "term/readindex.go",
		"x.covered == 0 || x.end < 0 ||", "x.covered == 0 || !OFF && x.end < 0 ||"},
	{"a refusal waits for its tip", "term/readindex.go",
		"x.held.peek().tip > f.last.Sequence", "!OFF && x.held.peek().tip > f.last.Sequence"},
	{"the answer to an earlier question for the end counts for nothing", "term/readindex.go",
		"m.t.index.covered == 0 || in.Question != m.t.index.question", "m.t.index.covered == 0 || !OFF && in.Question != m.t.index.question"},
	{"a question for the end covers what was decided before it", "term/readindex.go",
		"x.covered--", "x.covered--\n\tif OFF {\n\t\tx.covered = x.held.len() - 1\n\t}"},
	{"a foreign record ends the term", "term/serving.go",
		"return m.unexpectedRecord(e)", "if OFF {\n\t\t\t\tcontinue\n\t\t\t}\n\t\t\treturn m.unexpectedRecord(e)"},
	{"results of an earlier producer say nothing", "term/serving.go",
		"in.Producer != m.producers", "!OFF && in.Producer != m.producers"},
	{"a carried request is answered from its record", "term/carried.go",
		"record, finish := t.awaited[k.record], t.awaited[k.finish]\n",
		"record, finish := t.awaited[k.record], t.awaited[k.finish]\n\tif OFF {\n\t\trecord, finish = nil, nil\n\t}\n"},
	{"the records that a seed covers are searched for carried requests", "term/opening.go",
		"m.out.Scan = m.scanSeedPrefix()", "if !OFF {\n\t\tm.out.Scan = m.scanSeedPrefix()\n\t}"},
	{"the search begins before the first carried request", "term/carried.go",
		"if t.resumed {\n", "if OFF {\n\t\tm.behind = m.acknowledged\n\t}\n\tif t.resumed {\n"},
	{"a carried request stays undecided until a term record is valid", "term/carried.go",
		"m.carried = left\n", "m.carried = left\n\tif OFF {\n\t\tm.carried = nil\n\t\tfor _, k := range left {\n\t\t\tm.requeue(k.request)\n\t\t}\n\t}\n"},
	{"work that was begun is not begun again", "term/carried.go",
		"case k.steps && (k.valid || record != nil):", "case !OFF && k.steps && (k.valid || record != nil):"},
	{"an acknowledged position must be in the log", "term/opening.go",
		"m.out.Hold = append(m.out.Hold, p)", "if !OFF {\n\t\t\t\tm.out.Hold = append(m.out.Hold, p)\n\t\t\t}"},
	{"a replay must meet the known positions", "term/opening.go",
		"if len(t.opening.ahead) > 0 {", "if !OFF && len(t.opening.ahead) > 0 {"},
	{"a request that was answered is not decided", "term/request.go",
		"case r.done:\n\t\tcase", "case !OFF && r.done:\n\t\tcase"},
	{"a command that may be in the log is not called undecided", "term/request.go",
		"if r.state == inDoubt {", "if !OFF && r.state == inDoubt {"},
	{"a request of one term is decided in no other", "term/request.go",
		"r.Term != 0 && r.Term != m.t.number", "!OFF && r.Term != 0 && r.Term != m.t.number"},
	{"a request is not decided too late", "term/request.go",
		"r.Until != 0 && m.now.Mono > r.Until", "!OFF && r.Until != 0 && m.now.Mono > r.Until"},
	{"a refusal needs a lease", "sim/clients_test.go",
		"&& !n.leased():", "&& !OFF && !n.leased():"},
}

// withoutVariable is the environment variable with the number of the rule that a simulation runs without.
const withoutVariable = "PERPETUA_TEST_WITHOUT_RULE"

// TestEachSafetyRuleIsNeeded switches each rule off, and has the simulation find that within two million steps. Most take
// less than two hundred thousand. The simulation is compiled once, with a switch for each rule, and passes with none of them off.
func TestEachSafetyRuleIsNeeded(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles the simulation again, with switches")
	}
	simulation := compileWithSwitches(t)
	if out, err := runWithout(t, simulation, "none", 200_000); err != nil {
		t.Fatalf("with all rules on: %v\n%s", err, out)
	}
	turns := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, rule := range safetyRules {
		t.Run(rule.name, func(t *testing.T) {
			t.Parallel()
			turns <- struct{}{}
			defer func() { <-turns }()
			out, err := runWithout(t, simulation, strconv.Itoa(i), 2_000_000)
			if err == nil || !strings.Contains(out, seedVariable) {
				t.Errorf("the simulation does not miss it: %v\n%s", err, out)
			}
			t.Log(strings.TrimSpace(out))
		})
	}
}

// runWithout runs a simulation without one rule and returns what it prints.
func runWithout(t *testing.T, simulation, rule string, steps int) (string, error) {
	run := exec.CommandContext(t.Context(), simulation, "-test.run=^TestTerms$")
	run.Env = append(os.Environ(), stepsVariable+"="+strconv.Itoa(steps), seedVariable+"=1", withoutVariable+"="+rule)
	out, err := run.CombinedOutput()
	return string(out), err
}

// compileWithSwitches compiles this package's tests with a switch for each rule and returns the path of the program.
func compileWithSwitches(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	without := fmt.Sprintf("\n\nimport \"os\"\n\nvar withoutRule = os.Getenv(%q)\n", withoutVariable)
	sources := map[string]string{"term/without.go": "package term" + without, "sim/without_test.go": "package sim" + without}
	for i, rule := range safetyRules {
		if sources[rule.file] == "" {
			source, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(rule.file)))
			if err != nil {
				t.Fatal(err)
			}
			sources[rule.file] = string(source)
		}
		if n := strings.Count(sources[rule.file], rule.from); n != 1 {
			t.Fatalf("%s has %q %d times", rule.file, rule.from, n)
		}
		off := fmt.Sprintf("(withoutRule == %q)", strconv.Itoa(i))
		sources[rule.file] = strings.Replace(sources[rule.file], rule.from, strings.ReplaceAll(rule.to, "OFF", off), 1)
	}
	replace := make(map[string]string)
	for name, source := range sources {
		path, err := filepath.Abs(filepath.Join("..", filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		replace[path] = filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		if err := os.WriteFile(replace[path], []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	list, program := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "simulation")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-c", "-o", program, "-overlay="+list, ".").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}
