package e2e

import (
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/command"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/node"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
)

const dockerDir = "../../../docker/"

// composeService is what this test looks at of a service.
type composeService struct {
	Image, Hostname, Restart string
	Command                  []string
	EnvFile                  []string `yaml:"env_file"`
	Volumes                  []string
	Environment              map[string]string
	DependsOn                any `yaml:"depends_on"`
	Healthcheck              struct {
		Test    []string
		Disable bool
	}
}

// deployment is what docker/ holds.
type deployment struct {
	t        *testing.T
	services map[string]composeService
	secrets  map[string]string // of env.example, each with a value of its own
	used     map[string]bool   // of them
	image    map[string]string // the image's environment
	settings map[string]bool   // the variables that the binary reads
}

func readDeployment(t *testing.T) *deployment {
	t.Helper()
	var compose struct{ Services map[string]composeService }
	readYAML(t, dockerDir+"compose.yaml", &compose)
	d := &deployment{t: t, services: compose.Services, used: make(map[string]bool), settings: make(map[string]bool)}
	for _, s := range settings.Table() {
		d.settings[s.Variable()] = true
	}
	d.secrets = assignments(t, "env.example", `(?m)^#?([A-Z_]+)=(.*)$`)
	for name := range d.secrets {
		switch name {
		case "PERPETUA_MASTER_KEY":
			d.secrets[name] = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
		case "PERPETUA_TRACE_ENDPOINT", "PERPETUA_TRACE_RATIO": // have values that can be used
		default:
			d.secrets[name] = "the" + strings.ReplaceAll(name, "_", "")
		}
	}
	d.image = assignments(t, "Dockerfile", `(PERPETUA_[A-Z_]+)=(\S+)`)
	return d
}

// assignments returns what a pattern finds in a file: names and their values.
func assignments(t *testing.T, file, pattern string) map[string]string {
	t.Helper()
	out := make(map[string]string)
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(readText(t, file), -1) {
		out[m[1]] = m[2]
	}
	return out
}

func readText(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dockerDir, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

var interpolated = regexp.MustCompile(`\$\{([A-Z_]+)(:[-?][^}]*)?\}`)

// environment returns what a service's process finds in its environment: the image's, then the files', then compose's own.
func (d *deployment) environment(name string) map[string]string {
	d.t.Helper()
	s, env := d.services[name], make(map[string]string)
	if d.isNode(name) {
		for k, v := range d.image {
			env[k] = v
		}
	}
	for _, file := range s.EnvFile {
		for k, v := range assignments(d.t, file, `(?m)^([A-Z_]+)=(.*)$`) {
			env[k] = v
		}
	}
	for k, v := range s.Environment {
		env[k] = interpolated.ReplaceAllStringFunc(v, func(reference string) string {
			variable := interpolated.FindStringSubmatch(reference)[1]
			value, there := d.secrets[variable]
			if d.used[variable] = true; !there {
				d.t.Errorf("%s: ${%s} is not in env.example", name, variable)
			}
			return value
		})
	}
	return env
}

// isNode reports whether a service runs the binary.
func (d *deployment) isNode(name string) bool { return d.services[name].Image == "perpetua" }

// TestComposeFitsTheBinary holds what the containers are told against what the binary understands, and what they are told
// of each other against each other.
func TestComposeFitsTheBinary(t *testing.T) {
	d := readDeployment(t)
	roles := make(map[string]int)
	for name, s := range d.services {
		env := d.environment(name)
		d.checkDependencies(name)
		if !d.isNode(name) {
			continue
		}
		for variable := range env {
			if strings.HasPrefix(variable, "PERPETUA_") && !d.settings[variable] {
				t.Errorf("%s: there is no setting $%s", name, variable)
			}
		}
		if len(s.Command) == 0 {
			roles[env["PERPETUA_ROLE"]]++
			d.checkNode(name, env)
		} else if command.Main([]string{s.Command[0], "-h"}, settings.IO{Out: io.Discard, Err: io.Discard, Env: os.LookupEnv}) != exitDone {
			t.Errorf("%s: there is no command %q", name, s.Command)
		}
		d.checkSettings(name, env)
	}
	if want := map[string]int{"engine": 2, "api": 1, "projector": 1, "live": 1, "process,sender,tlog,archive,history,liabilities": 1}; fmt.Sprint(roles) != fmt.Sprint(want) {
		t.Errorf("the nodes are %v, want %v", roles, want)
	}
	for variable := range d.secrets {
		if !d.used[variable] {
			t.Errorf("env.example has %s, which nothing uses", variable)
		}
	}
}

// checkSettings has the binary read the environment of one that runs it.
func (d *deployment) checkSettings(name string, env map[string]string) {
	t := d.t
	s, err := settings.Parse(name, nil, settings.IO{Err: io.Discard, Env: func(variable string) (string, bool) { v, ok := env[variable]; return v, ok }}, nil)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	_, role := node.ParseRoles(s.Roles)
	_, kafka := s.JournalConfig(s.Brokers())
	_, logs := s.Logger(io.Discard)
	store := s.NeedKeyStore()
	s.Stores.KeyURL, s.Data = "", t.TempDir()
	_, key := s.FindMaster(t.Context())
	_, records := strconv.ParseInt(s.Snapshots.Records, 10, 64)
	_, interval := time.ParseDuration(s.Snapshots.Interval)
	_, ratio := strconv.ParseFloat(s.Trace.Ratio, 64)
	for _, err := range []error{s.NeedCluster(), store, role, kafka, logs, key, records, interval, ratio} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, broker := range s.Brokers() {
		host, port, _ := strings.Cut(broker, ":")
		if d.services[host].Hostname != host || port != "9092" {
			t.Errorf("%s: there is no broker %s", name, broker)
		}
	}
	if s.Kafka.Password != d.secrets["KAFKA_"+strings.ToUpper(s.Kafka.User)+"_PASSWORD"] || !strings.Contains(readText(t, "kafka/start.sh"), "user_"+s.Kafka.User+"=") {
		t.Errorf("%s: the Kafka user %q has another password, or is none", name, s.Kafka.User)
	}
	postgres := d.environment("postgres")
	want := (&url.URL{Scheme: "postgres", User: url.UserPassword("perpetua_venue", postgres["POSTGRES_VENUE_PASSWORD"]),
		Host: "postgres:5432", Path: "/" + postgres["POSTGRES_DB"], RawQuery: "sslmode=disable"}).String()
	if s.DatabaseURL != want {
		t.Errorf("%s: the database is at %s, want %s", name, s.DatabaseURL, want)
	}
}

// checkNode checks that a node is where it says that it is, and is asked there for its health.
func (d *deployment) checkNode(name string, env map[string]string) {
	_, port, _ := strings.Cut(env["PERPETUA_LISTEN"], ":")
	if want := "http://" + name + ":" + port; port == "" || env["PERPETUA_ADVERTISE"] != want || env["PERPETUA_NODE_ID"] != name {
		d.t.Errorf("%s: it is %s at %s, want %s", name, env["PERPETUA_NODE_ID"], env["PERPETUA_ADVERTISE"], want)
	}
	dockerfile := readText(d.t, "Dockerfile")
	for _, want := range []string{"http://127.0.0.1:" + port + "/readyz", "EXPOSE " + port + "\n", `ENTRYPOINT ["perpetua"]`, `CMD ["serve"]`} {
		if !strings.Contains(dockerfile, want) {
			d.t.Errorf("the image does not have %q", want)
		}
	}
}

// checkDependencies checks that what a service waits for can happen, and that its script gets what it needs.
func (d *deployment) checkDependencies(name string) {
	s := d.services[name]
	conditions := make(map[string]string)
	switch on := s.DependsOn.(type) {
	case map[string]any:
		for other, c := range on {
			conditions[other] = fmt.Sprint(c.(map[string]any)["condition"])
		}
	case []any:
		for _, other := range on {
			conditions[fmt.Sprint(other)] = "service_started"
		}
	}
	for other, condition := range conditions {
		o, there := d.services[other]
		ends := o.Restart == "" || o.Restart == "no"
		healthy := (len(o.Healthcheck.Test) > 0 || d.isNode(other)) && !o.Healthcheck.Disable
		if !there || condition == "service_completed_successfully" && !ends || condition == "service_healthy" && !healthy {
			d.t.Errorf("%s waits in vain for %s: %s", name, other, condition)
		}
	}
	if len(s.Command) < 2 || s.Command[0] != "sh" {
		return
	}
	env := d.environment(name)
	script := readText(d.t, "kafka/"+filepath.Base(s.Command[1]))
	for _, m := range regexp.MustCompile(`\$([A-Z][A-Z_]+)`).FindAllStringSubmatch(script, -1) { // ${…} have defaults
		if _, there := env[m[1]]; !there {
			d.t.Errorf("%s: %s needs $%s", name, s.Command[1], m[1])
		}
	}
}

// TestControllersOfTheirOwn checks the layout with dedicated controllers: every broker asks them, none is one, and each node
// has an id of its own.
func TestControllersOfTheirOwn(t *testing.T) {
	t.Parallel()
	var layout struct {
		Services map[string]composeService
		Volumes  map[string]any
	}
	readYAML(t, dockerDir+"compose.controllers.yaml", &layout)
	base := readDeployment(t)
	var voters []string
	roles, ids := make(map[string]int), make(map[string]string)
	for name, s := range layout.Services {
		command := s.Command
		if command == nil { // it adds to the service of compose.yaml
			command = base.services[name].Command
		}
		if len(command) != 3 || ids[command[2]] != "" {
			t.Fatalf("%s is started with %v, as %s is", name, command, ids[command[2]])
		}
		ids[command[2]] = name
		role := s.Environment["KAFKA_ROLES"]
		roles[role]++
		if role != "controller" {
			continue
		}
		voters = append(voters, command[2]+"@"+s.Hostname+":9093")
		if _, there := layout.Volumes[name]; s.Hostname != name || s.Environment["KAFKA_HOST"] != name || !there {
			t.Errorf("%s is called %q and listens as %q, and has a volume: %v", name, s.Hostname, s.Environment["KAFKA_HOST"], there)
		}
		for _, m := range regexp.MustCompile(`\$([A-Z][A-Z_]+)`).FindAllStringSubmatch(readText(t, "kafka/start.sh"), -1) {
			if s.Environment[m[1]] == "" {
				t.Errorf("%s: start.sh needs $%s", name, m[1])
			}
		}
	}
	slices.Sort(voters)
	for name, s := range layout.Services {
		if s.Environment["KAFKA_VOTERS"] != strings.Join(voters, ",") {
			t.Errorf("%s takes %s for the controllers, which are %v", name, s.Environment["KAFKA_VOTERS"], voters)
		}
	}
	if roles["controller"] != 3 || roles["broker"] != 3 || len(roles) != 2 {
		t.Errorf("the nodes are %v", roles)
	}
}

// TestBrokersAreMissedSoon checks the settings by which Kafka replaces a node that has died: the times of our own clients go
// with them, and a session shorter than six heartbeats loses brokers that live.
func TestBrokersAreMissedSoon(t *testing.T) {
	t.Parallel()
	has := assignments(t, "kafka/start.sh", `(?m)^([a-z.]+)=(\d+)$`)
	for name, want := range map[string]string{"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "300",
		"controller.quorum.fetch.timeout.ms": "1000", "controller.quorum.election.timeout.ms": "300",
		"controller.quorum.election.backoff.max.ms": "300", "replica.lag.time.max.ms": "5000"} {
		if has[name] != want {
			t.Errorf("%s is %q instead of %s", name, has[name], want)
		}
	}
}
