package sim

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// safetyRule is a rule of the protocol, and the change of its source that switches it off.
type safetyRule struct {
	name     string
	file     string
	from, to string
}

// safetyRules are the rules without which the protocol would break a promise.
var safetyRules = []safetyRule{
	{"an answer waits until the record that it was decided on is complete", "term/deferred.go",
		"t.deferred.peek().tip <= t.flight.last.Sequence", "true"},
	{"an acknowledgement beyond a gap completes nothing", "term/flight.go",
		"f.gap || offset != f.last.Offset+1 || f.inFlight.peek() != s", "f.inFlight.peek() != s"},
	{"within a gap only the reader completes records", "term/flight.go",
		"return s.seenAt, s.seen", "return s.ackedAt, true"},
	{"a refusal waits until the log is accounted for up to its end", "term/readindex.go",
		"x.end > f.accounted()", "false"},
	{"a refusal waits for the end of the log", "term/readindex.go",
		"x.covered == 0 || x.end < 0 ||", "x.covered == 0 ||"},
	{"a refusal waits for its tip", "term/readindex.go",
		"x.held.peek().tip > f.last.Sequence", "false"},
	{"the answer to an earlier question for the end counts for nothing", "term/readindex.go",
		"m.t.index.covered == 0 || in.Asked != m.t.index.asked", "m.t.index.covered == 0"},
	{"a question for the end covers what was decided before it", "term/readindex.go",
		"x.covered--", "x.covered = x.held.len() - 1"},
	{"a foreign record ends the term", "term/serving.go",
		"return m.unexpectedRecord(e)", "continue"},
	{"results of an earlier producer say nothing", "term/serving.go",
		"in.Producer != m.producers", "false"},
	{"a carried request is answered from its record", "term/carried.go",
		"record, finish := t.awaited[k.record], t.awaited[k.finish]", "var record, finish *record.Entry"},
	{"the records that a seed covers are searched for carried requests", "term/opening.go",
		"m.out.Scan = m.scanSeedPrefix()", "m.out.Scan = nil"},
	{"the search begins before the first carried request", "term/carried.go",
		"if t.resumed {\n", "m.behind = m.acknowledged\n\tif t.resumed {\n"},
	{"a carried request stays undecided until a term record is valid", "term/carried.go",
		"m.carried = left\n", "m.carried = nil\n\tfor _, k := range left {\n\t\tm.requeue(k.request)\n\t}\n"},
	{"work that was begun is not begun again", "term/carried.go",
		"case k.steps && (k.valid || record != nil):", "case false:"},
	{"an acknowledged position must be in the log", "term/opening.go",
		"m.out.Hold = append(m.out.Hold, p)", "_ = p"},
	{"a replay must meet the known positions", "term/opening.go",
		"if len(t.opening.ahead) > 0 {", "if false {"},
	{"a request that was answered is not decided", "term/request.go",
		"case r.done:\n\t\tcase", "case"},
	{"a command that may be in the log is not called undecided", "term/request.go",
		"if r.state == inDoubt {", "if false {"},
	{"a request of one term is decided in no other", "term/request.go",
		"r.Term != 0 && r.Term != m.t.number", "false"},
	{"a request is not decided too late", "term/request.go",
		"r.Until != 0 && m.now.Mono > r.Until", "false"},
	{"a refusal needs a lease", "sim/clients_test.go",
		"&& !n.leased():", "&& false:"},
}

// TestEachSafetyRuleIsNeeded switches each rule off, and has the simulation find that within two million steps. Most take
// less than two hundred thousand.
func TestEachSafetyRuleIsNeeded(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles the simulation once for each rule")
	}
	turns := make(chan struct{}, runtime.GOMAXPROCS(0))
	for _, rule := range safetyRules {
		t.Run(rule.name, func(t *testing.T) {
			t.Parallel()
			turns <- struct{}{}
			defer func() { <-turns }()
			out := rule.without(t)
			if !strings.Contains(out, seedVariable) {
				t.Errorf("the simulation does not miss it:\n%s", out)
			}
			t.Log(strings.TrimSpace(out))
		})
	}
}

// without runs the simulation without the rule and returns what it prints.
func (rule safetyRule) without(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", filepath.FromSlash(rule.file)))
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(source), rule.from); n != 1 {
		t.Fatalf("%s has %q %d times", rule.file, rule.from, n)
	}
	changed := filepath.Join(t.TempDir(), filepath.Base(rule.file))
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {path: changed}})
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(t.TempDir(), "overlay.json")
	for name, content := range map[string]string{changed: strings.Replace(string(source), rule.from, rule.to, 1), list: string(overlay)} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-count=1", "-overlay="+list, "-run=^TestTerms$", ".")
	run.Env = append(os.Environ(), stepsVariable+"=2000000", seedVariable+"=1")
	out, err := run.CombinedOutput()
	if err == nil {
		return "it passes"
	}
	return string(out)
}
