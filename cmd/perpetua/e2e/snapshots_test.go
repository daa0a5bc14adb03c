package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/e2e/altered"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/node"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/tools"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/live/livetest"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// measure reads a metric of snapshots of the trading journal; -1 if it is not there.
func (v *venue) measure(name string) int64 {
	v.t.Helper()
	return v.measureOf("trading", name)
}

// measureOf reads a metric of snapshots of a journal; -1 if it is not there.
func (v *venue) measureOf(journal, name string) int64 {
	v.t.Helper()
	for line := range strings.Lines(string(v.do("", http.MethodGet, "/metrics", nil).Body)) {
		if !strings.HasPrefix(line, "perpetua_snapshot_"+name+"{") || !strings.Contains(line, `journal="`+journal+`"`) {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndex(line, " "):]), 64)
		if err != nil {
			v.t.Fatal(err)
		}
		return int64(n)
	}
	return -1
}

// snapshotFiles returns the files of the trading journal's snapshots, the newest last.
func (v *venue) snapshotFiles() []string {
	v.t.Helper()
	files, err := filepath.Glob(filepath.Join(v.dir, "blob", "snapshots", v.prefix+"trading", "0", "*.[0-9]*."+strings.Repeat("[0-9a-f]", 32))) // but for what a kill has cut off
	if err != nil {
		v.t.Fatal(err)
	}
	return files
}

// settings are those that the venue's tools would run with.
func (v *venue) settings() *settings.Settings {
	v.t.Helper()
	environment := func(name string) (string, bool) { return os.LookupEnv(name) }
	if v.env != nil {
		environment = func(name string) (string, bool) {
			i := slices.IndexFunc(v.env, func(pair string) bool { return strings.HasPrefix(pair, name+"=") })
			if i < 0 {
				return "", false
			}
			return strings.TrimPrefix(v.env[i], name+"="), true
		}
	}
	std := settings.IO{Env: environment}
	if n, ok := environment(altered.ArchiveRange); ok {
		std.ArchiveRange, _ = strconv.ParseInt(n, 10, 64)
	}
	s, err := settings.Parse("test", []string{"--data", v.dir, "--topic-prefix", v.prefix}, std, nil)
	if err != nil {
		v.t.Fatal(err)
	}
	return s
}

// snapshot returns what the newest snapshot of a journal holds.
func (v *venue) snapshot(name string) *record.Seed {
	v.t.Helper()
	ctx, s := context.Background(), v.settings()
	box, err := s.FindMaster(ctx)
	if err != nil {
		v.t.Fatal(err)
	}
	saved, err := node.OpenSnapshots(ctx, s, journals.All(), box, slog.New(slog.DiscardHandler))
	if err != nil {
		v.t.Fatal(err)
	}
	defer saved.Close()
	seed, err := saved.Seed(ctx, name, 0)
	if err != nil || seed == nil {
		v.t.Fatalf("there is no snapshot: %v", err)
	}
	return seed
}

// checkSnapshot holds the newest snapshot against a fold of the log from genesis: they must be the same bytes.
func (v *venue) checkSnapshot() {
	v.t.Helper()
	ctx, seed := context.Background(), v.snapshot("trading")
	client, stop, err := tools.OpenLog(ctx, v.settings())
	if err != nil {
		v.t.Fatal(err)
	}
	defer stop()
	state, at := foldTo(ctx, v.t, client, seed.Position.Sequence)
	if !at.Equal(seed.Position) {
		v.t.Fatalf("the snapshot stands at %v, the log has %v", seed.Position, at)
	}
	if !bytes.Equal(trading.Codec().Append(nil, seed.State), trading.Codec().Append(nil, state)) {
		v.t.Errorf("the snapshot at %v is not what a fold from genesis comes to", at)
	}
}

// foldTo folds the trading journal from its genesis to a sequence.
func foldTo(ctx context.Context, t testing.TB, client *journal.Client, sequence int64) (state decide.State, at record.Position) {
	t.Helper()
	reader := journal.NewReader(client, trading.Rules(), 0, record.Before)
	defer reader.Close()
	for state, at = trading.Rules().NewState(), record.Before; at.Sequence < sequence; {
		entries, err := reader.PollFor(ctx, sequence)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if at.Sequence < sequence {
				state.Evolve(e.Stamp(), e.Record.Command, e.Record.Outcome, e.Record.Events)
				at = e.Position
			}
		}
	}
	return state, at
}

// views returns what clients see, of the end of the log, that comes from the node's fold or was folded by the engine.
func (v *venue) views() map[string]string {
	v.t.Helper()
	last := v.lastRecord("trading")
	asOf := regexp.MustCompile(`"(sequence|timestamp)":("[^"]*"|\d+)`)
	seen := make(map[string]string)
	for _, path := range []string{"/v1/orderbook/" + bitcoin, "/v1/customers/ANNA/account-summary", "/v1/customers/BEN/account-summary",
		"/v1/customers/BEN/positions", annasOrders, bensOrders, "/v1/instruments"} {
		// But for which record they are as of: each start adds one.
		seen[path] = asOf.ReplaceAllString(string(v.must(200, "broker-a", http.MethodGet, path, nil, "X-Min-Log-Position", last).Body), "")
	}
	return seen
}

// lastRecord returns the position of a journal's last record.
func (v *venue) lastRecord(journal string) string {
	v.t.Helper()
	return fmt.Sprintf("%s/0@%d", journal, len(v.records(journal))-1)
}

// TestSnapshots kills a venue that makes snapshots, and has it start from the newest: everything must be as it was, and
// also what is in the log before the snapshot still be found. Then it damages the newest snapshot, then all of them.
func TestSnapshots(t *testing.T) {
	t.Parallel()
	v := newVenue(t, "--snapshot-records", "10")
	v.start()
	t.Cleanup(v.stop)
	v.fund("10000", "ANNA", "BEN")
	entry := func(action, price string) string {
		return `{"symbol":"BTCUSDC_PERP","action":"` + action + `","type":"limit","amount":"0.010","limit_price":"` + price + `"}`
	}
	keyed := v.must(201, "broker-a", http.MethodPost, annasOrders, entry("sell", "66000.0"), "Idempotency-Key", "early")
	const leverage = "/v1/customers/ANNA/margin-profile/" + ether // is set and taken back by one type of command, on two routes
	set := v.must(200, "broker-a", http.MethodPut, leverage, `{"leverage":5}`, "Idempotency-Key", "early")
	taken := v.must(200, "broker-a", http.MethodDelete, leverage, nil, "Idempotency-Key", "early")
	command := v.commandOf("early")
	socket := livetest.Dial(t, v.WebSocket, v.token("broker-a"))
	socket.Subscribe("orders")
	for i := range 12 {
		v.must(201, "broker-a", http.MethodPost, annasOrders, entry("sell", fmt.Sprintf("65%d00.0", i%3)))
		v.must(201, "broker-a", http.MethodPost, bensOrders, entry("buy", fmt.Sprintf("6%d000.0", 4+i%2)))
	}
	waitFor(t, "a snapshot", func() bool { return v.measure("sequence") > 20 })
	v.must(201, "broker-a", http.MethodPost, bensOrders, entry("buy", "60000.0"))
	before := v.views()
	saved := v.measure("sequence")
	events := len(v.orderEvents())
	v.kill()
	v.checkSnapshot()

	v.start()
	if at := v.measure("loaded_sequence"); at < saved {
		t.Errorf("the venue started from the snapshot at %d; there is one at %d\n%s", at, saved, v.output)
	}
	for path, is := range v.views() {
		if was := before[path]; was != is {
			t.Errorf("after the start from a snapshot, %s shows\n%s\nand not\n%s", path, is, was)
		}
	}
	compareWithFold(t, v)
	again := v.must(201, "broker-a", http.MethodPost, annasOrders, entry("sell", "66000.0"), "Idempotency-Key", "early")
	if string(again.Body) != string(keyed.Body) {
		t.Errorf("the command from before the snapshot is answered with\n%s\nand not\n%s", again.Body, keyed.Body)
	}
	first := v.must(200, "broker-a", http.MethodPut, leverage, `{"leverage":5}`, "Idempotency-Key", "early")
	second := v.must(200, "broker-a", http.MethodDelete, leverage, nil, "Idempotency-Key", "early")
	if string(first.Body) != string(set.Body) || string(second.Body) != string(taken.Body) || string(set.Body) == string(taken.Body) {
		t.Errorf("the leverage from before the snapshot is answered with\n%s, %s\nand not\n%s, %s", first.Body, second.Body, set.Body, taken.Body)
	}
	v.must(409, "broker-a", http.MethodPut, leverage, `{"leverage":6}`, "Idempotency-Key", "early")
	if fate := v.must(200, "broker-a", http.MethodGet, "/v1/commands/"+command, nil); fate.get("status") != "applied" {
		t.Errorf("the command from before the snapshot is told to be %s", fate.Body)
	}
	v.checkTail()
	v.checkResume(events)
	v.checkLogFrom(saved)
	if out, err := v.command("audit").CombinedOutput(); err != nil {
		t.Errorf("perpetua audit: %v\n%s", err, out)
	}

	v.stop() // which makes another
	v.checkSnapshot()
	v.checkLogFromForged()
	files := v.snapshotFiles()
	v.spoil(files[len(files)-1:], func(content []byte) []byte { content[len(content)/2] ^= 1; return content })
	v.start()
	if v.measure("ignored_total") < 0 {
		t.Error("a tampered snapshot is not counted")
	}
	waitFor(t, "a word on the tampered snapshot", func() bool { return strings.Contains(v.output.said(), "a snapshot is ignored") })
	if at := v.measure("loaded_sequence"); at < 0 || strings.Contains(files[len(files)-1], fmt.Sprintf("/%020d-", at)) {
		t.Errorf("the venue started from %d, the tampered one is %s", at, files[len(files)-1])
	}
	compareWithFold(t, v)
	v.kill()
	v.spoil(v.snapshotFiles(), func(content []byte) []byte { return content[:len(content)/2] })
	v.start()
	if at := v.measure("loaded_sequence"); at >= 0 {
		t.Errorf("with no good snapshot the venue started from one at %d", at)
	}
	for path, is := range v.views() {
		if was := before[path]; was != is {
			t.Errorf("after the start without a snapshot, %s shows\n%s\nand not\n%s", path, is, was)
		}
	}
	compareWithFold(t, v)
	v.kill()
	for _, file := range v.snapshotFiles() { // by somebody who can write to the bucket, so that they say more than the log holds
		base := filepath.Base(file)
		if err := os.Rename(file, filepath.Join(filepath.Dir(file), "9"+base[1:])); err != nil {
			t.Fatal(err)
		}
	}
	v.start()
	if at := v.measure("loaded_sequence"); at >= 0 {
		t.Errorf("from renamed snapshots the venue started at %d", at)
	}
	waitFor(t, "a word on the renamed snapshots", func() bool {
		return strings.Contains(v.output.said(), "what is no snapshot of this venue")
	})
	compareWithFold(t, v)
}

// commandOf returns the id of the command that came with an Idempotency-Key.
func (v *venue) commandOf(key string) string {
	v.t.Helper()
	for _, line := range v.records("trading") {
		var record struct {
			Command struct {
				ID   string
				Data struct{ Key string }
			}
		}
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			v.t.Fatal(err)
		}
		if record.Command.Data.Key == key {
			return record.Command.ID
		}
	}
	v.t.Fatalf("no command came with the key %q", key)
	return ""
}

func (v *venue) spoil(files []string, change func([]byte) []byte) {
	v.t.Helper()
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			v.t.Fatal(err)
		}
		if err := os.WriteFile(file, change(content), 0o600); err != nil {
			v.t.Fatal(err)
		}
	}
}

// orderEvents returns the order events of the log.
func (v *venue) orderEvents() (events []string) {
	v.t.Helper()
	for _, line := range v.records("trading") {
		var record struct{ Events []struct{ Type string } }
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			v.t.Fatal(err)
		}
		for _, e := range record.Events {
			if strings.HasPrefix(e.Type, "order.") {
				events = append(events, e.Type)
			}
		}
	}
	return events
}

// checkTail checks that the operator sees the last records although they came before the snapshot.
func (v *venue) checkTail() {
	v.t.Helper()
	want := v.records("trading")
	waitFor(v.t, "the records before the snapshot", func() bool {
		var shown struct{ Records []struct{ Value string } }
		a := v.must(200, "operator", http.MethodGet, "/admin/v1/journals/trading/records?page_size=1000", nil)
		if err := json.Unmarshal(a.Body, &shown); err != nil {
			v.t.Fatal(err)
		}
		if len(shown.Records) < len(want) {
			return false
		}
		for i, r := range shown.Records[:len(want)] {
			if r.Value != want[i] {
				v.t.Fatalf("record %d is shown as %s", i, r.Value)
			}
		}
		return true
	})
}

// checkResume checks that a socket can go on from before the snapshot.
func (v *venue) checkResume(events int) {
	v.t.Helper()
	socket := livetest.Dial(v.t, v.WebSocket, v.token("broker-a"))
	socket.SubscribeWith(livetest.Request{Op: "subscribe", Args: []string{"orders"}, ResumeFrom: "trading/0@0"})
	socket.Until("the orders from before the snapshot", func(all []livetest.Message) bool {
		n := 0
		for _, m := range all {
			if m.Channel == "orders" {
				n++
			}
		}
		return n >= events
	})
}

// TestSnapshotBeyondTheLog loses the end of the log, and the read models with it: that there is a snapshot of it is
// enough to know that something is missing. Then the operator forgets the log, and the snapshots with it.
func TestSnapshotBeyondTheLog(t *testing.T) {
	t.Parallel()
	fake, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fake.Close)
	v := newVenue(t, "--snapshot-records", "1")
	v.prefix = "snapshot-"
	v.env = append(v.env, "PERPETUA_KAFKA_BROKERS="+strings.Join(fake.ListenAddrs(), ","))
	w := &withheld{venue: v, fake: fake}
	v.start()
	v.fund("10000", "ANNA", "BEN")
	v.must(200, "broker-a", http.MethodGet, bensOrders, nil, "X-Min-Log-Position", v.lastRecord("trading")) // what makes snapshots is at the tip
	v.stop()
	v.checkSnapshot()
	if n := len(v.snapshotFiles()); n == 0 {
		t.Fatal("at its stop the venue made no snapshot")
	}
	v.dropDatabase()
	if err := os.RemoveAll(filepath.Join(v.dir, "blob", "witnesses")); err != nil {
		t.Fatal(err)
	}
	w.cut(2)
	end := fake.PartitionInfo(v.prefix+"trading", 0).HighWatermark
	v.launch()
	if code := v.ended(); code != exitFailed || !strings.Contains(v.output.said(), "LOG_DIVERGED") {
		t.Errorf("with a log that ends before a snapshot, perpetua exits with %d:\n%s", code, v.output)
	}
	if now := fake.PartitionInfo(v.prefix+"trading", 0).HighWatermark; now != end {
		t.Errorf("%d records were appended to the truncated log", now-end)
	}
	if out, err := v.command("admin", "forget-log", "--journal", "trading").CombinedOutput(); err != nil {
		t.Fatalf("forget-log: %v\n%s", err, out)
	}
	if files := v.snapshotFiles(); len(files) != 0 {
		t.Errorf("after forget-log there are %v", files)
	}
	v.start()
	defer v.stop()
	compareWithFold(t, v)
}
