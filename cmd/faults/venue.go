package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/perpetua-exchange/perpetua/projections/postgres"
)

// node is one process of the venue.
type node struct {
	name, role string
	dir        string
	listen     string // the same after a restart
	host       int    // its number in the network
	process    *process
}

func (n *node) url() string { return "http://" + n.listen }

// venue is the nodes under test with their Postgres.
type venue struct {
	binary string
	dir    string
	env    []string
	db     *postgres.Server
	nodes  []*node
	http   *http.Client
	net    network    // nil on loopback
	pipe   *forwarder // to Postgres; nil on loopback

	passwords map[string]string // by user
}

// startPostgres starts a Postgres in a folder.
func startPostgres(ctx context.Context, dir string) (*postgres.Server, error) {
	if err := os.Chmod(dir, 0o755); err != nil { // Postgres runs as another user, which must reach its folder
		return nil, err
	}
	return postgres.Start(ctx, postgres.Config{Dir: filepath.Join(dir, "postgres"), Logger: slog.New(slog.DiscardHandler)})
}

// startVenue starts two engines, two API nodes and a projector on the brokers, with users and instruments. The caller
// closes the venue, also if there is an error.
func startVenue(ctx context.Context, binary, dir string, brokers []string, net network) (*venue, error) {
	binary, err := filepath.Abs(binary)
	if err != nil {
		return nil, err
	}
	v := &venue{binary: binary, dir: dir, net: net, passwords: make(map[string]string),
		http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256, IdleConnTimeout: time.Minute}}}
	if v.db, err = startPostgres(ctx, dir); err != nil {
		return v, err
	}
	database, err := v.database(ctx)
	if err != nil {
		return v, err
	}
	for _, e := range os.Environ() { // without the caller's settings
		if name, _, _ := strings.Cut(e, "="); !strings.HasPrefix(name, "PERPETUA_") && name != "KAFKA_BROKERS" && name != "DATABASE_URL" {
			v.env = append(v.env, e)
		}
	}
	folder := func(name string) string { return (&url.URL{Scheme: "file", Path: filepath.Join(dir, name)}).String() }
	v.env = append(v.env, "PERPETUA_KAFKA_BROKERS="+strings.Join(brokers, ","), "PERPETUA_DATABASE_URL="+database, "PERPETUA_DEMO=false",
		"PERPETUA_BLOB_URL="+folder("blob"), "PERPETUA_KEY_URL="+folder("keys"))
	if err := v.tool(ctx, io.Discard, "migrate"); err != nil {
		return v, err
	}
	if err := v.tool(ctx, io.Discard, "admin", "bootstrap"); err != nil {
		return v, err
	}
	if err := v.readUsers(); err != nil {
		return v, err
	}
	for _, role := range []string{"engine", "engine", "api", "api", "projector"} {
		if err := v.add(ctx, role); err != nil {
			return v, err
		}
	}
	return v, v.await(ctx)
}

// database returns the URL of Postgres at which every host reaches it.
func (v *venue) database(ctx context.Context) (string, error) {
	if v.net == nil {
		return v.db.URL(), nil
	}
	u, err := url.Parse(v.db.URL())
	if err != nil {
		return "", err
	}
	if v.pipe, err = forward(ctx, v.net.host(gateway), u.Host); err != nil {
		return "", err
	}
	u.Host = v.pipe.address()
	return u.String(), nil
}

// tool runs a command of the binary to its end. Its output goes to out.
func (v *venue) tool(ctx context.Context, out io.Writer, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	var output bytes.Buffer
	c := exec.CommandContext(ctx, v.binary, args...)
	c.Env = append(slices.Clone(v.env), "PERPETUA_DATA="+filepath.Join(v.dir, "tools"), "PERPETUA_LOG_LEVEL=warn")
	c.Stdout, c.Stderr = out, &output
	p, err := start(c)
	if err != nil {
		return err
	}
	<-p.ended
	if code := c.ProcessState.ExitCode(); code != 0 {
		return errors.Join(fmt.Errorf("perpetua %s: %v\n%s", strings.Join(args, " "), c.ProcessState, bytes.TrimSpace(output.Bytes())), ctx.Err())
	}
	return nil
}

// readUsers reads the passwords that bootstrap created.
func (v *venue) readUsers() error {
	content, err := os.ReadFile(filepath.Join(v.dir, "tools", "users.json"))
	if err != nil {
		return err
	}
	var users []struct{ Username, Password string }
	if err := json.Unmarshal(content, &users); err != nil {
		return fmt.Errorf("users.json: %w", err)
	}
	for _, u := range users {
		v.passwords[u.Username] = u.Password
	}
	return nil
}

// add starts one more node.
func (v *venue) add(ctx context.Context, role string) error {
	same := 1 + len(v.of(role))
	n := &node{role: role, host: gateway, name: fmt.Sprintf("%s-%d", role, same)}
	if role == "engine" {
		n.host = firstEngine + same - 1
	}
	host := "127.0.0.1"
	if v.net != nil {
		host = v.net.host(n.host)
	}
	var err error
	if n.listen, err = freeAddress(ctx, host); err != nil {
		return err
	}
	n.dir = filepath.Join(v.dir, n.name)
	if err := os.Mkdir(n.dir, 0o755); err != nil {
		return err
	}
	v.nodes = append(v.nodes, n)
	return v.start(n)
}

// start starts a node that is not running.
func (v *venue) start(n *node) error {
	log, err := os.OpenFile(n.dir+".log", os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	command := []string{v.binary, "serve"}
	if v.net != nil && n.host != gateway {
		command = v.net.wrap(n.host, command)
	}
	c := exec.Command(command[0], command[1:]...)
	c.Env = append(slices.Clone(v.env), "PERPETUA_DATA="+n.dir, "PERPETUA_NODE_ID="+n.name, "PERPETUA_LISTEN="+n.listen, "PERPETUA_ROLE="+n.role)
	c.Stdout, c.Stderr = log, log
	n.process, err = start(c)
	return err
}

// ready reports whether every node runs and answers that it is ready. If not, it names the first that does not.
func (v *venue) ready(ctx context.Context) (string, bool) {
	for _, n := range v.nodes {
		if !n.process.running() {
			return fmt.Sprintf("%s has ended: %v", n.name, n.process.command.ProcessState), false
		}
		asking, cancel := context.WithTimeout(ctx, 5*time.Second)
		status, body, err := v.get(asking, n.url()+"/readyz")
		cancel()
		if err != nil {
			return fmt.Sprintf("%s does not answer: %v", n.name, err), false
		}
		if status != http.StatusOK {
			return fmt.Sprintf("%s: %s", n.name, bytes.TrimSpace(body)), false
		}
	}
	return "", true
}

func (v *venue) get(ctx context.Context, url string) (int, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, nil, err
	}
	response, err := v.http.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	return response.StatusCode, body, err
}

// await waits until every node is ready.
func (v *venue) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		missing, ok := v.ready(ctx)
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the venue is not ready: %s", missing)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// of returns the nodes of a role.
func (v *venue) of(role string) []*node {
	var out []*node
	for _, n := range v.nodes {
		if n.role == role {
			out = append(out, n)
		}
	}
	return out
}

// at returns the node that others reach at a URL, nil if there is none.
func (v *venue) at(url string) *node {
	i := slices.IndexFunc(v.nodes, func(n *node) bool { return n.url() == strings.TrimSuffix(url, "/") })
	if i < 0 {
		return nil
	}
	return v.nodes[i]
}

// close ends the nodes in reverse order of their start, then Postgres.
func (v *venue) close() error {
	var errs []error
	for _, n := range slices.Backward(v.nodes) {
		if n.process == nil || !n.process.running() {
			continue
		}
		_ = n.process.signal(syscall.SIGCONT) // a paused process does not react to SIGTERM
		if err := n.process.stop(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", n.name, err))
		}
	}
	if v.pipe != nil {
		errs = append(errs, v.pipe.close())
	}
	if v.db != nil {
		errs = append(errs, v.db.Close())
	}
	v.http.CloseIdleConnections()
	return errors.Join(errs...)
}
