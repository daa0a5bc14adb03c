package command

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/operate"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
)

// word is a completion: a command or flag, and its description.
type word struct {
	text, help string
	valued     bool // a flag that takes a value
}

// spot is a path of commands and the completions that may follow it.
type spot struct {
	path  []string // empty for the first word of the line
	words []word
}

// spots returns the completions of every path, derived from the table of commands and from the output of each command for -h.
func spots(ctx context.Context) []spot {
	first := spot{}
	var rest []spot
	for _, c := range subcommands() {
		first.words = append(first.words, word{text: c.name, help: c.summary})
		here := spot{path: []string{c.name}}
		for _, verb := range nested(c.name) {
			here.words = append(here.words, word{text: verb.name, help: verb.summary})
			run, args := verb.run, []string(nil)
			if c.name == "config" { // its run function takes the subcommand as an argument
				args = []string{verb.name}
			}
			rest = append(rest, spot{path: []string{c.name, verb.name}, words: flagsOf(ctx, run, args)})
		}
		switch c.name {
		case "admin":
			groups, below := operations(ctx)
			here.words = append(here.words, groups...)
			rest = append(rest, below...)
		case "completion":
			for _, shell := range shells() {
				here.words = append(here.words, word{text: shell})
			}
		default:
			here.words = append(here.words, flagsOf(ctx, c.run, nil)...)
		}
		rest = append(rest, here)
	}
	first.words = append(first.words, word{text: "help", help: "list the commands and the exit codes"})
	return append([]spot{first}, rest...)
}

// operations returns the groups of operator commands, and the completions after each group and verb.
func operations(ctx context.Context) (groups []word, below []spot) {
	for _, o := range operate.Operations() {
		at := slices.IndexFunc(below, func(s spot) bool { return len(s.path) == 2 && s.path[1] == o.Group })
		if at < 0 {
			groups = append(groups, word{text: o.Group})
			at = len(below)
			below = append(below, spot{path: []string{"admin", o.Group}})
		}
		below[at].words = append(below[at].words, word{text: o.Verb, help: o.Help})
		below = append(below, spot{path: []string{"admin", o.Group, o.Verb}, words: flagsOf(ctx, operate.Command, []string{o.Group, o.Verb})})
	}
	return groups, below
}

// flagLine matches a line of help that declares a flag, as the help of every command prints it. The second
// group is the type of the flag's value, which a switch does not have.
var flagLine = regexp.MustCompile(`^  --([a-z][a-z0-9-]*)(?: ([A-Za-z]+))?$`)

// flagsOf returns the flags in the help of a command.
func flagsOf(ctx context.Context, run func(context.Context, []string, settings.IO) error, args []string) (out []word) {
	var help bytes.Buffer
	none := func(string) (string, bool) { return "", false }
	// With -h a command prints its help, does nothing else and returns flag.ErrHelp.
	_ = run(ctx, append(slices.Clone(args), "-h"), settings.IO{In: strings.NewReader(""), Out: &help, Err: &help, Env: none})
	lines := strings.Split(help.String(), "\n")
	for i, line := range lines {
		m := flagLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		usage := ""
		if i+1 < len(lines) && strings.HasPrefix(lines[i+1], "   ") && flagLine.FindString(lines[i+1]) == "" {
			usage = strings.TrimSpace(lines[i+1])
		}
		out = append(out, word{text: "--" + m[1], help: usage, valued: m[2] != ""})
	}
	return out
}

func shells() []string { return []string{"bash", "zsh", "fish"} }

// completionCommand prints the completion script of a shell.
func completionCommand(ctx context.Context, args []string, std settings.IO) error {
	rest, err := settings.ParseOwn("completion", "bash|zsh|fish", args, std, func(*flag.FlagSet) {})
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(std.Err, `
  bash   source <(perpetua completion bash)
  zsh    source <(perpetua completion zsh)     after compinit
  fish   perpetua completion fish | source
`)
	}
	if err != nil {
		return err
	}
	if len(rest) != 1 || !slices.Contains(shells(), rest[0]) {
		return settings.Usagef("name a shell: %s", strings.Join(shells(), ", "))
	}
	map[string]func(io.Writer, []spot){"bash": bash, "zsh": zsh, "fish": fish}[rest[0]](std.Out, spots(ctx))
	return nil
}

// Each script finds the longest path of commands on the line, ignoring flags and other words, and offers the completions of that
// path. The scripts for bash and zsh offer file names if nothing matches, the one for fish after a flag that takes a value.

func bash(w io.Writer, all []spot) {
	fmt.Fprint(w, `# Completion of perpetua for bash: source <(perpetua completion bash)
_perpetua_words() {
  case "$1" in
`)
	cases(w, all, func(words []word) string {
		var texts []string
		for _, one := range words {
			texts = append(texts, one.text)
		}
		return "echo " + shellWord(strings.Join(texts, " "))
	})
	fmt.Fprint(w, `  *) return 1 ;;
  esac
}
_perpetua() {
  local cur=${COMP_WORDS[COMP_CWORD]} path="" word
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$word" in -*) continue ;; esac
    _perpetua_words "${path:+$path }$word" >/dev/null && path="${path:+$path }$word"
  done
  COMPREPLY=($(compgen -W "$(_perpetua_words "$path")" -- "$cur"))
  [ ${#COMPREPLY[@]} -gt 0 ] || COMPREPLY=($(compgen -f -- "$cur"))
}
complete -F _perpetua perpetua
`)
}

func zsh(w io.Writer, all []spot) {
	fmt.Fprint(w, `#compdef perpetua
# Completion of perpetua for zsh: source <(perpetua completion zsh)
_perpetua_words() {
  case "$1" in
`)
	cases(w, all, func(words []word) string {
		var texts []string
		for _, one := range words {
			text := one.text
			if one.help != "" {
				text += ":" + one.help
			}
			texts = append(texts, shellWord(text))
		}
		return "reply=(" + strings.Join(texts, " ") + ")"
	})
	fmt.Fprint(w, `  *) return 1 ;;
  esac
}
_perpetua() {
  local path_="" word
  local -a reply
  for word in "${(@)words[2,CURRENT-1]}"; do
    case "$word" in -*) continue ;; esac
    _perpetua_words "${path_:+$path_ }$word" && path_="${path_:+$path_ }$word"
  done
  _perpetua_words "$path_"
  _describe perpetua reply || _files
}
if [[ "$funcstack[1]" == _perpetua ]]; then # loaded from a file _perpetua in fpath, for the first completion
  _perpetua "$@"
else
  compdef _perpetua perpetua
fi
`)
}

// cases writes the branches of a case statement, one for each path.
func cases(w io.Writer, all []spot, body func([]word) string) {
	for _, s := range all {
		fmt.Fprintf(w, "  %s) %s ;;\n", shellWord(strings.Join(s.path, " ")), body(s.words))
	}
}

func fish(w io.Writer, all []spot) {
	fmt.Fprint(w, "# Completion of perpetua for fish: perpetua completion fish | source\nset -g __perpetua_paths")
	for _, s := range all {
		if len(s.path) > 0 {
			fmt.Fprint(w, " ", shellWord(strings.Join(s.path, " ")))
		}
	}
	fmt.Fprint(w, `
function __perpetua_at
    set -l path
    for word in (commandline -opc)[2..-1]
        set -l longer (string join -- ' ' $path $word)
        contains -- $longer $__perpetua_paths; and set path $longer
    end
    test "$path" = "$argv"
end
`)
	for _, s := range all {
		for _, one := range s.words {
			fmt.Fprintf(w, "complete -c perpetua -n %s %s", shellWord("__perpetua_at "+strings.Join(s.path, " ")), fishWord(one))
			if one.help != "" {
				fmt.Fprintf(w, " -d %s", shellWord(one.help))
			}
			fmt.Fprintln(w)
		}
	}
}

// fishWord returns the options of fish's complete that offer a word.
func fishWord(w word) string {
	name, flag := strings.CutPrefix(w.text, "--")
	switch {
	case flag && w.valued:
		return "-r -l " + name
	case flag:
		return "-l " + name
	}
	return "-f -a " + w.text
}

// shellWord quotes text as one word of a shell.
func shellWord(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
