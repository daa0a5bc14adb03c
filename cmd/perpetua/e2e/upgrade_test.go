package e2e

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The builds from which a cluster is upgraded, by the commits that made them.
const (
	firstRelease  = "a870a2d" // 0.1.0: sends commands over streams, without lists of forms
	beforeStreams = "632abee" // forwards whole requests to the owner
)

// buildOf builds perpetua as of a commit and returns the binary, which stays in bin/upgrade for the next time.
func buildOf(t *testing.T, commit string) string {
	t.Helper()
	root := run(t, "", "git", "rev-parse", "--show-toplevel")
	if err := exec.Command("git", "-C", root, "cat-file", "-e", commit+"^{commit}").Run(); err != nil {
		shallow := run(t, root, "git", "rev-parse", "--is-shallow-repository") == "true"
		if os.Getenv("CI") != "" && !shallow {
			t.Fatalf("the history of this clone lacks %s", commit)
		}
		t.Skipf("the history of this clone lacks %s; git fetch --unshallow gets it", commit)
	}
	binary := filepath.Join(root, "bin", "upgrade", commit, "perpetua")
	if _, err := os.Stat(binary); err == nil {
		return binary
	}
	dir := t.TempDir()
	run(t, root, "git", "archive", "--output", filepath.Join(dir, "source.tar"), commit)
	run(t, dir, "tar", "-xf", "source.tar")
	run(t, dir, "go", "build", "-o", binary+".new", "./cmd/perpetua")
	if err := os.Rename(binary+".new", binary); err != nil {
		t.Fatal(err)
	}
	return binary
}

// run runs a program to its end and returns what it says.
func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// TestUpgrade upgrades a cluster node by node while clients send orders, and goes back and forth between. Owner and API node are
// of different builds in each direction. Every order is in the log once or was not accepted, and the audit finds no fault.
func TestUpgrade(t *testing.T) {
	if os.Getenv("PERPETUA_TEST_UPGRADE") == "" {
		t.Skip("make upgrade sets PERPETUA_TEST_UPGRADE and builds the earlier builds")
	}
	for name, commit := range map[string]string{"from the first release": firstRelease, "from the build before streams": beforeStreams} {
		t.Run(name, func(t *testing.T) { upgrade(t, buildOf(t, commit)) })
	}
}

func upgrade(t *testing.T, older string) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	v := newWholeVenue(t)
	v.binary = older // its commands make the tables and the users
	c := newClusterOn(t, v, brokersIn(t, v.dir))
	const engine, front, second = 0, 1, 2
	c.join(t, "engine", "api,projector,live")
	c.binary = ""
	c.perform("migrate")
	c.join(t, "api,projector,live")

	var clients []*client
	var names []string
	for i := range 6 {
		x := newClient(seed, i)
		node := front + i%2 // half of them use each API node
		x.venue = func() *venue { return c.node(node) }
		clients, names = append(clients, x), append(names, x.customer)
	}
	c.node(front).fund("1000000", names...)
	round := 0
	trade := func(how string, least int64) {
		t.Helper()
		round++
		l := startLoad(round, clients)
		l.more(t, least)
		l.end(t)
		followUp(t, c.node(front), clients)
		t.Logf("%s: %d orders", how, l.done.Load())
	}
	// replace restarts a node with another binary while the clients trade.
	replace := func(i int, binary string) {
		t.Helper()
		round++
		l := startLoad(round, clients)
		l.more(t, 20)
		c.node(i).stop()
		next := *c.node(i)
		next.binary = binary
		c.nodes[i].Store(&next)
		c.again(i)
		l.more(t, 50)
		l.end(t)
	}
	trade("an older owner, older and new API nodes", 200)
	replace(engine, "")
	followUp(t, c.node(second), clients)
	trade("a new owner, older and new API nodes", 200)
	replace(engine, older)
	followUp(t, c.node(front), clients)
	trade("back to the older owner", 200)
	replace(engine, "")
	replace(front, "")
	followUp(t, c.node(second), clients)
	trade("all new", 200)
	checkOrders(t, c.venue, clients)
	c.perform("audit")
}
