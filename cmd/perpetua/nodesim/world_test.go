package nodesim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/node"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/identity"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/login"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/seal"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

const (
	kafka     = "kafka" // the host of the brokers
	outside   = "outside"
	symbol    = "BTCUSDC_PERP"
	customers = 4
	user      = "broker-a"
	password  = "a password of a user"
	// patience bounds, in the bubble's time, each wait for something that must happen.
	patience = 3 * time.Minute
)

func customerCode(i int) string { return fmt.Sprint("C-", i) }

// world is one venue: the brokers, the nodes and the network between them.
type world struct {
	t        *testing.T
	random   *rand.Rand // of the goroutine that disturbs
	network  *network
	log      *slog.Logger
	brokers  []string
	box      *seal.Box
	data     string
	rows     rows
	machines []*machine
	zombies  sync.WaitGroup // the nodes that were started
}

// rows stands for the rows in Postgres: it remembers the last position of each journal that a node has read, and a later
// owner compares its log with that.
type rows struct {
	mu   sync.Mutex
	last map[string]record.Position
}

func (r *rows) read(name string, p record.Position) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last, ok := r.last[name]; !ok || p.Sequence > last.Sequence {
		r.last[name] = p
	}
}

// Positions implements journal.Known.
func (r *rows) Positions(_ context.Context, name string, _ int32) ([]record.Position, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p, ok := r.last[name]; ok {
		return []record.Position{p}, nil
	}
	return nil, nil
}

// machine is the place of a node, which is started on it again and again.
type machine struct {
	w     *world
	id    string
	roles node.Roles
	at    string // address of its port

	mu   sync.Mutex
	life int // number of the current node
	node *node.Node
	dead *atomic.Bool
	stop context.CancelFunc
	done chan struct{}
}

// newWorld starts the brokers. Nothing else runs yet.
func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, random: rand.New(rand.NewPCG(seed, 1)), network: newNetwork(), log: slog.New(slog.DiscardHandler), data: t.TempDir(),
		rows: rows{last: make(map[string]record.Position)}}
	if os.Getenv("TEST_LOG") != "" {
		w.log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(9092), kfake.DefaultNumPartitions(1),
		kfake.ListenFn(func(_, address string) (net.Listener, error) { return w.network.listen(kafka, address) }),
		kfake.BrokerConfigs(map[string]string{"log.retention.ms": "-1", "log.retention.bytes": "-1"}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	w.brokers = cluster.ListenAddrs()
	if w.box, err = seal.New(make([]byte, seal.KeySize)); err != nil {
		t.Fatal(err)
	}
	client := w.client(outside)
	defer client.Close()
	if err := client.EnsureTopics(t.Context(), journals.All().Names()...); err != nil {
		t.Fatal(err)
	}
	engine := node.Roles{Engine: true, API: true, Live: true}
	for i, roles := range []node.Roles{engine, engine, {API: true, Live: true}} {
		w.machines = append(w.machines, &machine{w: w, id: fmt.Sprint("n", i), roles: roles, at: fmt.Sprintf("127.0.0.1:%d", 8080+i)})
	}
	return w
}

// bubbleClock is the clock of the bubble. The system's clock, which nodes use by default, may have another source.
type bubbleClock struct{ start time.Time }

func (bubbleClock) Wall() time.Time          { return time.Now().Round(0) }
func (c bubbleClock) Elapsed() time.Duration { return time.Since(c.start) }
func always() bool                           { return true }
func (w *world) settings() (*settings.Settings, error) {
	return settings.Parse("test", []string{"--data", w.data, "--accept-clock"},
		settings.IO{Err: io.Discard, Env: func(string) (string, bool) { return "", false }, Overrides: settings.Overrides{PasswordMemory: 8}}, nil)
}

// client returns a client of the brokers on a host.
func (w *world) client(host string) *journal.Client {
	w.t.Helper()
	c, err := journal.NewClient(journal.Config{Brokers: w.brokers, Dial: w.network.from(host, always), Logger: w.log,
		Clock: bubbleClock{time.Now()}})
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// host returns the name of the machine's current node in the network.
func (m *machine) host() string { return fmt.Sprintf("%s#%d", m.id, m.life) }

// start starts a node on a machine that has none.
func (m *machine) start() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.node != nil {
		return nil
	}
	s, err := m.w.settings()
	if err != nil {
		return err
	}
	s.HTTP.Listen = m.at
	m.life++
	host, dead := m.host(), new(atomic.Bool)
	dial := m.w.network.from(host, func() bool { return !dead.Load() })
	n, err := node.Open(context.Background(), node.Config{Settings: s, Journals: journals.All(), Logger: m.w.log.With("node", host), ID: m.id,
		Roles: m.roles, Brokers: m.w.brokers, Dial: dial, Box: m.w.box, Clock: bubbleClock{time.Now()},
		DatabaseURL: func() string { return "postgres://nobody@127.0.0.1:1/none?sslmode=disable" },
		Known:       []journal.Known{&m.w.rows},
		Network: node.Network{Dial: dial, Listen: func(_ context.Context, address string) (net.Listener, error) {
			return m.w.network.listen(host, address)
		}}})
	if err != nil {
		return err
	}
	for _, name := range journals.All().Names() {
		fold, err := n.Fold(name)
		if err != nil {
			return err
		}
		fold.Listen(func(e record.Entry, _ decide.State) { m.w.rows.read(name, e.Position) })
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	m.node, m.dead, m.stop, m.done = n, dead, stop, done
	m.w.zombies.Go(func() {
		defer close(done)
		if err := n.Run(ctx); err != nil && !dead.Load() {
			m.w.t.Errorf("%s ended: %v", host, err)
		}
		n.Close()
	})
	n.Announce()
	return nil
}

// drain stops the node as a signal does, and waits for its end.
func (m *machine) drain() {
	m.mu.Lock()
	stop, done := m.stop, m.done
	m.node = nil
	m.mu.Unlock()
	stop()
	<-done
}

// crash ends the node in the network at once. What still runs of it reaches nobody.
func (m *machine) crash() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dead.Store(true)
	m.w.network.kill(m.host())
	m.stop()
	m.node = nil
}

// current returns the host of the machine's latest node.
func (m *machine) current() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.host()
}

// alive returns the machine's node, or nil.
func (m *machine) alive() *node.Node {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.node
}

// begin starts the first node, which makes the venue, and then the others.
func (w *world) begin() {
	w.t.Helper()
	for i, m := range w.machines {
		if err := m.start(); err != nil {
			w.t.Fatal(err)
		}
		if i == 0 {
			w.found(m.alive())
		}
	}
	for _, m := range w.machines {
		w.catchUp(m)
	}
}

func (w *world) catchUp(m *machine) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := folded(ctx, m.alive()); err != nil {
		w.t.Fatalf("%s did not catch up: %v", m.id, err)
	}
}

// folded waits until the node's followers have reached the end of the log. Node.CatchUp would wait for the rows, too.
func folded(ctx context.Context, n *node.Node) error {
	for _, name := range journals.All().Names() {
		fold, err := n.Fold(name)
		if err == nil {
			err = fold.WaitTip(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// found creates a signing key, a user, an instrument, and customers with money.
func (w *world) found(n *node.Node) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	must := func(err error) {
		w.t.Helper()
		if err != nil {
			w.t.Fatal(err)
		}
	}
	for name, newest := range journals.All().Newest() {
		for r := 1; r <= newest; r++ {
			err := send(ctx, n, name, &decide.ActivateRules{Rules: r})
			var refused *submit.RefusedError
			if !errors.As(err, &refused) { // the first rules are active from the beginning
				must(err)
			}
		}
	}
	key, err := login.NewSigningKey(w.box)
	must(err)
	must(send(ctx, n, journals.Identity, key))
	must(send(ctx, n, journals.Identity, &identity.RegisterBroker{Broker: "alpha", Name: "Alpha"}))
	hash, err := login.SealPassword(w.box, user, password, 8)
	must(err)
	must(send(ctx, n, journals.Identity, &identity.RegisterUser{Username: user, Broker: "alpha", Scopes: []string{"trade", "read"}, IsActive: true,
		IsVerified: true, PasswordHash: hash}))
	must(send(ctx, n, journals.Trading, &trading.ListInstrument{Instrument: perpetual()}))
	must(send(ctx, n, journals.Trading, &trading.SetIndexPrice{Symbol: symbol, Price: exact("50000")}))
	for i := range customers {
		must(send(ctx, n, journals.Trading, &trading.RegisterCustomer{CustomerCode: customerCode(i), Broker: "alpha"}))
		money, _ := fixed.MoneyOf(exact("1000000"))
		must(send(ctx, n, journals.Trading, &trading.MakeDeposit{CustomerCode: customerCode(i), Currency: "USDC", Amount: money, ReferenceID: fmt.Sprint("start-", i)}))
	}
}

func perpetual() market.Instrument {
	return market.Instrument{
		Symbol: symbol, Underlying: "BTC", QuoteCurrency: "USDC", SettlementCurrency: "USDC", Status: market.Open, PriceTick: exact("0.1"),
		AmountStep: exact("0.001"), MinAmount: exact("0.001"), MaxAmount: exact("1000"), ContractSize: exact("1"), InitMarginReq: exact("5.00"),
		MaintMarginReq: exact("2.50"), MaxLeverage: 13, FundingIntervalSeconds: 3600, PriceBand: exact("5.00"), LimitBand: exact("20.00"),
		MakerFee: exact("2"), TakerFee: exact("5"),
	}
}

func exact(s string) fixed.Decimal {
	d, err := fixed.ParseDecimal(s)
	if err != nil {
		panic(err)
	}
	return d
}

// send submits a command as the system. It repeats it while the owner does not accept it.
func send(ctx context.Context, n *node.Node, name string, payload decide.Payload) error {
	for {
		_, err := n.Submitter().Submit(ctx, name, decide.Command{ID: operation.NewID(), Type: payload.CommandType(),
			Actor: decide.Actor{System: "seed"}, Payload: payload})
		var busy *submit.NotAcceptedError
		if !errors.As(err, &busy) || !pause(ctx, 100*time.Millisecond) {
			return err
		}
	}
}

// pause reports whether the time has passed before the context ended.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// browser returns an HTTP client outside of the venue.
func (w *world) browser() *http.Client {
	transport := &http.Transport{DialContext: w.network.from(outside, always), IdleConnTimeout: time.Minute}
	w.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 20 * time.Second}
}
