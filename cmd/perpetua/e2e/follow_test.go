package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/e2e/altered"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/local"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/live/livetest"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// newFollower prepares a node that follows a venue and is not running.
func newFollower(v *venue, args ...string) *venue {
	v.t.Helper()
	f := newVenue(v.t, args...)
	f.verb, f.prefix = "follow", v.prefix
	f.args = append([]string{"--venue-url", v.REST}, args...)
	f.env = []string{"PERPETUA_KAFKA_BROKERS=" + strings.Join(v.Kafka, ",")}
	return f
}

// startFollower starts a node that follows a venue and stops it with the test.
func startFollower(v *venue, args ...string) *venue {
	v.t.Helper()
	f := newFollower(v, args...)
	f.start()
	v.t.Cleanup(f.stop)
	f.borrow(v)
	return f
}

// borrow gives a follower the tokens of the venue's users.
func (v *venue) borrow(from *venue) {
	for _, u := range from.Users {
		v.tokens[u.Username] = from.token(u.Username)
	}
}

// equals compares a response of the follower with that of the venue, byte for byte. Both include the record at a position.
func (v *venue) equals(of *venue, at, user, path string) {
	v.t.Helper()
	want := of.must(200, user, http.MethodGet, path, nil, "X-Min-Log-Position", at)
	got := v.must(200, user, http.MethodGet, path, nil, "X-Min-Log-Position", want.Header.Get("X-Log-Position"))
	if string(got.Body) != string(want.Body) {
		v.t.Errorf("%s: the follower answers %s, and the venue %s", path, got.Body, want.Body)
	}
}

// bothPaths are reads that a follower and its venue answer with the same bytes.
func bothPaths() map[string][]string {
	return map[string][]string{
		"broker-a": {"/v1/customers", "/v1/customers/ANNA/orders", "/v1/customers/ANNA/trades", "/v1/customers/BEN/positions", "/v1/customers/BEN/balances",
			"/v1/customers/BEN/account-summary", "/v1/customers/ANNA/orders/history", "/v1/customers/ANNA/transactions", "/v1/customers/ANNA/state"},
		"": {"/v1/instruments", "/v1/market-trades?symbol=BTCUSDC_PERP", "/v1/orderbook/BTCUSDC_PERP", "/v1/candles/BTCUSDC_PERP?interval=1d", "/v1/liabilities"},
	}
}

// trade has ANNA and BEN trade, and returns the position of the last record.
func (v *venue) trade(amount string) (position string) {
	v.t.Helper()
	v.must(201, "broker-a", http.MethodPost, "/v1/customers/ANNA/orders",
		`{"symbol":"BTCUSDC_PERP","action":"sell","type":"limit","amount":"0.2","limit_price":"65000.0"}`)
	return v.must(201, "broker-a", http.MethodPost, "/v1/customers/BEN/orders",
		`{"symbol":"BTCUSDC_PERP","action":"buy","type":"market","amount":"`+amount+`"}`).Header.Get("X-Log-Position")
}

// TestFollow follows a venue: REST, SQL and sockets show what the venue shows, and everything else is refused. Killed and started
// again, the follower continues.
func TestFollow(t *testing.T) {
	t.Parallel()
	v := startVenue(t)
	v.fund("100000", "ANNA", "BEN")
	v.signedTree(5)
	f := startFollower(v, "--tlog-key", strings.TrimSpace(string(v.must(200, "", http.MethodGet, "/tlog/trading/0/key", nil).Body)))
	if f.Follows != local.FollowsBrokers || v.Follows != "" {
		t.Errorf("run.json of the follower says that it follows %q, and that of the venue %q", f.Follows, v.Follows)
	}
	person := v.must(201, "broker-a", http.MethodPost, "/api/v1/persons", `{"external_id":"p-1","first_name":"Ann","last_name":"Example"}`)
	c := livetest.Dial(t, f.WebSocket, v.token("broker-a"))
	c.Subscribe("market-trades:BTCUSDC_PERP", "orders", "balance-changes")
	at := v.trade("0.05")
	for user, paths := range bothPaths() {
		for _, path := range paths {
			f.equals(v, at, user, path)
		}
	}
	waitFor(t, "the trade on the follower's sockets", func() bool {
		return len(c.On("market-trades:BTCUSDC_PERP")) > 0 && len(c.On("orders")) > 0 && len(c.On("balance-changes")) > 0
	})
	f.sameRows(v)
	f.refusesWrites(c)
	if a := f.do("broker-a", http.MethodGet, "/api/v1/persons/"+person.get("id"), nil, "X-Min-Log-Position", person.Header.Get("X-Log-Position")); a.Status != 404 {
		t.Errorf("a person, without the key: %d %s", a.Status, a.Body)
	}
	key := v.must(201, "broker-a", http.MethodPost, "/v1/api-keys", `{"name":"follow","scopes":["read"]}`)
	if a := f.do("", http.MethodGet, "/v1/customers", nil, "Authorization", "Bearer "+key.get("key")); a.Status != 401 || !strings.Contains(a.get("detail"), "no API keys") {
		t.Errorf("an API key: %d %s", a.Status, a.Body)
	}

	f.kill()
	if source := (&local.Folder{Dir: f.dir}).Follows(); source != local.FollowsBrokers {
		t.Errorf("the folder of the killed follower says that it follows %q", source)
	}
	later := v.trade("0.02")
	f.start()
	f.borrow(v)
	f.equals(v, later, "broker-a", "/v1/customers/BEN/positions")
	if past := f.must(200, "broker-a", http.MethodGet, "/v1/customers/BEN/positions?as_of="+at, nil); !strings.Contains(string(past.Body), "0.05") {
		t.Errorf("as of %s: %s", at, past.Body)
	}
	f.sameRows(v)
	if f.scrape().value("perpetua_follow_stopped", "journal", "trading") != 0 {
		t.Error("it has stopped")
	}
}

// sameRows compares the tables of a follower with those of its venue.
func (v *venue) sameRows(of *venue) {
	v.t.Helper()
	waitFor(v.t, "the rows of the venue at its follower", func() bool { return maps.Equal(v.digests(), of.digests()) })
}

// refusesWrites checks that a follower refuses whatever could change something.
func (v *venue) refusesWrites(c *livetest.Client) {
	v.t.Helper()
	for _, r := range [][3]string{{"broker-a", http.MethodPost, "/v1/customers/ANNA/orders"}, {"", http.MethodPost, "/v1/customers/ANNA/orders"},
		{"operator", http.MethodDelete, "/v1/customers/ANNA/orders"}, {"operator", http.MethodPost, "/admin/v1/index-prices/BTCUSDC_PERP"},
		{"", http.MethodPost, "/auth/jwt/login"}, {"broker-a", http.MethodPost, "/api/v1/persons"}} {
		a := v.do(r[0], r[1], r[2], "{")
		if a.Status != http.StatusForbidden || a.code() != "READ_ONLY" || !strings.Contains(a.Header.Get("Link"), r[2]+`>; rel="alternate"`) {
			v.t.Errorf("%s %s: %d %s %s", r[1], r[2], a.Status, a.Body, a.Header)
		}
	}
	for _, path := range []string{"/tlog/trading/0/checkpoint", "/v1/customers/ANNA/liability-proof"} {
		if a := v.do("broker-a", http.MethodGet, path, nil); a.Status != http.StatusForbidden || a.code() != "ASK_THE_VENUE" {
			v.t.Errorf("%s: %d %s", path, a.Status, a.Body)
		}
	}
	c.SendText([]byte(`{"op":"order.place","id":"no","data":{}}`))
	if m := c.Next("the refusal", func(m livetest.Message) bool { return m.Op == "result" }); m.Fields()["status"] != "403" || !strings.Contains(string(m.Raw), "READ_ONLY") {
		v.t.Errorf("%s", m.Raw)
	}
	if m := c.Ask(livetest.Request{Op: "authenticate", Data: map[string]any{"token": v.tokens["broker-a"], "cancel_on_disconnect": true}}); m.Code != "READ_ONLY" {
		v.t.Errorf("%s", m.Raw)
	}
}

// forge appends a record that continues the log and that no owner decided: a deposit of the past again.
func (v *venue) forge() (sequence int64) {
	v.t.Helper()
	all := v.records("trading")
	i := slices.IndexFunc(all, func(r string) bool { return strings.Contains(r, `"deposit.make"`) })
	var made map[string]json.RawMessage
	if err := json.Unmarshal([]byte(all[i]), &made); err != nil {
		v.t.Fatal(err)
	}
	prev := sha256.Sum256([]byte(all[len(all)-1]))
	sequence = int64(len(all))
	value := fmt.Sprintf(`{"sequence":%d,"prev":%q,"time":%q,"command":%s,"outcome":%s,"events":%s}`, sequence, hex.EncodeToString(prev[:]),
		time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"), made["command"], made["outcome"], made["events"])
	decoded, err := record.Decode(trading.Rules().Registry(), []byte(value))
	if err != nil {
		v.t.Fatal(err)
	}
	var genesis struct {
		Events []struct {
			Data struct {
				ID scalar.ID `json:"journal_id"`
			}
		}
	}
	if err := json.Unmarshal([]byte(all[0]), &genesis); err != nil {
		v.t.Fatal(err)
	}
	kc, err := kgo.NewClient(kgo.SeedBrokers(v.Kafka...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		v.t.Fatal(err)
	}
	defer kc.Close()
	forged := journal.KafkaRecord(v.prefix+"trading", "trading", 0, genesis.Events[0].Data.ID, decoded, []byte(value))
	if err := kc.ProduceSync(context.Background(), forged).FirstErr(); err != nil {
		v.t.Fatal(err)
	}
	return sequence
}

// TestFollowRefusesAForgery appends a record that nobody decided: the follower shows what comes before it and says so, also after
// it was started again.
func TestFollowRefusesAForgery(t *testing.T) {
	t.Parallel()
	v := startVenue(t)
	v.fund("100000", "ANNA", "BEN")
	f := startFollower(v)
	f.equals(v, v.trade("0.05"), "broker-a", "/v1/customers/BEN/balances")
	before := f.must(200, "broker-a", http.MethodGet, "/v1/customers/BEN/balances", nil).Body
	// The owner does not decide records of others again. Its rules take the forgery for a deposit.
	n := v.forge()
	stopped := fmt.Sprintf("trading/0@%d", n-1)
	check := func() {
		t.Helper()
		waitForWord(t, "the follower to stop", func() string { // it is not ready for other reasons before
			ready := f.do("", http.MethodGet, "/readyz", nil)
			said := string(ready.Body)
			if ready.Status == 503 && strings.Contains(said, stopped) && strings.Contains(said, fmt.Sprintf("record %d is wrong", n)) {
				return ""
			}
			return fmt.Sprintf("/readyz: %d %s", ready.Status, said)
		})
		a := f.must(200, "broker-a", http.MethodGet, "/v1/customers/BEN/balances", nil)
		if a.Header.Get("X-Log-Stopped") != stopped || string(a.Body) != string(before) {
			t.Errorf("%s %s", a.Header, a.Body)
		}
		if a := f.do("broker-a", http.MethodGet, "/v1/customers/BEN/balances", nil, "X-Min-Log-Position", fmt.Sprintf("trading/0@%d", n)); a.Status != 503 {
			t.Errorf("a later position: %d %s", a.Status, a.Body)
		}
		db := f.database()
		defer db.Close(context.Background())
		waitForWord(t, "the rows to be where it stopped", func() string {
			var at int64
			if err := db.QueryRow(context.Background(), `SELECT sequence FROM checkpoints WHERE journal = 'trading'`).Scan(&at); err != nil || at != n-1 {
				return fmt.Sprintf("the rows are at %d, want %d: %v", at, n-1, err)
			}
			return ""
		})
		waitFor(t, "a metric to say so", func() bool {
			s := f.scrape()
			return s.value("perpetua_follow_stopped", "journal", "trading") == 1 && s.value("perpetua_journal_alarms_total", "journal", "trading", "kind", "verify") == 1
		})
	}
	check()
	f.kill()
	f.start()
	f.borrow(v)
	check()
}

// TestFollowWithoutBrokers starts a follower whose venue is away, and then the venue.
func TestFollowWithoutBrokers(t *testing.T) {
	t.Parallel()
	v := newVenue(t)
	v.keepLog() // and no brokers of others stay in reach
	v.start()
	t.Cleanup(v.stop)
	v.fund("100000", "ANNA", "BEN")
	f := newFollower(v, "--rules")
	f.start()
	t.Cleanup(f.stop)
	f.borrow(v)
	f.equals(v, v.trade("0.05"), "broker-a", "/v1/customers/BEN/balances")
	v.kill()
	if a := f.must(200, "broker-a", http.MethodGet, "/v1/customers/BEN/balances", nil); len(a.Body) == 0 {
		t.Error("no answer without brokers")
	}
	waitFor(t, "the follower to notice", func() bool {
		return strings.Contains(string(f.do("", http.MethodGet, "/readyz", nil).Body), "out of reach")
	})
}

// TestFollowAnArchive follows the archive of a venue that is stopped, gets what the archive gets later, and refuses one that
// contradicts what it has read.
func TestFollowAnArchive(t *testing.T) {
	t.Parallel()
	v := startVenue(t)
	v.fund("100000", "ANNA", "BEN")
	at := v.trade("0.05")
	dir := t.TempDir()
	key, bucket := filepath.Join(dir, "key"), "file://"+filepath.Join(dir, "archive")
	if err := os.WriteFile(key, []byte(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32))+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	hand := func() {
		t.Helper()
		if out, err := v.command("log", "archive", "--to", bucket, "--key-file", key).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	hand()
	f := newVenue(t)
	f.keepLog()
	f.prefix = v.prefix // the archive's names begin with it
	f.verb, f.args = "follow", []string{"--archive-url", bucket, "--archive-key-file", key, "--archive-every", "1s"}
	f.start()
	t.Cleanup(f.stop)
	f.borrow(v)
	f.equals(v, at, "broker-a", "/v1/customers/BEN/positions")
	at = v.trade("0.02")
	if a := f.do("broker-a", http.MethodGet, "/v1/customers/BEN/positions", nil, "X-Min-Log-Position", at); a.Status != 412 {
		t.Errorf("before it is archived: %d", a.Status)
	}
	hand()
	f.insist(200, func() answer {
		return f.do("broker-a", http.MethodGet, "/v1/customers/BEN/positions", nil, "X-Min-Log-Position", at)
	})
	f.equals(v, at, "broker-a", "/v1/customers/BEN/positions")
	f.sameRows(v)

	f.kill()
	f.start()
	f.borrow(v)
	f.equals(v, at, "broker-a", "/v1/customers/BEN/positions")
	if err := os.RemoveAll(filepath.Join(dir, "archive")); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the follower to miss the archive", func() bool {
		return strings.Contains(string(f.do("", http.MethodGet, "/readyz", nil).Body), "the archive could not be read since")
	})
}

// TestFollowATrimmedCopy: a follower of an archive deletes from its own broker what the archive has and nothing needs. It answers as
// before, also after a start that reads the log from its genesis on, and gets what the archive gets later.
func TestFollowATrimmedCopy(t *testing.T) {
	t.Parallel()
	short := []string{altered.ArchiveRange + "=32", altered.SegmentBytes + "=8192"}
	v := newVenue(t)
	v.env = append(v.env, short...)
	v.start()
	t.Cleanup(v.stop)
	v.fund("1000000", "ANNA", "BEN")
	dir := t.TempDir()
	key, bucket := filepath.Join(dir, "key"), "file://"+filepath.Join(dir, "archive")
	if err := os.WriteFile(key, []byte(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32))+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	at := ""
	trade := func() {
		t.Helper()
		for range 40 { // 80 records: the base of the log moves by 64 records
			at = v.trade("0.2")
		}
		v.tool("log", "archive", "--to", bucket, "--key-file", key)
	}
	trade()
	f := newVenue(t)
	f.keepLog()
	f.prefix, f.env = v.prefix, append(f.env, short...)
	f.verb, f.args = "follow", []string{"--archive-url", bucket, "--archive-key-file", key, "--archive-every", "1s", "--snapshot-records", "10",
		"--snapshot-interval", "1s", "--trim-after", "0s"}
	base := func() (sequence int64) {
		files, err := filepath.Glob(filepath.Join(f.dir, "kafka", "partitions", "*trading*", "trim.json"))
		if err != nil || len(files) != 1 {
			return 0
		}
		var trim struct {
			Base struct {
				Sequence int64 `json:"sequence"`
			} `json:"base"`
		}
		text, err := os.ReadFile(files[0])
		if err == nil {
			err = json.Unmarshal(text, &trim)
		}
		if err != nil {
			t.Fatal(err)
		}
		return trim.Base.Sequence
	}
	same := func() {
		t.Helper()
		f.borrow(v)
		f.insist(200, func() answer {
			return f.do("broker-a", http.MethodGet, "/v1/customers/BEN/positions", nil, "X-Min-Log-Position", at)
		})
		for user, paths := range bothPaths() {
			for _, path := range paths {
				f.equals(v, at, user, path)
			}
		}
		f.sameRows(v)
	}
	f.start()
	t.Cleanup(f.stop)
	same()
	trade()
	same()
	waitFor(t, "the follower to trim its log", func() bool { return base() > 0 })
	first := base()

	f.stop()
	f.refused("--archive-key-file names the key", "doctor", "--archive-url", bucket)
	if out := f.tool("doctor", "--archive-url", bucket, "--archive-key-file", key); !strings.Contains(out, "records that were trimmed from the log") {
		t.Errorf("doctor said\n%s", out)
	}
	if out := f.tool("log", "--journal", "trading", "--archive-url", bucket, "--archive-key-file", key); !strings.HasPrefix(out, `{"sequence":0,`) {
		t.Errorf("the log begins with %.200s", out)
	}
	f.args = append(f.args, "--rules")
	f.start()
	same()
	trade()
	same()
	waitFor(t, "the follower to trim its log again", func() bool { return base() > first })

	f.stop()
	last := base()
	f.args = append(f.args, "--trim", "off")
	f.start()
	trade()
	same()
	f.stop()
	f.refused("--archive-key-file names the key", "log", "trim", "--archive-url", bucket)
	f.tool("log", "trim", "--archive-url", bucket, "--archive-key-file", key, "--trim-after", "0s")
	if base() <= last {
		t.Errorf("log trim left the base at record %d", last)
	}
	f.start()
	same()
}

// TestFollowOnTheFolderOfANode: no follower takes the folder of a node that has all its stores elsewhere.
func TestFollowOnTheFolderOfANode(t *testing.T) {
	t.Setenv("KAFKA_BROKERS", "")
	host := newVenue(t)
	key := "PERPETUA_MASTER_KEY=" + base64.StdEncoding.EncodeToString(make([]byte, 32))
	host.env = []string{key}
	host.start()
	t.Cleanup(host.stop)
	brokers := strings.Join(host.Kafka, ",")
	front := newVenue(t, "--role", "api", "--kafka-brokers", brokers, "--database-url", host.DatabaseURL, "--key-url", blob.URLOf(host.dir+"/keys"))
	front.verb, front.env = "serve", []string{key}
	front.start()
	front.stop()
	front.env = nil
	front.refused("is that of a venue", "follow", "--kafka-brokers", brokers)
}

// TestFollowRefusesAnotherHistory kills a follower, and starts it with brokers that hold another history: it shows nothing of that one,
// and says so.
func TestFollowRefusesAnotherHistory(t *testing.T) {
	t.Parallel()
	v, other := startVenue(t), startVenue(t)
	v.fund("100000", "ANNA", "BEN")
	f := startFollower(v)
	f.equals(v, v.trade("0.05"), "broker-a", "/v1/customers/BEN/balances")
	rows := f.digests()
	f.kill()
	f.env, f.prefix = []string{"PERPETUA_KAFKA_BROKERS=" + strings.Join(other.Kafka, ",")}, other.prefix
	f.start()
	waitForWord(t, "the follower to stop", func() string { // each journal by itself
		var ready struct{ Stopped map[string]string }
		a := f.do("", http.MethodGet, "/readyz", nil)
		if err := json.Unmarshal(a.Body, &ready); err == nil && ready.Stopped["identity"] != "" && ready.Stopped["trading"] != "" {
			return ""
		}
		return string(a.Body)
	})
	if !maps.Equal(rows, f.digests()) {
		t.Error("the rows have changed")
	}
	a := f.do("", http.MethodGet, "/v1/instruments", nil)
	if len(a.Header.Values("X-Log-Stopped")) == 0 || strings.Contains(string(a.Body), "BTCUSDC_PERP") {
		t.Errorf("it shows another venue's instruments: %s %s", a.Header, a.Body)
	}
	waitFor(t, "the alarm", func() bool {
		return f.scrape().value("perpetua_journal_alarms_total", "journal", "trading", "kind", "verify") == 1
	})
}
