package e2e

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/e2e/altered"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/e2e/program"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
	"github.com/perpetua-exchange/perpetua/streams/broker"
	"github.com/perpetua-exchange/perpetua/streams/broker/kafkatest"
)

// repository is the repository's root, from the folder of this package.
const repository = "../../.."

// readmes are the project's documents for people, from the repository's root.
func readmes() []string {
	return []string{"README.md", "docker/README.md", "schemas/README.md", "handlers/README.md", "streams/README.md", "cmd/README.md"}
}

func readDocument(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// readmeBlock is one fenced block of a document.
type readmeBlock struct {
	line     int // of the opening fence
	language string
	text     string
	before   string // the prose between it and the block before
}

// readmeBlocks returns the fenced blocks of a document in their order.
func readmeBlocks(t *testing.T, file string) (blocks []readmeBlock) {
	t.Helper()
	var open *readmeBlock
	var prose strings.Builder
	for i, line := range strings.Split(readDocument(t, file), "\n") {
		fence, isFence := strings.CutPrefix(line, "```")
		switch {
		case isFence && open == nil:
			open = &readmeBlock{line: i + 1, language: fence, before: strings.TrimSpace(prose.String())}
			prose.Reset()
		case isFence:
			blocks, open = append(blocks, *open), nil
		case open != nil:
			open.text += line + "\n"
		default:
			prose.WriteString(line + "\n")
		}
	}
	if open != nil {
		t.Fatalf("%s:%d: the block has no end", file, open.line)
	}
	return blocks
}

// walkthrough runs every sh block of a document, in order, in one shell. The shell works in a folder that looks like a
// checkout after `make build`.
type walkthrough struct {
	t       *testing.T
	file    string
	folder  string
	replace *strings.Replacer // addresses of the document, which may be in use here
}

// prelude defines the commands that a document uses and that must not do here what they do for a reader.
//
// A reader starts a venue in a terminal of its own, so `make run` and the like run in the background here. The shell continues
// when the venue has written its run.json and the demo says how to place an order, as a reader does. Ctrl-C comes where the
// text before a block says so, and before the next start.
const prelude = `
set -euo pipefail
server=
ctrl_c() { [ -z "$server" ] || { kill -TERM $server 2>/dev/null; wait $server || { echo "the venue ended with $?"; exit 1; }; }; server=; }
trap 'status=$?; [ -z "$server" ] || kill -TERM $server 2>/dev/null || true; kill $(jobs -p) 2>/dev/null || true; wait; exit $status' EXIT
invites() { # the demo has said that a newcomer can place an order
  [ "$2" != run ] || [[ " $* " == *" --demo=false "* ]] || grep -q "To place an order" server.log
}
serve() {
  local data=data previous= word
  ctrl_c
  for word in "$@"; do [ "$previous" != --data ] || data=$word; previous=$word; done
  "$@" >server.log 2>&1 & server=$!
  for _ in $(seq 1200); do
    [ "$(jq .pid $data/run.json 2>/dev/null)" != $server ] || ! invites "$@" || { echo "$* is ready"; return; }
    kill -0 $server 2>/dev/null || break
    sleep 0.1
  done
  cat server.log; echo "$* was not ready"; exit 1
}
make() { local ARGS=; [ $# = 1 ] || local "$2"; eval "serve bin/perpetua $1 $ARGS"; }
git() { cp -a "$CHECKOUT" "$(basename "$2")"; }
docker() { # starts no containers, and checks that the file, the service and the script that a command names are there
  [ "$1 $2" = "compose -f" ] && [ -f "$3" ] || { echo "docker $*: there is no such file"; return 1; }
  local file=$3 word; echo "docker $*"
  shift 4
  for word in "$@"; do
    case $word in
    -* | sh) ;;
    /*) grep -q ":$word" "$file" || { echo "$file mounts nothing at $word"; return 1; } ;;
    *) grep -q "^  $word:" "$file" || { echo "$file has no service $word"; return 1; } ;;
    esac
  done
}
`

// startsServer is a line that runs until the reader ends it.
var startsServer = regexp.MustCompile(`(?m)^bin/perpetua (run|cluster)\b`)

func newWalkthrough(t *testing.T, file string, replace ...string) *walkthrough {
	t.Helper()
	folder, err := projectiontest.Folder("perpetua-readme-*") // which the user of an embedded Postgres can enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	w := &walkthrough{t, file, filepath.Join(folder, "checkout"), strings.NewReplacer(replace...)}
	if err := os.MkdirAll(filepath.Join(w.folder, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(perpetuaPath(t), filepath.Join(w.folder, "bin", "perpetua")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"docker", "schemas", "handlers", "cmd", "projections"} {
		path, err := filepath.Abs(filepath.Join(repository, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(w.folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// run runs the blocks, compares what each prints with the text block that follows it, if one does, and returns all that they
// print.
func (w *walkthrough) run() string {
	w.t.Helper()
	blocks := readmeBlocks(w.t, w.file)
	script := new(strings.Builder)
	script.WriteString(prelude)
	for i, b := range blocks {
		if b.language == "sh" {
			code := startsServer.ReplaceAllString(w.replace.Replace(b.text), "serve $0")
			if strings.Contains(b.before, "venue with Ctrl-C") {
				script.WriteString("ctrl_c\n")
			}
			fmt.Fprintf(script, "\necho '@@ begin %d'\n%s\necho '@@ end %d'\n", i, code, i)
		}
	}
	path := filepath.Join(w.folder, "..", "script")
	if err := os.WriteFile(path, []byte(script.String()), 0o644); err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), 20*time.Minute) // a loop of a document that waits for what never comes
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", path)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // which ends what it has started, too
	cmd.WaitDelay = patience
	cmd.Dir = w.folder
	if strings.Contains(script.String(), "git clone") {
		cmd.Dir = filepath.Dir(w.folder)
	}
	cmd.Env = []string{"CHECKOUT=" + w.folder, "PERPETUA_LISTEN=127.0.0.1:0", "PERPETUA_LOG_LEVEL=warn", altered.CheapPasswords + "=1"}
	for _, variable := range os.Environ() {
		// A reader has no Kafka or Postgres named, and neither has a walk, whatever the other tests run on.
		if name, _, _ := strings.Cut(variable, "="); name != "KAFKA_BROKERS" && name != "DATABASE_URL" && !strings.HasPrefix(name, "PERPETUA_") {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	var said output
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		w.t.Fatalf("%s: %v:\n%s", w.file, err, said.said())
	}
	w.compare(blocks, said.said())
	if w.t.Failed() || testing.Verbose() {
		w.t.Logf("%s prints:\n%s", w.file, said.said())
	}
	return said.said()
}

// compare checks that each block prints something, and what the document says that it prints.
func (w *walkthrough) compare(blocks []readmeBlock, said string) {
	w.t.Helper()
	for i, b := range blocks {
		if b.language != "sh" {
			continue
		}
		_, rest, _ := strings.Cut(said, fmt.Sprintf("@@ begin %d\n", i))
		printed, _, ended := strings.Cut(rest, fmt.Sprintf("@@ end %d\n", i))
		if !ended {
			w.t.Errorf("%s:%d: the block did not end", w.file, b.line)
			continue
		}
		if strings.TrimSpace(printed) == "" {
			w.t.Errorf("%s:%d: the block prints nothing: its reader cannot know that it worked", w.file, b.line)
		}
		if strings.Contains(printed, `"type":"about:blank"`) {
			w.t.Errorf("%s:%d: a request of the block is refused:\n%s", w.file, b.line, printed)
		}
		if i+1 < len(blocks) && blocks[i+1].language == "text" && blocks[i+1].before == "" {
			if line, ok := printedLines(printed, blocks[i+1].text); !ok {
				w.t.Errorf("%s:%d: the document says that the block prints\n%s\nand it prints\n%s", w.file, b.line, line, printed)
			}
		}
	}
}

// changing is what differs from run to run: ids, hashes, times, passwords and numbers.
var changing = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32,64}|[0-9]+([-:.T][0-9]+)*Z?`)

// printedLines reports whether the lines of a document were printed in their order, whatever ids, times and numbers they have.
// An ellipsis in the document stands for any text. Else it returns the first line that was not printed.
func printedLines(printed, document string) (missing string, ok bool) {
	lines := strings.Split(changing.ReplaceAllString(printed, "#"), "\n")
	for _, want := range strings.Split(strings.TrimSpace(document), "\n") {
		pattern := regexp.QuoteMeta(changing.ReplaceAllString(strings.TrimSpace(want), "#"))
		expression := regexp.MustCompile("^" + strings.ReplaceAll(pattern, "…", ".*") + "$")
		for len(lines) > 0 && !expression.MatchString(strings.TrimSpace(lines[0])) {
			lines = lines[1:]
		}
		if len(lines) == 0 {
			return want, false
		}
		lines = lines[1:]
	}
	return "", true
}

// needs skips a test where one of the programs that a document uses is missing. A continuous integration, which sets CI, has to
// install them: there the test fails.
func needs(t *testing.T, programs ...string) {
	t.Helper()
	for _, name := range append([]string{"bash", "curl", "jq"}, programs...) {
		program.Need(t, name)
	}
}

// TestContinuousIntegrationHasTheTools checks that .ci/run, which sets CI, installs each program that a test of this package
// needs.
func TestContinuousIntegrationHasTheTools(t *testing.T) {
	script := readDocument(t, ".ci/run")
	_, tools, _ := strings.Cut(script, "for tool in ")
	tools, _, _ = strings.Cut(tools, ";")
	sources, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	called := regexp.MustCompile(`(?:needs|program\.Need|program\.Find)\((?:d\.)?t, ("[^)]*")\)`)
	quoted := regexp.MustCompile(`"([a-z0-9]+)"`)
	found := 0
	for _, source := range sources {
		for _, call := range called.FindAllStringSubmatch(readDocument(t, filepath.Join("cmd/perpetua/e2e", source)), -1) {
			for _, program := range quoted.FindAllStringSubmatch(call[1], -1) {
				found++
				if name := program[1]; !slices.Contains([]string{"sha256sum", "base64"}, name) && !slices.Contains(strings.Fields(tools), name) {
					t.Errorf("%s needs %s, which .ci/run does not install", source, name)
				}
			}
		}
	}
	if found < 8 {
		t.Errorf("%d programs are needed", found)
	}
	if !strings.Contains(script, "export CI=true") {
		t.Error(".ci/run does not set CI, so tests are skipped where a program is missing")
	}
}

// TestReadmeWalk does what the README tells a newcomer to do.
func TestReadmeWalk(t *testing.T) {
	t.Parallel() // it mostly waits, as do the others
	needs(t)
	newWalkthrough(t, "README.md").run()
}

// TestReadmeOfOperation runs the commands of docker/README.md. Where that names brokers or a Postgres, embedded ones take their
// place.
func TestReadmeOfOperation(t *testing.T) {
	t.Parallel()
	needs(t, "zstd", "psql")
	folder, err := projectiontest.Folder("perpetua-readme-kafka-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	kafka, err := broker.Start(context.Background(), broker.Config{Dir: folder, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { kafka.Close() })
	address, _ := bareServer(t)
	database, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	password, _ := database.User.Password()
	admin := fmt.Sprintf("PGHOST=%s PGPORT=%s PGPASSWORD=%s POSTGRES_USER=%s", database.Hostname(), database.Port(), password, database.User.Username())
	newWalkthrough(t, "docker/README.md", "kafka-1:9092,kafka-2:9092,kafka-3:9092", kafka.Addrs()[0], "127.0.0.1:6060", "127.0.0.1:0",
		"PGHOST=db.example PGPASSWORD=secret POSTGRES_USER=admin", admin, "@db.example/", "@"+database.Host+"/").run()
}

// TestReadmeOfTheLog runs the commands of schemas/README.md.
func TestReadmeOfTheLog(t *testing.T) {
	t.Parallel()
	needs(t, "kcat", "psql", "sha256sum")
	newWalkthrough(t, "schemas/README.md").run()
}

// TestReadmeOfClients runs the commands of handlers/README.md, the walk through the onboarding service among them.
func TestReadmeOfClients(t *testing.T) {
	t.Parallel()
	needs(t, "openssl", "python3", "base64")
	said := newWalkthrough(t, "handlers/README.md", "8443", kafkatest.Port(t)).run()
	for _, part := range []string{
		`"reason":"retail_onboarding"`,            // what is required
		`"answer_text":"Engineer"`,                // the response
		`"status": "ongoing"`,                     // after the request for information
		`"result": "success"`,                     // after the approval
		`"type":"entitlementCompleted"`,           // the final webhook
		`"internal_reason": "Seen by two of us."`, // the case
		`["requirements_met","open_requirements`,  // the explanation
		`"status":"finished","result":"success"`,  // as the broker sees it
	} {
		if !strings.Contains(said, part) {
			t.Errorf("the walk through the onboarding service does not print %s", part)
		}
	}
}

// TestReadmeOfTools runs the commands of cmd/README.md.
func TestReadmeOfTools(t *testing.T) {
	t.Parallel()
	needs(t)
	newWalkthrough(t, "cmd/README.md", "127.0.0.1:8090", "127.0.0.1:0").run()
}

// created are the forms in which commands name a file or folder that they create.
var created = regexp.MustCompile(`(?:\s-(?:o|json|out|keyout) |\s--(?:data|to|out) |\s>>? ?|^mkdir -p | tee )([A-Za-z][A-Za-z0-9_./-]*)`)

// TestReadmeFilesAreIgnored checks that git ignores what the commands of the documents create in the reader's folder.
func TestReadmeFilesAreIgnored(t *testing.T) {
	program.Need(t, "git")
	if _, err := os.Stat(filepath.Join(repository, ".git")); err != nil {
		t.Skip("this is no checkout:", err)
	}
	inline := regexp.MustCompile("`[^`\n]+`")
	found := 0
	for _, file := range readmes() {
		commands := inline.FindAllString(readDocument(t, file), -1)
		for _, b := range readmeBlocks(t, file) {
			if b.language == "sh" {
				commands = append(commands, strings.Split(b.text, "\n")...)
			}
		}
		for _, command := range commands {
			for _, m := range created.FindAllStringSubmatch(strings.Trim(command, "`"), -1) {
				name := strings.TrimSuffix(m[1], "/")
				if strings.HasPrefix(name, "beginning") { // where kcat begins to read
					continue
				}
				found++
				ignored := exec.CommandContext(t.Context(), "git", "check-ignore", "--quiet", "--no-index", name+"/")
				ignored.Dir = repository
				if err := ignored.Run(); err != nil {
					t.Errorf("%s: git does not ignore %s, which %q creates (%v)", file, name, command, err)
				}
			}
		}
	}
	if found < 19 {
		t.Errorf("%d files are created", found)
	}
}

// TestReadmeIsShort keeps the README a page that a newcomer finishes.
func TestReadmeIsShort(t *testing.T) {
	if lines := strings.Count(readDocument(t, "README.md"), "\n"); lines > 150 {
		t.Errorf("README.md has %d lines, which is more than 150: say it where its reader looks", lines)
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	unsaid  = regexp.MustCompile("[^a-z0-9 _-]")
)

// anchors returns the names of a document's headings, as code hosts make them.
func anchors(text string) map[string]bool {
	out := make(map[string]bool)
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		out[strings.ReplaceAll(unsaid.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
	}
	return out
}

// TestReadmeLinks checks that every link between the documents leads to a file and a heading that exist.
func TestReadmeLinks(t *testing.T) {
	for _, file := range append(readmes(), "cmd/ARCHITECTURE.md", "domain/trading/testdata/README.md", "domain/trading/testdata/venues/README.md",
		"handlers/trading/explain/README.md", "handlers/onboarding/explain/README.md") {
		for _, m := range link.FindAllStringSubmatch(readDocument(t, file), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			path, anchor, _ := strings.Cut(m[1], "#")
			target := file
			if path != "" {
				target = filepath.Join(filepath.Dir(file), path)
			}
			if _, err := os.Stat(filepath.Join(repository, target)); err != nil {
				t.Errorf("%s links to %s: %v", file, m[1], err)
			} else if anchor != "" && !anchors(readDocument(t, target))[anchor] {
				t.Errorf("%s links to %s, and %s has no such heading", file, m[1], target)
			}
		}
	}
}
