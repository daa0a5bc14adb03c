package node

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
	"github.com/perpetua-exchange/perpetua/streams/broker"
	"github.com/perpetua-exchange/perpetua/streams/journal/journaltest"
	"github.com/perpetua-exchange/perpetua/streams/seal"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

func TestMain(m *testing.M) {
	os.Exit(projectiontest.Main(m))
}

// patience bounds every wait for something that must happen.
const patience = 3 * time.Minute

// bench is what a node of a test stands on: a broker and a database of its own, which the test can take away.
type bench struct {
	config Config
	broker *broker.Broker
	rows   *projectiontest.Proxy
}

// newBench starts them, with the topics and tables of the journals.
func newBench(t *testing.T, table journals.Table, flags ...string) *bench {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	if os.Getenv("TEST_LOG") != "" {
		log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	s, err := settings.Parse("test", append([]string{"--listen", "127.0.0.1:0", "--data", t.TempDir()}, flags...),
		settings.IO{Err: io.Discard, Env: func(string) (string, bool) { return "", false }}, nil)
	if err != nil {
		t.Fatal(err)
	}
	box, err := seal.New(make([]byte, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	b, err := broker.Start(t.Context(), broker.Config{Dir: t.TempDir(), Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	client, err := s.NewClient(b.Addrs(), log)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.EnsureTopics(t.Context(), table.Names()...); err != nil {
		t.Fatal(err)
	}
	database := projectiontest.VenueURL(t)
	proxy, through := projectiontest.NewProxy(t, database)
	return &bench{broker: b, rows: proxy, config: Config{Settings: s, Journals: table, Logger: log, ID: "n", Roles: allRoles(), Alone: true,
		Brokers: b.Addrs(), Dial: b.Dial, DatabaseURL: func() string { return through }, Box: box}}
}

// start runs the node until the test ends, and waits until it has caught up.
func (b *bench) start(t *testing.T) *Node {
	t.Helper()
	n, _ := b.run(t, b.config)
	return n
}

// run runs a node until it is stopped, by the end of the test at the latest, and waits until it has caught up.
func (b *bench) run(t *testing.T, c Config) (n *Node, stop func()) {
	t.Helper()
	n, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the node ended with %v", err)
		}
		n.Close()
	})
	t.Cleanup(stop)
	catching, done := context.WithTimeout(t.Context(), patience)
	defer done()
	if err := n.CatchUp(catching); err != nil {
		t.Fatal(err)
	}
	return n, stop
}

// submit has a command decided. What a busy machine refuses for the time being is sent again.
func (n *Node) submit(t *testing.T, journal string, c decide.Command) submit.Result {
	t.Helper()
	r, err := journaltest.Insist(func() (submit.Result, error) { return n.Submitter().Submit(t.Context(), journal, c) })
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// get returns a status and reads a JSON body.
func (b *bench) get(t *testing.T, url string, into any) int {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err == nil && into != nil {
		err = json.Unmarshal(body, into)
	}
	if err != nil {
		t.Fatalf("%s: %v: %s", url, err, body)
	}
	return r.StatusCode
}

// eventually waits until nothing is missing any more, and otherwise says what was in the end.
func eventually(t *testing.T, what string, missing func() string) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; {
		lack := missing()
		if lack == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited %v for %s: %s", patience, what, lack)
		}
		<-time.After(5 * time.Millisecond)
	}
}

// allRoles returns the roles of a node that does everything.
func allRoles() Roles {
	return Roles{Engine: true, API: true, Projector: true, Live: true, Process: true, Sender: true}
}
