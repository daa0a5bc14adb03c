package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/local"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/broker"
	"github.com/perpetua-exchange/perpetua/streams/broker/kafkatest"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/ownership"
)

// cluster is a number of `perpetua serve` processes on one broker and one Postgres, which belong to the test.
type cluster struct {
	*venue // its folder is that of the commands; it is no node
	finder *ownership.Finder
	nodes  []*atomic.Pointer[venue] // replaced when they are started again
	users  []local.User
}

// startCluster starts a broker, unless KAFKA_BROKERS names some, a Postgres, and a node for each of the roles.
func startCluster(t *testing.T, roles ...string) *cluster {
	t.Helper()
	c := newCluster(t)
	c.join(t, roles...)
	return c
}

// brokersIn returns the addresses of the brokers that KAFKA_BROKERS names, or else of an embedded one with its log in a folder.
func brokersIn(t testing.TB, dir string) []string {
	t.Helper()
	if named := os.Getenv("KAFKA_BROKERS"); named != "" {
		return strings.Split(named, ",")
	}
	b, err := broker.Start(context.Background(), broker.Config{Dir: filepath.Join(dir, "kafka"), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b.Addrs()
}

// newCluster starts what nodes work on, and makes the users and instruments.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	v := newWholeVenue(t)
	return newClusterOn(t, v, brokersIn(t, v.dir))
}

// newClusterOn is newCluster on some brokers, with a venue that does not run and is that of the commands.
func newClusterOn(t *testing.T, v *venue, brokers []string) *cluster {
	t.Helper()
	c := &cluster{venue: v}
	c.postgres = projectiontest.URL(t) // whose tables migrate makes
	c.DatabaseURL = c.postgres
	c.env = append(c.env, "PERPETUA_KAFKA_BROKERS="+strings.Join(brokers, ","), "PERPETUA_DATABASE_URL="+c.postgres, "PERPETUA_DEMO=false",
		"PERPETUA_KEY_URL="+blob.URLOf(filepath.Join(c.dir, "keys")), "PERPETUA_MASTER_KEY="+base64.StdEncoding.EncodeToString(make([]byte, 32)))
	client, err := journal.NewClient(journal.Config{Brokers: brokers, Prefix: c.prefix})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	if c.finder, err = ownership.NewFinder(client, nil, "", journals.All().Names()...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.finder.Close)
	c.perform("migrate")
	c.bootstrap()
	return c
}

// join starts a node for each of the roles.
func (c *cluster) join(t *testing.T, roles ...string) {
	t.Helper()
	first := len(c.nodes)
	for _, role := range roles {
		c.begin(t, role)
	}
	for i := range roles {
		c.ready(first+i, c.node(first+i))
	}
}

// joinBehind starts a node that the others, and the test, reach by way of a gate.
func (c *cluster) joinBehind(t *testing.T, role string) *peerGate {
	t.Helper()
	port := kafkatest.Port(t)
	g := newPeerGate(t, "127.0.0.1:"+port)
	c.begin(t, role, "PERPETUA_LISTEN=127.0.0.1:"+port, "PERPETUA_ADVERTISE="+g.URL)
	i := len(c.nodes) - 1
	c.ready(i, c.node(i))
	return g
}

// begin launches a node.
func (c *cluster) begin(t *testing.T, role string, env ...string) {
	t.Helper()
	v := newWholeVenue(t, "--role", role, "--node-id", fmt.Sprintf("node-%d", len(c.nodes))) // its database is the cluster's
	v.verb, v.binary, v.prefix, v.env, v.postgres = "serve", c.binary, c.prefix, slices.Concat(c.env, env), c.postgres
	v.launch()
	node := new(atomic.Pointer[venue])
	node.Store(v)
	c.nodes = append(c.nodes, node)
	t.Cleanup(func() { node.Load().stop() })
}

func (c *cluster) node(i int) *venue { return c.nodes[i].Load() }

// perform runs a command to its end and returns what it says.
func (c *cluster) perform(args ...string) string {
	c.t.Helper()
	out, err := c.command(append(args, "--log-level", "warn")...).CombinedOutput()
	if err != nil {
		c.t.Fatalf("perpetua %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// bootstrap makes the users, or new passwords for them where the folder has lost the old ones, and returns the position
// from which on the nodes know them.
func (c *cluster) bootstrap() (position string) {
	c.t.Helper()
	said := c.perform("admin", "bootstrap")
	content, err := os.ReadFile(filepath.Join(c.dir, "users.json"))
	if err == nil {
		err = json.Unmarshal(content, &c.users)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return regexp.MustCompile(`identity/0@\d+`).FindString(said)
}

// ready waits until a node that was launched is ready and lets it be used.
func (c *cluster) ready(i int, v *venue) {
	c.t.Helper()
	v.await()
	v.Users = c.users
	if c.tokens == nil { // any node takes what one has signed
		c.tokens = make(map[string]string)
		for _, u := range c.users {
			c.tokens[u.Username] = v.token(u.Username)
		}
	}
	v.tokens = c.tokens
	c.nodes[i].Store(v)
}

// again starts a node that has ended once more, on its folder.
func (c *cluster) again(i int) {
	c.t.Helper()
	v := *c.node(i)
	v.launch()
	c.ready(i, &v)
}

// owner returns which node owns a journal by the word of the group, or -1.
func (c *cluster) owner(name string) int {
	c.t.Helper()
	var url string
	waitForWord(c.t, "the group's word on who owns "+name, func() string { // brokers that are busy may not say it at once
		var err error
		if url, err = c.finder.Owner(context.Background(), name, 0); err != nil {
			return err.Error()
		}
		return ""
	})
	return slices.IndexFunc(c.nodes, func(n *atomic.Pointer[venue]) bool { return url != "" && n.Load().REST == url })
}

// anOwner waits until the group says that a node owns a journal, which is none of the others, and returns it. While the group
// hands journals over it may name nobody.
func (c *cluster) anOwner(name string, others ...int) (owner int) {
	c.t.Helper()
	waitFor(c.t, "an owner of "+name, func() bool {
		owner = c.owner(name)
		return owner >= 0 && !slices.Contains(others, owner)
	})
	return owner
}

// outage measures the longest time between two answers of any client.
type outage struct {
	mu      sync.Mutex
	last    time.Time // an order was answered; zero while nothing is measured
	longest time.Duration
}

func (o *outage) begin() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last, o.longest = time.Now(), 0
}

// answered takes down the time of an answer.
func (o *outage) answered() {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	if !o.last.IsZero() {
		o.longest = max(o.longest, now.Sub(o.last))
	}
	o.last = now
}

// end returns the longest time without an answer since the beginning.
func (o *outage) end() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last = time.Time{}
	return o.longest
}

// load is a number of clients at work.
type load struct {
	clients  []*client
	done     atomic.Int64
	stop     chan struct{}
	working  sync.WaitGroup
	problems chan error
}

func startLoad(round int, clients []*client) *load {
	l := &load{clients: clients, stop: make(chan struct{}), problems: make(chan error, len(clients))}
	for _, c := range clients {
		l.working.Go(func() {
			if err := c.trade(round, &l.done, l.stop); err != nil {
				l.problems <- err
			}
		})
	}
	return l
}

// more waits until n more orders have been answered.
func (l *load) more(t *testing.T, n int64) {
	t.Helper()
	enough := l.done.Load() + n
	waitFor(t, "orders under load", func() bool { return l.done.Load() >= enough || len(l.problems) > 0 })
}

func (l *load) end(t *testing.T) {
	t.Helper()
	close(l.stop)
	l.working.Wait()
	close(l.problems)
	for err := range l.problems {
		t.Fatal(err)
	}
}

// TestCluster runs two engines and two nodes with all else on one broker, sends orders to any of them, and takes the owners of
// the trading and of the onboarding journal away in every manner, and each sender and process manager. Applicants file all
// the while: nothing of it is lost or there twice.
func TestCluster(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	v, hooks := newWholeVenue(t), newWebhookReceiver(t)
	v.env = append(hooks.settings(), "PERPETUA_BLOB_URL="+blob.URLOf(filepath.Join(v.dir, blob.Folder)))
	c := newClusterOn(t, v, brokersIn(t, v.dir))
	c.join(t, "engine", "engine", "api,projector,sender,process", "api,projector,live,sender,process")
	face := c.node(2)
	var clients []*client
	var names []string
	timer := new(outage)
	for i := range 8 {
		x := newClient(seed, i)
		pick := rand.New(rand.NewPCG(seed, uint64(1000+i)))
		x.venue = func() *venue { return c.node(pick.IntN(len(c.nodes))) }
		x.answered = timer.answered
		clients, names = append(clients, x), append(names, x.customer)
	}
	face.fund("1000000", names...)
	m := admit(t, hooks, face, 2, func(i int) func() *venue {
		pick := rand.New(rand.NewPCG(seed, uint64(2000+i)))
		return func() *venue { return c.node(2 + pick.IntN(2)) }
	})
	for _, a := range m.applicants {
		a.pace = 20 * retryAfter
	}
	end := m.begin(t)
	t.Cleanup(end)

	rounds, round := max(kills(t)/5, 1), 0
	for _, how := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		var gone, back []time.Duration
		for range rounds {
			round++
			g, b := c.takeOwner(t, "trading", round, how, clients, timer)
			gone, back = append(gone, g), append(back, b)
			m.more(t, 8)
		}
		t.Logf("%v of the owner: no orders for %s; for %s when it comes back", how, spread(gone), spread(back))
	}
	checkOrders(t, c.venue, clients)
	round++
	c.takeOwner(t, "onboarding", round, syscall.SIGKILL, clients, timer)
	m.more(t, 8)
	c.suspendOwner(t, round+1, clients)
	for _, i := range []int{3, 2} { // one of the projectors works, the other stands by
		round++
		l := startLoad(round+1, clients)
		c.node(i).kill()
		l.more(t, 100)
		m.more(t, 8) // by the one sender and the one process manager that are left
		l.end(t)
		followUp(t, c.node(0), clients)
		c.projected(c.node(5 - i)) // before there is another that could do it
		c.again(i)
	}
	end()
	m.finish(t)
	checkOrders(t, c.venue, clients)
	m.check(t, c.venue)
	c.perform("audit")
	face = c.node(2)

	// Engines serve, and the folder has lost the passwords: they are made anew through the owner.
	password := face.password("operator")
	if err := os.Remove(filepath.Join(c.dir, "users.json")); err != nil {
		t.Fatal(err)
	}
	made := answer{Header: http.Header{"X-Log-Position": {c.bootstrap()}}}
	face.Users = c.users
	fresh := face.password("operator")
	if fresh == password {
		t.Error("the operator has no new password")
	}
	face.login("operator", fresh, made)
}

// projected waits until the rows, which nobody but a node projects, have reached the end of the log.
func (c *cluster) projected(by *venue) {
	c.t.Helper()
	last := by.must(http.StatusOK, "operator", http.MethodPost, "/admin/v1/index-prices/BTCUSDC_PERP", map[string]string{"price": "65000"})
	by.must(http.StatusOK, "operator", http.MethodGet, "/v1/orders", nil, "X-Min-Log-Position", last.Header.Get("X-Log-Position"))
}

// spread tells the median and the worst of some times.
func spread(times []time.Duration) string {
	slices.Sort(times)
	return fmt.Sprintf("%v (median of %d, %v at worst)",
		times[len(times)/2].Round(time.Millisecond), len(times), times[len(times)-1].Round(time.Millisecond))
}

// takeOwner ends a journal's owner under load and starts it again, and returns how long orders were not answered each time.
func (c *cluster) takeOwner(t *testing.T, name string, round int, how syscall.Signal, clients []*client, timer *outage) (gone, back time.Duration) {
	t.Helper()
	l := startLoad(round, clients)
	l.more(t, 100)
	i := c.anOwner(name)
	timer.begin()
	if how == syscall.SIGKILL {
		c.node(i).kill()
	} else {
		c.node(i).stop()
	}
	waitFor(t, "another owner", func() bool { now := c.owner(name); return now >= 0 && now != i || len(l.problems) > 0 })
	l.more(t, 100)
	gone = timer.end()
	timer.begin()
	c.again(i)
	c.anOwner(name)
	l.more(t, 100)
	back = timer.end()
	l.end(t)
	followUp(t, c.node(2), clients)
	t.Logf("round %d: %v of node %d, the owner of %s: no orders for %v, then for %v", round, how, i, name, gone.Round(time.Millisecond), back.Round(time.Millisecond))
	return gone, back
}

// suspendOwner stops the trading journal's owner as SIGSTOP does, has another node take over, and lets it go on. What
// it was asked before and meanwhile must not be answered by its state of the past.
func (c *cluster) suspendOwner(t *testing.T, round int, clients []*client) {
	t.Helper()
	before, after := clients[:len(clients)/2], clients[len(clients)/2:]
	l := startLoad(round, before)
	l.more(t, 100)
	i := c.anOwner("trading")
	old := c.node(i)
	old.cmd.Process.Signal(syscall.SIGSTOP)
	stopped := time.Now()
	resume := func() { old.cmd.Process.Signal(syscall.SIGCONT) }
	t.Cleanup(resume)
	other := c.node(c.anOwner("trading", i))
	for _, x := range after {
		elsewhere := x.venue
		x.venue = func() *venue { // whoever still believes in the old owner would wait for it
			for {
				if v := elsewhere(); v != old {
					return v
				}
			}
		}
		defer func() { x.venue = elsewhere }()
	}
	m := startLoad(round, after)
	m.more(t, 200)

	// The old owner is asked to cancel orders that it does not know.
	path := "/v1/customers/" + after[0].customer + "/orders"
	cancels := make(chan answer, 8)
	for k := range cap(cancels) {
		placed := other.must(http.StatusCreated, "broker-a", http.MethodPost, path, map[string]any{"symbol": "BTCUSDC_PERP", "action": "buy",
			"type": "limit", "amount": "0.001", "limit_price": "60000.0", "reference_id": fmt.Sprintf("suspended-%d-%d", round, k)})
		go func() {
			a, err := old.try("broker-a", http.MethodDelete, path+"/"+placed.get("code"), nil)
			if err != nil {
				a.Status = -1
			}
			cancels <- a
		}()
	}
	m.more(t, 100)
	t.Logf("the owner, node %d, was stopped for %v", i, time.Since(stopped).Round(time.Millisecond))
	resume()
	for range cap(cancels) {
		if a := <-cancels; a.Status != http.StatusOK && a.Status != http.StatusServiceUnavailable && a.Status != -1 {
			t.Errorf("the old owner answered a cancel with %d: %s", a.Status, a.Body)
		}
	}
	l.more(t, 100)
	m.more(t, 100)
	l.end(t)
	m.end(t)
	unknown := 0
	for _, x := range before {
		for _, a := range x.attempts {
			if a.status == 0 {
				unknown++
			}
		}
	}
	t.Logf("%d orders were left with an unknown outcome", unknown)
	followUp(t, c.node(2), clients)
	checkOrders(t, c.venue, clients)
}
