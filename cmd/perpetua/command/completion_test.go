package command

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/e2e/program"
)

// TestCompletion checks that the script of every shell contains every command and flag.
func TestCompletion(t *testing.T) {
	scripts := make(map[string]string)
	for _, shell := range shells() {
		scripts[shell] = completionScript(t, shell)
	}
	for _, s := range spots(t.Context()) {
		if len(s.words) == 0 {
			t.Errorf("no completions after %q", s.path)
		}
		for shell, script := range scripts {
			for _, w := range s.words {
				if !strings.Contains(script, strings.TrimPrefix(w.text, "--")) {
					t.Errorf("%s does not know %s %s", shell, s.path, w.text)
				}
			}
		}
	}
	var l line
	for _, args := range [][]string{{"completion"}, {"completion", "csh"}, {"completion", "bash", "zsh"}} {
		if code := l.run(t.Context(), nil, args...); code != exitUsage {
			t.Errorf("%s: %d", args, code)
		}
	}
}

// TestShellsComplete runs completions in the shells that are installed. Under CI, every shell is.
func TestShellsComplete(t *testing.T) {
	for shell, offers := range map[string]func(t *testing.T, script, line string) []string{
		"bash": offersOfBash, "zsh": offersOfZsh, "fish": offersOfFish,
	} {
		t.Run(shell, func(t *testing.T) {
			program.Need(t, shell)
			dir := t.TempDir()
			t.Chdir(dir)
			script := filepath.Join(dir, "script")
			for name, content := range map[string]string{script: completionScript(t, shell), "only-file": ""} {
				if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for line, want := range map[string][]string{
				"perpetua ve":                           {"version"},
				"perpetua log --che":                    {"--check-all"},
				"perpetua log cop":                      {"copy"},
				"perpetua log copy --to":                {"--to", "--to-prefix", "--topic-prefix"},
				"perpetua log --data onl":               {"only-file"},
				"perpetua admin forget-log --jou":       {"--journal"},
				"perpetua admin deliveries re":          {"replay"},
				"perpetua admin brokers create onl":     {"only-file"},
				"perpetua admin --data x deliveries re": {"replay"},
				"perpetua config check --js":            {"--json"},
				"perpetua completion ":                  {"bash", "fish", "zsh"},
			} {
				if got := offers(t, script, line); !slices.Equal(got, want) {
					t.Errorf("%s: the offers are %q, want %q", line, got, want)
				}
			}
		})
	}
}

// completionScript returns what perpetua completion prints.
func completionScript(t *testing.T, shell string) string {
	t.Helper()
	var l line
	if code := l.run(t.Context(), nil, "completion", shell); code != exitDone {
		t.Fatalf("%s: %d: %s", shell, code, &l.err)
	}
	return l.out.String()
}

func offersOfBash(t *testing.T, script, line string) []string {
	words := "(" + line + ")"
	if strings.HasSuffix(line, " ") {
		words = "(" + line + "'')"
	}
	return sortedLines(shellOutput(t, "bash", "--norc", "-c", fmt.Sprintf(
		`source %s; COMP_WORDS=%s; COMP_CWORD=$((${#COMP_WORDS[@]}-1)); _perpetua; printf '%%s\n' "${COMPREPLY[@]}"`, script, words)))
}

// offersOfFish cuts the descriptions, which follow the offers after a tab.
func offersOfFish(t *testing.T, script, line string) []string {
	complete := fmt.Sprintf("source %s; complete -C %s", script, shellWord(line))
	out := sortedLines(shellOutput(t, "fish", "--no-config", "-c", complete))
	for i := range out {
		out[i], _, _ = strings.Cut(out[i], "\t")
	}
	return out
}

// offersOfZsh types a line and a tab into an interactive zsh, since zsh completes nowhere else. A function in place of compadd
// prints the offers.
func offersOfZsh(t *testing.T, script, line string) []string {
	said := shellOutput(t, "zsh", "-f", "-c", fmt.Sprintf(`
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell 'autoload -U compinit; compinit -u -d %s.dump; source %[1]s
compadd() {
  local -a offers
  builtin compadd -A offers "$@"
  [[ ${#offers} -gt 0 ]] && print -r -- "<offer>"${^offers}"</offer>"
  builtin compadd "$@"
}
leave() { exit }; zle -N leave; bindkey "^X" leave; print REA""DY'
zpty -r shell said '*READY*'
zpty -n -w shell %s$'\t'$'\x18'
while zpty -r shell said; do print -r -- "$said"; done
`, script, shellWord(line)))
	var out []string
	for _, offer := range regexp.MustCompile("<offer>(.*?)</offer>").FindAllStringSubmatch(said, -1) {
		out = append(out, offer[1])
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func shellOutput(t *testing.T, shell string, args ...string) string {
	t.Helper()
	said, err := exec.CommandContext(t.Context(), shell, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v: %s", shell, args, err, said)
	}
	return string(said)
}

func sortedLines(text string) []string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	slices.Sort(lines)
	return lines
}
