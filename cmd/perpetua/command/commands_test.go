package command

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"flag"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/version"
)

// line runs commands inside the test process and keeps their output.
type line struct{ out, err bytes.Buffer }

func (l *line) run(ctx context.Context, env []string, args ...string) int {
	l.out.Reset()
	l.err.Reset()
	look := func(name string) (string, bool) {
		for _, pair := range slices.Backward(env) {
			if n, v, _ := strings.Cut(pair, "="); n == name {
				return v, true
			}
		}
		return "", false
	}
	return dispatch(ctx, args, settings.IO{In: strings.NewReader(""), Out: &l.out, Err: &l.err, Env: look, Environ: func() []string { return env }})
}

func TestVersionCommand(t *testing.T) {
	var l line
	for _, args := range [][]string{{"version"}, {"--version"}} {
		if code := l.run(t.Context(), nil, args...); code != exitDone || !strings.HasPrefix(l.out.String(), "perpetua "+version.Current().Version+"\n") {
			t.Errorf("%s: %d: %s%s", args, code, &l.out, &l.err)
		}
	}
	var told version.Info
	if code := l.run(t.Context(), nil, "version", "--json"); code != exitDone || json.Unmarshal(l.out.Bytes(), &told) != nil {
		t.Fatalf("%d: %s%s", code, &l.out, &l.err)
	}
	if told.Go != runtime.Version() || told.LogFormat != 1 || told.Rules["onboarding"] < 3 || told.Commit == "" {
		t.Errorf("%+v", told)
	}
	for _, args := range [][]string{{"version", "--yaml"}, {"version", "now"}} {
		if code := l.run(t.Context(), nil, args...); code != exitUsage {
			t.Errorf("%s: %d", args, code)
		}
	}
}

// TestHelp checks that help lists all commands and exit codes, and that the help of a command lists only its own settings.
func TestHelp(t *testing.T) {
	var l line
	if code := l.run(t.Context(), nil, "help"); code != exitDone {
		t.Errorf("%d", code)
	}
	for _, c := range subcommands() {
		names := []string{c.name}
		for _, n := range nested(c.name) {
			names = append(names, c.name+" "+n.name)
		}
		for _, name := range names {
			if !strings.Contains(l.out.String(), "\n  "+name+" ") {
				t.Errorf("help does not list %s", name)
			}
		}
	}
	if !strings.Contains(l.out.String(), "Exit codes:\n  0  ") || !strings.Contains(l.out.String(), "\n  1  ") || !strings.Contains(l.out.String(), "\n  2  ") {
		t.Errorf("help does not list the exit codes: %s", &l.out)
	}
	if code := l.run(t.Context(), nil, "help", "audit"); code != exitDone || !strings.HasPrefix(l.err.String(), "usage: perpetua audit ") {
		t.Errorf("%d: %s", code, &l.err)
	}
	flags := func(args ...string) (out []string) {
		l.run(t.Context(), nil, append(args, "-h")...)
		for _, m := range regexp.MustCompile(`(?m)^  --([a-z-]+)`).FindAllStringSubmatch(l.err.String(), -1) {
			out = append(out, m[1])
		}
		return out
	}
	whole := len(settings.Table())
	for name, want := range map[string]struct {
		has, lacks []string
		most       int
	}{
		"run":   {[]string{"data", "listen", "demo", "sync", "webhook-retries"}, nil, whole},
		"serve": {[]string{"role", "advertise", "listen", "kafka-brokers"}, []string{"demo", "sync"}, whole},
		"follow": {[]string{"rules", "venue-url", "listen", "kafka-brokers", "archive-url", "history", "snapshot-interval", "witness-policy", "trace-ratio", "archive-key-file", "trim", "trim-after"},
			[]string{"scanner-url", "webhook-ca", "egress-proxy", "lake", "public-data", "tlog-tiles", "trim-quorum", "accept-clock", "role", "key-url", "master-key", "compression", "demo"}, 40},
		"cluster":            {[]string{"each", "env", "listen"}, []string{"role", "node-id"}, whole},
		"migrate":            {[]string{"kafka-brokers", "database-url", "topic-prefix"}, []string{"listen", "data", "blob-url"}, 12},
		"config":             {[]string{"json", "listen", "trace-ratio"}, nil, whole + 1},
		"config check":       {[]string{"json", "listen", "trace-ratio"}, nil, whole + 1},
		"log":                {[]string{"journal", "from", "json", "data", "kafka-brokers", "blob-url"}, []string{"listen", "demo", "role", "webhook-ca", "trace-ratio"}, 23},
		"log copy":           {[]string{"from", "to", "json", "compression", "interrupted", "join"}, []string{"listen", "data"}, 24},
		"log archive":        {[]string{"journal", "list", "to", "key-file", "json", "data", "archive-retention", "archive-retention-mode"}, []string{"listen", "trim-after"}, 23},
		"log trim":           {[]string{"journal", "keep", "before", "dry-run", "json", "data", "trim-after", "trim-quorum", "witness-policy", "archive-url", "archive-key-file"}, []string{"listen", "trim"}, 24},
		"log restore":        {[]string{"journal", "from", "json", "data", "archive-url", "compression"}, []string{"listen", "trim-after"}, 22},
		"log compat":         {[]string{"journal", "prepare", "json", "data", "archive-url"}, []string{"listen", "trim-after"}, 22},
		"log parquet":        {[]string{"to", "from", "file", "archive", "journal", "json", "data", "archive-url"}, []string{"listen", "trim-after"}, 25},
		"statement":          {[]string{"customer", "from", "to", "format", "out", "json", "data", "database-url"}, []string{"listen", "kafka-brokers"}, 9},
		"audit":              {[]string{"json", "data", "database-url"}, []string{"listen", "scanner-url"}, 16},
		"audit what-if":      {[]string{"set", "from", "to", "cumulative", "differences", "file", "archive", "json", "data"}, []string{"listen", "scanner-url"}, 25},
		"audit verify":       {[]string{"file", "archive", "rows", "rules", "checkpoint", "key", "chain-only", "json", "data", "database-url"}, []string{"listen", "scanner-url"}, 25},
		"rebuild":            {[]string{"json", "compare-only", "data"}, []string{"listen", "scanner-url"}, 17},
		"admin bootstrap":    {[]string{"json", "data", "demo"}, []string{"listen", "scanner-url"}, 22},
		"admin forget-log":   {[]string{"json", "journal", "data"}, []string{"listen", "scanner-url"}, 17},
		"admin take-over":    {[]string{"json", "key-url", "data"}, []string{"listen", "scanner-url"}, 20},
		"admin reader":       {[]string{"json", "name", "timeout", "data"}, []string{"listen", "scanner-url"}, 20},
		"doctor":             {[]string{"json", "data", "kafka-brokers", "database-url", "key-url", "blob-url"}, []string{"listen", "demo", "role", "scanner-url"}, 26},
		"completion":         {nil, []string{"listen", "data"}, 0},
		"version":            {[]string{"json"}, []string{"data"}, 1},
		"receipt verify":     {[]string{"json", "key", "policy"}, []string{"data"}, 3},
		"monitor":            {[]string{"json", "key", "policy", "url", "state", "stale", "every"}, []string{"data"}, 7},
		"liabilities verify": {[]string{"json", "recorded"}, []string{"data", "listen"}, 2},
	} {
		got := flags(strings.Fields(name)...)
		for _, f := range want.has {
			if !slices.Contains(got, f) {
				t.Errorf("%s: the help lacks --%s", name, f)
			}
		}
		for _, f := range want.lacks {
			if slices.Contains(got, f) {
				t.Errorf("%s: the help lists --%s", name, f)
			}
		}
		if len(got) > want.most {
			t.Errorf("%s: the help lists %d flags: %s", name, len(got), got)
		}
	}
}

// TestHelpDescribesCommands checks that the help of each command begins with its usage, and describes it and its subcommands.
func TestHelpDescribesCommands(t *testing.T) {
	var l line
	describes := func(args []string, summary string) {
		t.Helper()
		code := l.run(t.Context(), nil, append(args, "-h")...)
		if said := l.err.String(); code != exitDone || !strings.HasPrefix(said, "usage: perpetua "+strings.Join(args, " ")) || !strings.Contains(said, "\n"+summary) {
			t.Errorf("%s -h: %d: %s", args, code, said)
		}
	}
	for _, c := range subcommands() {
		if c.name == "admin" { // lists operations instead
			continue
		}
		describes([]string{c.name}, c.summary)
		for _, n := range nested(c.name) {
			if !strings.Contains(l.err.String(), "\n  "+c.name+" "+n.name+" ") {
				t.Errorf("%s -h does not list %s: %s", c.name, n.name, &l.err)
			}
		}
		for _, n := range nested(c.name) {
			describes([]string{c.name, n.name}, n.summary)
		}
	}
	describes([]string{"admin", "users", "list"}, "list the users")
	for _, n := range nested("admin") {
		describes([]string{"admin", n.name}, n.summary)
	}
	for _, args := range [][]string{{"admin", "help"}, {"admin", "-h"}} {
		code := l.run(t.Context(), nil, args...)
		for _, want := range []string{"\n  users list ", "\n  bootstrap ", "\n  forget-log ", "\n  take-over ", "\n  reader "} {
			if code != exitDone || !strings.Contains(l.err.String(), want) {
				t.Errorf("%s: %d: no %q in %s", args, code, want, &l.err)
			}
		}
	}
}

// TestUsageErrors checks that a wrong command line is one line of error that says what to do.
func TestUsageErrors(t *testing.T) {
	var l line
	for text, want := range map[string]string{
		"frobnicate":                           `perpetua: there is no command "frobnicate" (perpetua help lists the commands)`,
		"help frobnicate":                      `perpetua: there is no command "frobnicate" (perpetua help lists the commands)`,
		"log --nonsense":                       "perpetua log: there is no flag --nonsense (perpetua log -h lists the flags)",
		"log --to":                             "perpetua log: a value is needed after --to (perpetua log -h lists the flags)",
		"log --from x":                         `perpetua log: invalid value "x" for flag --from: parse error (perpetua log -h lists the flags)`,
		"log --check-all=no":                   `perpetua log: invalid boolean value "no" for --check-all: parse error (perpetua log -h lists the flags)`,
		`log --from ":flag-x`:                  `perpetua log: invalid value "\":flag-x" for flag --from: parse error (perpetua log -h lists the flags)`,
		"log frobnicate":                       `perpetua log: unexpected argument "frobnicate" (perpetua log -h describes the command)`,
		"version --yaml":                       "perpetua version: there is no flag --yaml (perpetua version -h lists the flags)",
		"receipt":                              "perpetua receipt: usage: perpetua receipt verify FILE --key KEY [flags]",
		"liabilities":                          "perpetua liabilities: usage: perpetua liabilities verify FILE [flags]",
		"liabilities verify":                   "perpetua liabilities verify: one FILE is needed, with the response of GET /v1/customers/CODE/liability-proof",
		"admin":                                "perpetua admin: name a group and a verb, such as users list (perpetua admin help lists them), or one of bootstrap, forget-log, take-over, reader",
		"admin users list --nonsense":          "perpetua admin: there is no flag --nonsense (perpetua admin users list -h lists the flags)",
		"monitor --url https://a.example --to": "perpetua monitor: there is no flag --to (perpetua monitor -h lists the flags)",
	} {
		if code := l.run(t.Context(), nil, strings.Fields(text)...); code != exitUsage || l.err.String() != want+"\n" || l.out.Len() > 0 {
			t.Errorf("%s: %d: %s%s", text, code, &l.out, &l.err)
		}
	}
}

// TestEveryToolHasJSON checks that each command that prints results accepts --json.
func TestEveryToolHasJSON(t *testing.T) {
	for _, s := range spots(t.Context()) {
		switch name := strings.Join(s.path, " "); name {
		case "", "run", "serve", "follow", "cluster", "migrate", "completion", "admin", "receipt", "liabilities": // no results, or none of its own
		default:
			if s.path[0] == "admin" && (len(s.path) < 2 || !slices.ContainsFunc(nested("admin"), func(c subcommand) bool { return c.name == s.path[1] })) {
				continue // prints JSON always; its --json is the body to send
			}
			if !slices.ContainsFunc(s.words, func(w word) bool { return w.text == "--json" }) {
				t.Errorf("%s has no --json", name)
			}
		}
	}
}

func TestConfigCheck(t *testing.T) {
	var l line
	for name, test := range map[string]struct {
		env  []string
		args []string
		code int
		says []string
	}{
		"nothing wrong":         {nil, nil, exitDone, []string{"the settings can be used"}},
		"what is known":         {[]string{"PERPETUA_KAFKA_BROKERS=a:1", "PERPETUA_ADMIN_URL=x", "PERPETUA_TEST_KILLS=1", "HOME=/"}, nil, exitDone, []string{"can be used"}},
		"a misspelled variable": {[]string{"PERPETUA_KAFKA_BROKER=a:1"}, nil, exitFailed, []string{"PERPETUA_KAFKA_BROKER is not a setting: did you mean PERPETUA_KAFKA_BROKERS?"}},
		"two letters swapped":   {[]string{"PERPETUA_LSITEN=:1"}, nil, exitFailed, []string{"did you mean PERPETUA_LISTEN?"}},
		"nothing like it":       {[]string{"PERPETUA_COLOUR=red"}, nil, exitFailed, []string{"PERPETUA_COLOUR is not a setting\n"}},
		"all at once": {[]string{"PERPETUA_LISTEN=nonsense", "PERPETUA_LOG_LEVEL=loud"}, []string{"--role", "boss", "--trace-ratio", "2", "--key-url", "s3://", "--master-key", "abc"},
			exitFailed, []string{"--listen takes", "--log-level takes", "--role takes", "--trace-ratio takes", "s3://bucket?region=", "32 bytes in padded base64"}},
		"URLs": {nil, []string{"--advertise", "10.0.0.5:8080", "--trace-endpoint", "collector", "--cors-origins", "https://a.example, a b", "--database-url", "nonsense"},
			exitFailed, []string{"--advertise takes", "--trace-endpoint: ", `not "a b"`, "--database-url takes"}},
		"good URLs": {nil, []string{"--advertise", "https://engine.test:8443/", "--trace-endpoint", "http://localhost:4318", "--cors-origins", "https://a.example,http://127.0.0.1:3000",
			"--database-url", "postgres://u:p@h/d", "--topic-prefix", "a.b-C_1"}, exitDone, []string{"can be used"}},
		"a Kafka without a password":      {nil, []string{"--kafka-sasl", "plain", "--kafka-user", "engine"}, exitFailed, []string{"--kafka-sasl plain needs --kafka-user and --kafka-password"}},
		"authorities without encryption":  {nil, []string{"--kafka-ca-file", "ca.pem"}, exitFailed, []string{"--kafka-ca-file needs --kafka-tls"}},
		"a service that is none":          {nil, []string{"--kms-url", "secret"}, exitFailed, []string{"--kms-url: the value is not a URL"}},
		"a service of another binary":     {nil, []string{"--kms-url", "nosuch://secret"}, exitFailed, []string{`--kms-url: this binary has no service "nosuch"`}},
		"a short key":                     {nil, []string{"--kms-url", "base64key://abc"}, exitFailed, []string{"--kms-url: base64key takes 32 bytes"}},
		"a URL without its key":           {nil, []string{"--kms-url", "base64key://"}, exitFailed, []string{"--kms-url: base64key takes 32 bytes"}},
		"a prefix that no topic may have": {nil, []string{"--topic-prefix", "a b"}, exitFailed, []string{"--topic-prefix takes"}},
		"a switch that is none":           {[]string{"PERPETUA_SYNC=maybe"}, nil, exitFailed, []string{"PERPETUA_SYNC: --sync takes true or false"}},
	} {
		if code := l.run(t.Context(), test.env, append([]string{"config", "check"}, test.args...)...); code != test.code {
			t.Errorf("%s: %d: %s%s", name, code, &l.out, &l.err)
		}
		for _, want := range test.says {
			if !strings.Contains(l.out.String(), want) {
				t.Errorf("%s: it does not say %q: %s", name, want, &l.out)
			}
		}
		if code := l.run(t.Context(), test.env, append([]string{"config", "check", "--json"}, test.args...)...); code != test.code {
			t.Errorf("%s: --json: %d", name, code)
		}
		var told struct {
			OK       *bool
			Problems []string
			Unknown  []settings.Unknown `json:"unknown_variables"`
		}
		if err := json.Unmarshal(l.out.Bytes(), &told); err != nil || told.OK == nil || *told.OK != (test.code == exitDone) ||
			len(told.Problems)+len(told.Unknown) != len(test.says) && test.code != exitDone {
			t.Errorf("%s: %v: %s", name, err, &l.out)
		}
	}
	var rows []settings.Row
	if code := l.run(t.Context(), []string{"PERPETUA_MASTER_KEY=c2VjcmV0", "KAFKA_BROKERS=a:1"}, "config", "--json"); code != exitDone || json.Unmarshal(l.out.Bytes(), &rows) != nil {
		t.Fatalf("%d: %s", code, &l.out)
	}
	for _, want := range []settings.Row{{Name: "master-key", Value: "(set)", Source: "PERPETUA_MASTER_KEY"}, {Name: "kafka-brokers", Value: "a:1", Source: "KAFKA_BROKERS"}, {Name: "listen", Value: "127.0.0.1:8080", Source: "default"}} {
		if !slices.Contains(rows, want) {
			t.Errorf("%+v is not in %s", want, &l.out)
		}
	}
}

// TestFoundBeforeAnythingStarts checks that wrong settings and missing resources are reported in one line, before the broker and
// Postgres are started.
func TestFoundBeforeAnythingStarts(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	const down = "127.0.0.1:1" // the system gives this port to nobody, as it may one that was free a moment ago
	guarded, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(), kfake.Superuser("PLAIN", "admin", "right"))
	if err != nil {
		t.Fatal(err)
	}
	defer guarded.Close()
	https := httptest.NewTLSServer(http.NotFoundHandler()) // for its certificate, which no authority of this machine signed
	defer https.Close()
	encrypted, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.TLS(&tls.Config{Certificates: https.TLS.Certificates}))
	if err != nil {
		t.Fatal(err)
	}
	defer encrypted.Close()
	tlsOnly := encrypted.ListenAddrs()[0]
	missing := filepath.Join(t.TempDir(), "missing")
	kafka := func(broker string, more ...string) []string {
		return append([]string{"--kafka-brokers", broker}, more...)
	}
	key := func(of string) string { return of + strings.Repeat("A", 42) + "=" }
	for name, test := range map[string]struct {
		before map[string]string // files of the data folder
		args   []string
		code   int
		says   string
	}{
		"a wrong address":           {nil, []string{"--listen", "nonsense"}, exitUsage, "--listen takes an address like 127.0.0.1:8080"},
		"a wrong port":              {nil, []string{"--listen", "127.0.0.1:http2x"}, exitUsage, "--listen takes an address like 127.0.0.1:8080"},
		"another host's address":    {nil, []string{"--listen", "192.0.2.1:0"}, exitFailed, "--listen: listen tcp 192.0.2.1:0"},
		"a busy port":               {nil, []string{"--listen", busy.Addr().String()}, exitFailed, "another process listens on " + busy.Addr().String()},
		"a busy port of profiles":   {nil, []string{"--debug-listen", busy.Addr().String()}, exitFailed, "--debug-listen: another process listens on"},
		"a key that is none":        {nil, []string{"--master-key", "abc"}, exitUsage, "32 bytes in padded base64"},
		"another key":               {map[string]string{keyID: "0123abcd\n", "kafka/meta.json": "{}"}, []string{"--master-key", key("Q")}, exitFailed, "sealed with master key 0123abcd, and this is master key"},
		"no key any more":           {map[string]string{keyID: "0123abcd\n", "kafka/meta.json": "{}"}, nil, exitFailed, "there is no master key"},
		"a damaged key":             {map[string]string{"keys/master.key": "x"}, nil, exitFailed, "master key"},
		"a missing bucket":          {nil, []string{"--blob-url", "file://" + missing + "?create_dir=false"}, exitFailed, "no such file or directory"},
		"a missing key store":       {nil, []string{"--key-url", "file://" + missing + "?create_dir=false"}, exitFailed, "there is no folder "},
		"a bucket without a name":   {nil, []string{"--key-url", "s3://"}, exitUsage, "--key-url: s3: has no bucket name: use a URL like s3://bucket?region=eu-central-1"},
		"a bucket without a driver": {nil, []string{"--key-url", "s3://keys"}, exitUsage, "go build -tags cloud ./cmd/perpetua"},
		"no such kind of store":     {nil, []string{"--blob-url", "ftp://keys"}, exitUsage, `unknown scheme "ftp"`},
		"Kafka is down":             {nil, kafka(down), exitFailed, "Kafka at " + down + " cannot be used: "},
		"Kafka's port is none":      {nil, kafka("127.0.0.1:99999"), exitFailed, "invalid port"},
		"Kafka's host is unknown":   {nil, kafka("nowhere.invalid:9092"), exitFailed, "no such host"},
		"Kafka of a stranger":       {nil, kafka(tlsOnly, "--kafka-tls"), exitFailed, "failed to verify certificate"},
		"no file of authorities":    {nil, kafka(guarded.ListenAddrs()[0], "--kafka-tls", "--kafka-ca-file", missing), exitUsage, "no such file"},
		"Kafka refuses the user": {nil, kafka(guarded.ListenAddrs()[0], "--kafka-sasl", "plain", "--kafka-user", "admin", "--kafka-password", "secret"),
			exitFailed, "Kafka at " + guarded.ListenAddrs()[0] + " cannot be used: "},
		"Postgres is down": {nil, []string{"--database-url", "postgres://u:secret@" + down + "/x"}, exitFailed, "Postgres at " + down + " cannot be used: "},
	} {
		for _, command := range []string{"run", "cluster"} {
			t.Run(command+"/"+name, func(t *testing.T) {
				dir := t.TempDir()
				for file, content := range test.before {
					path := filepath.Join(dir, file)
					if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				var l line
				code := l.run(t.Context(), []string{"PERPETUA_LISTN=:1"}, append([]string{command, "--data", dir, "--demo=false", "--listen", "127.0.0.1:0"}, test.args...)...)
				lines := strings.Split(strings.TrimSpace(l.err.String()), "\n")
				last := lines[len(lines)-1]
				if code != test.code || !strings.HasPrefix(last, "perpetua "+command+": ") || !strings.Contains(last, test.says) || strings.Contains(last, "secret") {
					t.Errorf("%d: %s", code, last)
				}
				if len(lines) != 3 || !strings.Contains(lines[0], `msg="perpetua `+command+`" version=`) || !strings.Contains(lines[1], "PERPETUA_LISTN nearest=PERPETUA_LISTEN") {
					t.Errorf("it says\n%s", &l.err)
				}
				for _, started := range []string{"kafka/topics.json", "postgres", "engine-1"} {
					if _, err := os.Stat(filepath.Join(dir, started)); err == nil {
						t.Errorf("%s is there: something was started", started)
					}
				}
			})
		}
	}
}

// keyID is the file of a data folder that holds the id of the master key.
const keyID = "master-key-id"

// TestErrorsAreOneLine: pgx writes a line for each address that it tried.
func TestErrorsAreOneLine(t *testing.T) {
	got := oneLine("migrate: failed to connect to `user=x`:\n\t127.0.0.1:1: refused\n\t127.0.0.1:1: refused\nand more")
	if want := "migrate: failed to connect to `user=x`: 127.0.0.1:1: refused; and more"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if flag.ErrHelp.Error() != oneLine(flag.ErrHelp.Error()) {
		t.Error("one line is changed")
	}
}

// TestErrorsNameTheSubcommand gives a wrong flag to each command, and to each of its subcommands.
func TestErrorsNameTheSubcommand(t *testing.T) {
	var l line
	check := func(args ...string) {
		t.Helper()
		name := strings.Join(args, " ")
		if code := l.run(t.Context(), nil, append(args, "--no-such-flag")...); code == exitDone || !strings.HasPrefix(l.err.String(), "perpetua "+name+": ") {
			t.Errorf("%s: %d: %s", name, code, &l.err)
		}
	}
	for _, name := range []string{"log", "audit", "config", "admin"} {
		for _, n := range nested(name) {
			check(name, n.name)
		}
	}
	check("log")
	check("doctor")
}
