package ownership

import (
	"context"
	"net"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/streams/journal"
)

// wires are the connections of a client to its brokers, of which a test can cut some.
type wires struct {
	mu     sync.Mutex
	nobody string // an address at which nobody listens
	dead   map[string]bool
	conns  map[string][]net.Conn
}

func newWires(t *testing.T) *wires {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return &wires{nobody: l.Addr().String(), dead: make(map[string]bool), conns: make(map[string][]net.Conn)}
}

func (w *wires) dial(ctx context.Context, network, address string) (net.Conn, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	to := address
	if w.dead[address] {
		to = w.nobody
	}
	c, err := new(net.Dialer).DialContext(ctx, network, to)
	if err == nil {
		w.conns[address] = append(w.conns[address], c)
	}
	return c, err
}

// kill has a broker refuse connections, as a process that was killed does.
func (w *wires) kill(address string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dead[address] = true
	for _, c := range w.conns[address] {
		c.Close()
	}
}

// cluster is three brokers.
type cluster struct{ *kfake.Cluster }

func newCluster(t *testing.T) cluster {
	t.Helper()
	fake, err := kfake.NewCluster(kfake.NumBrokers(3))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fake.Close)
	return cluster{fake}
}

// client returns a client with the journal trading.
func (c cluster) client(t *testing.T, options ...kgo.Opt) *journal.Client {
	t.Helper()
	client, err := journal.NewClient(journal.Config{Brokers: c.ListenAddrs(), Options: options})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	if err := client.EnsureTopics(t.Context(), "trading"); err != nil {
		t.Fatal(err)
	}
	return client
}

// coordinator returns the address of the coordinator of the engines' group.
func (c cluster) coordinator() string { return c.ListenAddrs()[c.CoordinatorFor(Group)] }

// moveCoordinator has another broker coordinate the group.
func (c cluster) moveCoordinator() {
	for was := c.coordinator(); c.coordinator() == was; {
		c.RehashCoordinators()
	}
}

// until waits for a condition.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 18_000 {
		if ok() {
			return
		}
		pause(t)
	}
	t.Fatalf("never: %s", what)
}
