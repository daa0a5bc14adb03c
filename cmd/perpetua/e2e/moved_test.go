package e2e

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/handlers/live/livetest"
	"github.com/perpetua-exchange/perpetua/projections"
)

// mover is a venue whose log is moved from place to place, and what must hold wherever it is.
type mover struct {
	*venue
	history map[string][]string // the records of each journal
	rows    map[string]projections.Digest
	resume  string   // where a client's socket stood …
	missed  []string // … and the messages on orders that came after
}

// copyLog runs `perpetua log copy`.
func (m *mover) copyLog(args ...string) string {
	m.t.Helper()
	out, err := m.command(append([]string{"log", "copy"}, args...)...).CombinedOutput()
	if err != nil {
		m.t.Fatalf("log copy %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// trade gives the venue a history: trades, orders that rest, records that readers skip, and a socket that stood somewhere.
func (m *mover) trade() {
	m.t.Helper()
	m.fund("10000", "ANNA", "BEN")
	socket := livetest.Dial(m.t, m.WebSocket, m.token("broker-a"))
	socket.Subscribe("orders")
	sell := func(amount string) string {
		a := m.must(201, "broker-a", http.MethodPost, "/v1/customers/ANNA/orders",
			`{"symbol":"BTCUSDC_PERP","action":"sell","type":"limit","amount":"`+amount+`","limit_price":"65000.0"}`)
		return a.Header.Get("X-Log-Position")
	}
	m.resume = sell("0.100")
	before := len(socket.Until("the first order", func(all []livetest.Message) bool { return count(all, "orders") == 1 }))
	m.skip()
	for range 5 {
		m.must(201, "broker-a", http.MethodPost, "/v1/customers/BEN/orders", `{"symbol":"BTCUSDC_PERP","action":"buy","type":"market","amount":"0.010"}`)
		sell("0.001")
	}
	const later = 5 * 3 // Ben's order, Anna's that it fills, and her next
	socket.Until("the orders after it", func(all []livetest.Message) bool { return count(all, "orders") == 1+later })
	for _, r := range socket.Messages()[before:] {
		if r.Channel == "orders" {
			m.missed = append(m.missed, string(r.Raw))
		}
	}
	socket.Close()
	m.remember()
}

// count counts the messages on a channel, without acknowledgements.
func count(all []livetest.Message, channel string) (n int) {
	for _, m := range all {
		if m.Channel == channel && m.Op == "" {
			n++
		}
	}
	return n
}

// skip appends what readers skip behind the venue's back: something else, and a record that is there already.
func (m *mover) skip() {
	m.t.Helper()
	kc, err := kgo.NewClient(kgo.SeedBrokers(m.Kafka...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		m.t.Fatal(err)
	}
	defer kc.Close()
	for _, value := range []string{"\xff no record", m.records("trading")[3]} {
		if err := kc.ProduceSync(context.Background(), &kgo.Record{Topic: m.prefix + "trading", Value: []byte(value)}).FirstErr(); err != nil {
			m.t.Fatal(err)
		}
	}
}

// remember takes down what must hold from now on, once the rows are at the tip, and stops the venue.
func (m *mover) remember() {
	m.t.Helper()
	m.must(200, "broker-a", http.MethodGet, "/v1/customers/BEN/orders", nil, "X-Min-Log-Position", m.lastRecord("trading"))
	m.stop()
	m.history = map[string][]string{"identity": m.records("identity"), "trading": m.records("trading"), "onboarding": m.records("onboarding")}
	began := 0
	for _, kind := range []string{"journal.genesis", "journal.taken", "rules.activate"} {
		began += len(m.records("onboarding", "--type", kind))
	}
	if len(m.history["onboarding"]) != began {
		m.t.Errorf("without the demo the onboarding journal holds something: %d records", len(m.history["onboarding"]))
	}
	m.rows = m.digests()
}

// check starts the venue where its log is now. Every record, every row and the client's position hold, and it goes on.
func (m *mover) check(where string) {
	m.t.Helper()
	if rows := m.digests(); !maps.Equal(rows, m.rows) {
		m.t.Errorf("%s: copying the log changed the rows: %v, before %v", where, rows, m.rows)
	}
	m.start()
	for name, before := range m.history {
		if now := m.records(name); len(now) <= len(before) || !slices.Equal(now[:len(before)], before) {
			m.t.Errorf("%s: %s has %d records and not the %d from before, and what came after", where, name, len(now), len(before))
		}
	}
	socket := livetest.Dial(m.t, m.WebSocket, m.token("broker-a"))
	socket.SubscribeWith(livetest.Request{Op: "subscribe", Args: []string{"orders"}, ResumeFrom: m.resume})
	socket.Until("what the socket missed", func(all []livetest.Message) bool { return count(all, "orders") >= len(m.missed) })
	for i, got := range socket.On("orders")[:len(m.missed)] {
		if string(got.Raw) != m.missed[i] {
			m.t.Errorf("%s: resumed from %s, message %d is %s, before %s", where, m.resume, i, got.Raw, m.missed[i])
		}
	}
	bought := m.must(201, "broker-a", http.MethodPost, "/v1/customers/BEN/orders", `{"symbol":"BTCUSDC_PERP","action":"buy","type":"market","amount":"0.001"}`)
	if bought.get("status") != "filled" {
		m.t.Errorf("%s: a new order is %s", where, bought.Body)
	}
	socket.Until("the new order", func(all []livetest.Message) bool { return count(all, "orders") >= len(m.missed)+2 })
	for _, r := range socket.On("orders")[len(m.missed):] {
		m.missed = append(m.missed, string(r.Raw))
	}
	socket.Close()
	m.remember()
	if out, err := m.command("audit").CombinedOutput(); err != nil {
		m.t.Errorf("%s: perpetua audit: %v\n%s", where, err, out)
	}
}

// TestTheLogMoves takes a venue with its history from the embedded broker to Kafka, the one that KAFKA_BROKERS names if
// there is one, from there to a file, and back to an embedded broker.
func TestTheLogMoves(t *testing.T) {
	kafka := os.Getenv("KAFKA_BROKERS")
	t.Setenv("KAFKA_BROKERS", "")
	if kafka == "" {
		fake, err := kfake.NewCluster(kfake.NumBrokers(1))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(fake.Close)
		kafka = strings.Join(fake.ListenAddrs(), ",")
	}
	m := &mover{venue: newVenue(t, "--snapshot-records", "20")}
	m.start()
	m.trade()

	prefix := fmt.Sprintf("moved-%d-%d-", os.Getpid(), time.Now().UnixNano())
	if said := m.copyLog("--from", m.dir, "--to", kafka, "--to-prefix", prefix); !strings.Contains(said, " 2 of them readers skip") {
		t.Errorf("the copy says %s", said)
	}
	m.env = append(m.env, "PERPETUA_KAFKA_BROKERS="+kafka)
	m.prefix = prefix
	m.check("on Kafka")

	file := filepath.Join(t.TempDir(), "log.zst")
	m.copyLog("--from", kafka, "--to", file)
	m.env, m.prefix = nil, ""
	if err := os.RemoveAll(filepath.Join(m.dir, "kafka")); err != nil {
		t.Fatal(err)
	}
	m.copyLog("--from", file, "--to", m.dir)
	m.check("embedded again")
	m.refuses(t, file)
}

// refuses copies an older log, and another, over the venue's.
func (m *mover) refuses(t *testing.T, older string) {
	t.Helper()
	m.postgres = "" // which knows of the venue's own log
	before := files(t, filepath.Join(m.dir, "kafka"))
	for from, why := range map[string]string{older: "is not in the source", newVenueThatRan(t).dir: "has another value"} {
		if code, said := m.outcome(nil, "log", "copy", "--from", from, "--to", m.dir); code != exitFailed || !strings.Contains(said, why) {
			t.Errorf("from %s: %d, without %q:\n%s", from, code, why, said)
		}
	}
	after := files(t, filepath.Join(m.dir, "kafka"))
	for path, sum := range before {
		if strings.HasSuffix(path, ".dat") && after[path] != sum {
			t.Errorf("a copy that was refused changed %s", path)
		}
	}
}

// newVenueThatRan returns a venue that is stopped.
func newVenueThatRan(t *testing.T) *venue {
	t.Helper()
	v := newVenue(t)
	v.start()
	v.stop()
	return v
}
