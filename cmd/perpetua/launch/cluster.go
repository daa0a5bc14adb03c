package launch

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/local"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/docker"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// roleNames returns the kinds of nodes, named after their settings files, in the order in which they stop: nodes that
// others depend on come last.
func roleNames() []string { return []string{"live", "api", "worker", "projector", "engine"} }

// Cluster starts several nodes of each role, two by default, as processes on one broker and one Postgres, which are
// embedded unless named. The nodes get their settings from the same files as a deployment's nodes. It is meant for
// trying out a cluster on one machine, for example by killing a node.
func Cluster(ctx context.Context, args []string, std settings.IO) error {
	t := &together{journals: journals.All(), out: std.Out, err: local.NewLines(std.Err)}
	var envDir string
	s, err := settings.Parse("cluster", args, std, func(flags *flag.FlagSet) {
		flags.StringVar(&envDir, "env", "", "folder of the files node.env and ROLE.env (default: docker/env, which is embedded)")
		flags.IntVar(&t.each, "each", 2, "nodes of each role")
	})
	if err != nil {
		return err
	}
	if t.each < 1 || t.each > 9 {
		return settings.Usagef("--each takes 1 to 9, not %d", t.each)
	}
	if t.log, err = s.Logger(std.Err); err != nil {
		return err
	}
	if err := begin("cluster", s, t.log); err != nil {
		return err
	}
	t.settings = s
	if t.env, err = envFiles(envDir); err != nil {
		return err
	}
	return unlessStopped(ctx, t.log, t.run(ctx))
}

// together is a set of nodes and their shared resources.
type together struct {
	settings *settings.Settings
	journals journals.Table
	env      fs.FS // with node.env and ROLE.env
	each     int
	embedded bool // this process runs the broker
	log      *slog.Logger
	out      io.Writer
	err      *local.Lines

	nodes []*local.Process
	files []nodeFile
}

// nodeFile describes one node in run.json.
type nodeFile struct {
	Name      string `json:"name"`
	PID       int    `json:"pid"`
	REST      string `json:"rest"`
	WebSocket string `json:"websocket,omitempty"`
}

// clusterFile is the run.json of a cluster. It has the members of a single node's run.json, with the addresses of the
// first api node and the first live node, and a list of all nodes.
type clusterFile struct {
	local.RunFile
	Nodes []nodeFile `json:"nodes"`
}

func (t *together) run(ctx context.Context) (err error) {
	folder, err := local.OpenFolderSoon(ctx, t.settings.Data, t.log, (*local.Folder).CheckVenue)
	if err != nil {
		return err
	}
	defer folder.Close()
	if err := local.RemoveRunFile(folder.Path("run.json")); err != nil {
		return err
	}
	named, err := prepare(ctx, t.settings, folder)
	if err != nil {
		return err
	}
	if named != nil {
		defer named.Close()
	}
	// Deferred before the nodes' stop, so that the services close after the nodes, which drain into the broker. The
	// broker's error comes first in the message, because it causes the others.
	services, err := local.StartServices(ctx, t.settings, folder, t.log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(services.Err(), err, services.Close()) }()
	ctx, release := services.While(ctx)
	defer release()
	t.embedded = len(t.settings.Brokers()) == 0
	t.settings.Kafka.Brokers, t.settings.DatabaseURL = strings.Join(services.Brokers, ","), services.DatabaseURL()
	// One bucket for all nodes, which have separate data folders.
	if t.settings.Stores.BlobURL, err = t.settings.BucketURL(); err != nil {
		return err
	}
	rows, err := openRows(ctx, named, services)
	if err != nil {
		return err
	}
	fresh, err := found(ctx, t.settings, services.Brokers, t.journals, database{rows, t.settings.DatabaseURL}, t.log)
	rows.Close() // the nodes have pools of their own
	if err != nil {
		return err
	}
	if t.settings.Stores.KeyURL, err = t.settings.KeyStoreURL(); err != nil { // one key store for all nodes, for the same reason
		return err
	}
	box, err := t.settings.OpenMaster(ctx, fresh)
	if err != nil { // the nodes find the key in the store or in their environment, as this command does
		return err
	}
	return t.serve(ctx, folder, services, box)
}

// serve starts the nodes, serves until the context ends, and then stops them.
func (t *together) serve(ctx context.Context, folder *local.Folder, services *local.Services, box *seal.Box) (err error) {
	defer func() { err = errors.Join(err, t.stop()) }() // also stops the nodes that were started before one failed to start
	g, ctx := errgroup.WithContext(ctx)
	// The nodes do not become ready without Postgres.
	g.Go(func() error {
		return services.Supervise(ctx, func() error {
			if services.DatabaseURL() != t.settings.DatabaseURL { // the URL with which the nodes were started
				return errors.New("the embedded Postgres came back at another port: start the cluster again")
			}
			return nil
		})
	})
	g.Go(func() error { return t.open(ctx, folder, services, box) })
	return errors.Join(g.Wait(), local.RemoveRunFile(folder.Path("run.json")))
}

// open starts the nodes, and writes and prints their addresses once all are ready.
func (t *together) open(ctx context.Context, folder *local.Folder, services *local.Services, box *seal.Box) error {
	if err := t.start(ctx, folder); err != nil {
		return err
	}
	users, err := t.bootstrap(ctx, folder)
	if err != nil {
		return err
	}
	if err := noteKey(folder, t.embedded, box); err != nil {
		return err
	}
	r, runJSON := t.describe(services, users), folder.Path("run.json")
	if err := local.WriteRunFile(runJSON, r); err != nil {
		return err
	}
	r.print(t.out, runJSON)
	t.tellOfEnds(ctx)
	return nil
}

// tellOfEnds logs each node that ends before the context does. The other nodes continue, which is the purpose of trying
// out a cluster. The goroutines end with the nodes, which stop waits for.
func (t *together) tellOfEnds(ctx context.Context) {
	for _, p := range t.nodes {
		go func() {
			<-p.Done()
			if ctx.Err() == nil {
				t.log.Warn("a node has ended", "node", p.Name, "how", p.State())
			}
		}()
	}
}

// start starts the nodes and waits until all are ready.
func (t *together) start(ctx context.Context, folder *local.Folder) error {
	roles := roleNames()
	slices.Reverse(roles) // engines first
	for _, role := range roles {
		files, err := readEnvFiles(t.env, "node.env", role+".env")
		if err != nil {
			return err
		}
		for i := range t.each {
			name := fmt.Sprintf("%s-%d", role, i+1)
			dir := folder.Path("nodes", name)
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
			listen := "127.0.0.1:0"
			if role == "api" && i == 0 {
				listen = t.settings.HTTP.Listen
			}
			env := t.environment(files, "PERPETUA_DATA="+dir, "PERPETUA_NODE_ID="+name, "PERPETUA_LISTEN="+listen)
			p, err := local.StartProcess(name, dir, env, t.err)
			if err != nil {
				return err
			}
			t.nodes = append(t.nodes, p)
		}
	}
	for _, p := range t.nodes {
		r, err := p.Await(ctx)
		if err != nil {
			return err
		}
		n := nodeFile{Name: p.Name, PID: r.PID, REST: r.REST}
		if strings.HasPrefix(p.Name, "live") {
			n.WebSocket = r.WebSocket
		}
		t.files = append(t.files, n)
	}
	return nil
}

// environment returns the environment of a node. A node's files come first, then the settings given to this command,
// then overrides; later values override earlier ones.
func (t *together) environment(files []string, overrides ...string) []string {
	var env []string
	table := settings.Table()
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		if !slices.ContainsFunc(table, func(d settings.Setting) bool { return name == d.Variable() || slices.Contains(d.Aliases, name) }) {
			env = append(env, v)
		}
	}
	env = append(env, files...)
	for _, d := range table {
		switch d.Name {
		case "data", "listen", "advertise", "node-id", "role":
			continue
		}
		given := t.settings.Source(d.Name) != "default"
		if given || d.Name == "kafka-brokers" || d.Name == "database-url" || d.Name == "blob-url" || d.Name == "key-url" {
			env = append(env, d.Variable()+"="+d.Value(t.settings))
		}
	}
	return append(env, overrides...)
}

// envFiles returns the files in dir, or the embedded ones if dir is empty.
func envFiles(dir string) (fs.FS, error) {
	if dir == "" {
		return fs.Sub(docker.Env, "env")
	}
	return os.DirFS(dir), nil
}

// readEnvFiles returns the NAME=value lines of files. It ignores empty lines and lines that begin with #.
func readEnvFiles(files fs.FS, paths ...string) (pairs []string, err error) {
	for _, path := range paths {
		content, err := fs.ReadFile(files, path)
		if err != nil {
			return nil, fmt.Errorf("settings of a node: %w", err)
		}
		scanner := bufio.NewScanner(strings.NewReader(string(content)))
		for n := 1; scanner.Scan(); n++ {
			line := strings.TrimSpace(scanner.Text())
			if line == "" || line[0] == '#' {
				continue
			}
			if name, _, ok := strings.Cut(line, "="); !ok || name == "" {
				return nil, fmt.Errorf("settings of a node: %s:%d is no NAME=value", path, n)
			}
			pairs = append(pairs, line)
		}
	}
	return pairs, nil
}

// bootstrap creates the first users and instruments through the engines.
func (t *together) bootstrap(ctx context.Context, folder *local.Folder) ([]local.User, error) {
	s := *t.settings
	s.Demo.On = t.settings.Demo.On && t.settings.Source("demo") != "default"
	m := &member{settings: &s, journals: t.journals, log: t.log, folder: folder, id: "cluster"}
	path := folder.Path(local.UsersFile)
	at, err := m.bootstrap(ctx, false, path)
	if err != nil {
		return nil, err
	}
	for i, p := range t.nodes { // otherwise a script that reads run.json could find a node that does not have the users yet
		if err := caughtUp(ctx, p, t.files[i].REST, at); err != nil {
			return nil, err
		}
	}
	users, _, err := local.KeptUsers(path)
	return users, err
}

func (t *together) describe(services *local.Services, users []local.User) clusterFile {
	r := clusterFile{RunFile: local.RunFile{PID: os.Getpid(), Kafka: services.Brokers, DatabaseURL: projections.PlainURL(services.DatabaseURL()), Users: users}, Nodes: t.files}
	for _, n := range t.files {
		if strings.HasPrefix(n.Name, "api") && r.REST == "" {
			r.REST = n.REST
		}
		if n.WebSocket != "" && r.WebSocket == "" {
			r.WebSocket = n.WebSocket
		}
	}
	return r
}

// print prints the content of run.json for humans.
func (r clusterFile) print(w io.Writer, path string) {
	fmt.Fprintf(w, "\nPerpetua is ready: %d nodes under process %d\n\n  %-12s %-8s %s\n", len(r.Nodes), r.PID, "node", "process", "address")
	for _, n := range r.Nodes {
		fmt.Fprintf(w, "  %-12s %-8d %s\n", n.Name, n.PID, cmp.Or(n.WebSocket, n.REST))
	}
	fmt.Fprintf(w, "\n  Kafka      %s\n  Postgres   %s\n\n", strings.Join(r.Kafka, ","), r.DatabaseURL)
	local.PrintUsers(w, r.Users)
	fmt.Fprintf(w, "\n  %s has all this as JSON. Ctrl-C stops all nodes.\n", path)
}

// stop stops the nodes, one role after the other.
func (t *together) stop() error {
	var errs []error
	for _, role := range roleNames() {
		var g errgroup.Group
		for _, p := range t.nodes {
			if strings.HasPrefix(p.Name, role+"-") {
				g.Go(p.Stop)
			}
		}
		errs = append(errs, g.Wait())
	}
	return errors.Join(errs...)
}
