package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// ended waits until a launched process has ended, and returns its exit code.
func (v *venue) ended() int {
	v.t.Helper()
	waitForWord(v.t, "perpetua to end", func() string {
		select {
		case <-v.exited:
			return ""
		default:
			return "it goes on:\n" + v.output.said()
		}
	})
	return v.cmd.ProcessState.ExitCode()
}

// outcome runs a command to its end, with variables on top of the venue's, and returns its exit code and all it said.
func (v *venue) outcome(variables []string, args ...string) (code int, said string) {
	v.t.Helper()
	cmd := v.command(args...)
	cmd.Env = append(cmd.Env, variables...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		v.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// files returns the hash of every file below a folder, but of locks: they say which process came last.
func files(t *testing.T, folder string) map[string][sha256.Size]byte {
	t.Helper()
	out := make(map[string][sha256.Size]byte)
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || entry.Name() == "lock" {
			return err
		}
		content, err := os.ReadFile(path)
		out[path] = sha256.Sum256(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// batches returns where each batch of a segment begins, and at last its end.
func batches(content []byte) (at []int) {
	for i := 0; i+12 <= len(content); {
		at = append(at, i)
		i += 12 + int(binary.BigEndian.Uint32(content[i+8:]))
	}
	return append(at, len(content))
}

// cutTradingLog removes the last batch of the trading journal from the folder of a stopped venue.
func (v *venue) cutTradingLog() {
	v.t.Helper()
	segments, err := filepath.Glob(filepath.Join(v.dir, "kafka", "partitions", "*trading*", "*.dat"))
	if err != nil || len(segments) != 1 {
		v.t.Fatalf("segments %v, %v", segments, err)
	}
	content, err := os.ReadFile(segments[0])
	if err != nil {
		v.t.Fatal(err)
	}
	all := batches(content)
	if err := os.Truncate(segments[0], int64(all[len(all)-2])); err != nil {
		v.t.Fatal(err)
	}
}

// TestDamagedLog flips bytes of the log of a stopped venue. Every time it must refuse to start, name the file and the
// byte, and leave everything as it is. What a crash leaves behind, an incomplete last batch, is dropped instead.
func TestDamagedLog(t *testing.T) {
	t.Parallel()
	if os.Getenv("KAFKA_BROKERS") != "" {
		t.Skip("the log is not in files of ours")
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	v := newVenue(t, "--demo=false")
	v.start()
	t.Cleanup(v.stop)
	v.fund("10000", "ANNA")
	const entry = `{"symbol":"BTCUSDC_PERP","action":"buy","type":"limit","amount":"0.001","limit_price":"60000.0","reference_id":"kept"}`
	placed := v.must(201, "broker-a", http.MethodPost, annasOrders, entry)
	v.stop()
	records := v.records("trading")
	segments, err := filepath.Glob(filepath.Join(v.dir, "kafka", "partitions", "*", "*.dat"))
	if err != nil || len(segments) != len(journals.All()) { // one of each journal
		t.Fatalf("segments %v, %v", segments, err)
	}
	whole := files(t, filepath.Join(v.dir, "kafka"))

	type flip struct {
		path       string
		at         int
		bit        byte
		batch, end int // of the batch that the byte is in
	}
	var flips []flip
	for _, path := range segments {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all := batches(content)
		final := all[len(all)-2]
		// The last batch's length, so that it looks incomplete; the first byte and the last; and some at random.
		places := []int{0, final + 8, final + 9, final + 10, final + 11, final, final + 17, len(content) - 1}
		for range 24 {
			places = append(places, random.IntN(len(content)))
		}
		for _, at := range places {
			i, found := slices.BinarySearch(all, at)
			if !found {
				i--
			}
			flips = append(flips, flip{path, at, 1 << random.IntN(8), all[i], all[i+1]})
		}
	}
	for _, f := range flips {
		content, err := os.ReadFile(f.path)
		if err != nil {
			t.Fatal(err)
		}
		good := content[f.at]
		content[f.at] ^= f.bit
		if err := os.WriteFile(f.path, content, 0o644); err != nil {
			t.Fatal(err)
		}
		damaged := files(t, filepath.Join(v.dir, "kafka"))
		v.launch()
		code := v.ended()
		var byteAt int
		said := v.output.said()
		_, after, named := strings.Cut(said, f.path+" is damaged at byte ")
		_, err = fmt.Sscanf(after, "%d", &byteAt)
		switch {
		case code != exitFailed:
			t.Errorf("byte %d of %s flipped by %#x: perpetua exits with %d:\n%s", f.at, f.path, f.bit, code, said)
		case !named || err != nil:
			t.Errorf("byte %d of %s flipped by %#x: perpetua does not name the file and the byte:\n%s", f.at, f.path, f.bit, said)
		case byteAt < f.batch || byteAt >= f.end:
			t.Errorf("byte %d of %s flipped by %#x: perpetua names the byte %d", f.at, f.path, f.bit, byteAt)
		}
		for path, hash := range files(t, filepath.Join(v.dir, "kafka")) {
			if hash != damaged[path] {
				t.Errorf("byte %d of %s flipped by %#x: %s was changed", f.at, f.path, f.bit, path)
			}
		}
		content[f.at] = good
		if err := os.WriteFile(f.path, content, 0o644); err != nil {
			t.Fatal(err)
		}
		if t.Failed() {
			return
		}
	}
	if !maps.Equal(files(t, filepath.Join(v.dir, "kafka")), whole) {
		t.Fatal("the log was not restored")
	}

	// A batch that a crash cut off: it was never acknowledged, and nobody misses it.
	for _, path := range segments {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all := batches(content)
		torn := bytes.Clone(content[all[len(all)-2]:])
		binary.BigEndian.PutUint64(torn, uint64(len(all)-1)) // one record a batch, so far
		torn = torn[:1+random.IntN(len(torn)-1)]
		if err := os.WriteFile(path, append(content, torn...), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	v.start()
	now := v.records("trading")
	if len(now) <= len(records) || !slices.Equal(now[:len(records)], records) {
		t.Fatalf("%d records, before %d", len(now), len(records))
	}
	for _, text := range now[len(records):] { // a term for each time that the node became the owner
		if !strings.Contains(text, `"type":"`+record.TypeTermStarted+`"`) {
			t.Errorf("the log has got %s", text)
		}
	}
	if again := v.must(200, "broker-a", http.MethodPost, annasOrders, entry); again.get("code") != placed.get("code") {
		t.Errorf("the order is now %s, before %s", again.Body, placed.Body)
	}
	v.must(200, "broker-a", http.MethodDelete, annasOrders+"/"+placed.get("code"), nil)
}

// TestCopiedFolder copies the data folder of a stopped venue and starts both. Each is whole, and neither knows of the other:
// they have their own logs, rows, ports and snapshots, and go on apart from one history.
func TestCopiedFolder(t *testing.T) {
	t.Parallel()
	if os.Getenv("KAFKA_BROKERS") != "" {
		t.Skip("the log is not in the folder")
	}
	original, copied := newWholeVenue(t, "--snapshot-records", "10"), newWholeVenue(t, "--snapshot-records", "10")
	original.start()
	original.fund("10000", "ANNA", "BEN")
	original.must(201, "broker-a", http.MethodPost, annasOrders, `{"symbol":"BTCUSDC_PERP","action":"sell","type":"limit","amount":"0.010","limit_price":"66000.0"}`)
	original.stop()
	history := original.records("trading")
	// Into the folder that is there: one made anew under its name would be locked by nobody, and the tests of another package,
	// which run meanwhile, would sweep it away.
	if out, err := exec.Command("cp", "-a", original.dir+"/.", copied.dir).CombinedOutput(); err != nil {
		t.Fatalf("cp: %v\n%s", err, out)
	}
	venues := map[string]*venue{"original": original, "copy": copied}
	for _, v := range venues {
		v.start()
		t.Cleanup(v.stop)
	}
	if original.REST == copied.REST || original.DatabaseURL == copied.DatabaseURL || slices.Equal(original.Kafka, copied.Kafka) {
		t.Errorf("the two share an address: %v, %v", original.RunFile, copied.RunFile)
	}
	for name, v := range venues {
		bought := v.must(201, "broker-a", http.MethodPost, bensOrders, `{"symbol":"BTCUSDC_PERP","action":"buy","type":"market","amount":"0.00`+fmt.Sprint(len(name)%9)+`"}`)
		if bought.get("status") != "filled" {
			t.Errorf("%s: the order is %s", name, bought.Body)
		}
		own := map[string]string{"customer_code": strings.ToUpper(name)}
		v.must(201, "broker-a", http.MethodPost, "/v1/customers", own)
	}
	for name, v := range venues {
		read := v.must(200, "broker-a", http.MethodGet, "/v1/customers", nil, "X-Min-Log-Position", v.lastRecord("trading"))
		for other := range venues {
			if strings.Contains(string(read.Body), strings.ToUpper(other)) != (other == name) {
				t.Errorf("%s knows of the other's customers, or not of its own: %s", name, read.Body)
			}
		}
		if now := v.records("trading"); len(now) <= len(history) || !slices.Equal(now[:len(history)], history) {
			t.Errorf("%s: %d records, of which the first %d are not the history", name, len(now), len(history))
		}
		if out, err := v.command("audit").CombinedOutput(); err != nil {
			t.Errorf("%s: perpetua audit: %v\n%s", name, err, out)
		}
	}
	for name, v := range venues { // and again, each where it was
		v.stop()
		v.start()
		v.must(200, "broker-a", http.MethodGet, "/v1/customers/"+strings.ToUpper(name)+"/orders", nil)
	}
}

// TestToolsAskTheRowsOfAStoppedVenue takes the last record, the snapshots and the witnesses away from a venue that is stopped.
// Its own Postgres, which does not run, is all that still knows how far the log went.
func TestToolsAskTheRowsOfAStoppedVenue(t *testing.T) {
	t.Parallel()
	if os.Getenv("KAFKA_BROKERS") != "" {
		t.Skip("the log is not in files of ours")
	}
	v := newWholeVenue(t)
	v.start()
	v.fund("10000", "ANNA")
	v.must(200, "broker-a", http.MethodGet, annasOrders, nil, "X-Min-Log-Position", v.lastRecord("trading"))
	v.stop()
	whole := v.records("trading")
	v.cutTradingLog()
	for _, known := range []string{"snapshots", "witnesses"} {
		if err := os.RemoveAll(filepath.Join(v.dir, "blob", known)); err != nil {
			t.Fatal(err)
		}
	}
	backup := filepath.Join(t.TempDir(), "log.zst")
	for _, tool := range [][]string{{"log"}, {"log", "--from", "3"}, {"log", "copy", "--from", v.dir, "--to", backup}, {"audit"}, {"rebuild"}} {
		code, said := v.outcome(nil, tool...)
		if code != exitFailed || !strings.Contains(said, "LOG_DIVERGED: journal trading/0") {
			t.Errorf("%v exits with %d:\n%s", tool, code, said)
		}
		if printed := strings.Count(said, "\n{"); tool[0] == "log" && len(tool) == 1 && printed < len(whole)-3 {
			t.Errorf("log printed %d of %d records", printed, len(whole)-1)
		}
	}
	if _, err := os.Stat(backup); err == nil {
		t.Error("there is a backup of the truncated log")
	}
	// Where there are no rows to be asked, the command says so.
	if err := os.RemoveAll(filepath.Join(v.dir, "postgres")); err != nil {
		t.Fatal(err)
	}
	if code, said := v.outcome(nil, "log"); code != exitDone || !strings.Contains(said, "held against no rows") {
		t.Errorf("log without rows exits with %d:\n%s", code, said)
	}
	if _, err := os.Stat(filepath.Join(v.dir, "postgres")); err == nil {
		t.Error("to read the log, a Postgres was made")
	}
}

// TestRunContract holds `perpetua run` to what scripts rely on.
func TestRunContract(t *testing.T) {
	t.Parallel()
	v := newWholeVenue(t, "--demo=false")
	v.start()
	t.Cleanup(v.stop)
	path := filepath.Join(v.dir, "run.json")
	for _, name := range []string{"run.json", "users.json"} {
		if info, err := os.Stat(filepath.Join(v.dir, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var run struct {
		PID         int      `json:"pid"`
		REST        string   `json:"rest"`
		WebSocket   string   `json:"websocket"`
		Kafka       []string `json:"kafka"`
		DatabaseURL string   `json:"database_url"`
		Users       []struct {
			Username, Password, Broker string
			Scopes                     []string
		} `json:"users"`
	}
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&run); err != nil {
		t.Fatalf("%s: %v", content, err)
	}
	if run.PID != v.cmd.Process.Pid || run.WebSocket != strings.Replace(run.REST, "http://", "ws://", 1)+"/v1/ws" || len(run.Kafka) == 0 || !strings.HasPrefix(run.DatabaseURL, "postgres://") {
		t.Errorf("run.json: %s", content)
	}
	var users []string
	for _, u := range run.Users {
		users = append(users, fmt.Sprint(u.Username, " ", u.Broker, " ", u.Scopes))
	}
	if want := []string{"operator venue [operator read]", "auditor venue [auditor read]", "broker-a alpha [trade read onboarding]", "broker-b beta [trade read onboarding]"}; !slices.Equal(users, want) {
		t.Errorf("the users are %q, want %q", users, want)
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		v.must(200, "", http.MethodGet, path, nil)
	}
	listed := v.must(200, "", http.MethodGet, "/v1/instruments", nil)
	var instruments []fields
	listed.decode(t, &instruments)
	var symbols []string
	for _, i := range instruments {
		symbols = append(symbols, i["symbol"])
	}
	if !slices.Equal(symbols, []string{"BTCUSDC_PERP", "ETHUSDC_PERP", "SOLUSDC_PERP"}) {
		t.Errorf("the instruments are %v", symbols)
	}

	code, said := v.outcome(nil, "run", "--listen", "127.0.0.1:0")
	if code != exitFailed || !strings.Contains(said, "in use") || !strings.Contains(said, fmt.Sprint(run.PID)) {
		t.Errorf("a second start exits with %d and says:\n%s", code, said)
	}
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, content) {
		t.Errorf("a second start changed run.json: %v", err)
	}
	v.must(200, "", http.MethodGet, "/readyz", nil)

	v.stop() // SIGTERM; wants 0
	for _, said := range []string{run.REST, run.WebSocket, run.Kafka[0], run.DatabaseURL, run.Users[0].Password} {
		if !strings.Contains(v.output.said(), said) {
			t.Errorf("a person is not told %s:\n%s", said, v.output)
		}
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("run.json after a clean stop: %v", err)
	}
	passwords := run.Users
	v.start()
	for i, u := range v.Users {
		if u.Password != passwords[i].Password {
			t.Errorf("%s got another password", u.Username)
		}
	}
	v.token("broker-a")

	// Killed, it leaves run.json behind, and nobody is misled by it.
	v.kill()
	if _, err := os.Stat(path); err != nil {
		t.Errorf("run.json after a kill: %v", err)
	}
	if n := len(v.records("trading")); n < 5 {
		t.Errorf("%d records beside a run.json of the dead", n)
	}
	// Where the folder has lost its users, they get new passwords; the old ones are good no more.
	if err := os.Remove(filepath.Join(v.dir, "users.json")); err != nil {
		t.Fatal(err)
	}
	v.start()
	for i, u := range v.Users {
		if u.Password == passwords[i].Password {
			t.Errorf("%s kept the lost password", u.Username)
		}
	}
	if !strings.Contains(v.output.said(), "these users have new passwords") {
		t.Errorf("nothing is said of new passwords:\n%s", v.output)
	}
	v.token("operator")
	r, err := v.client.PostForm(v.REST+"/auth/jwt/login", map[string][]string{"username": {"operator"}, "password": {passwords[0].Password}})
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if r.StatusCode != http.StatusBadRequest {
		t.Errorf("the lost password: %d", r.StatusCode)
	}
}

// TestNoOperatorIsLeft: the first operator stays inactive without the folder's users as long as another operator is active. If none is,
// or all are confined to one account, a start without them restores the first one.
func TestNoOperatorIsLeft(t *testing.T) {
	t.Parallel()
	v := newWholeVenue(t, "--demo=false")
	v.start()
	t.Cleanup(v.stop)
	const password = "a password of the second"
	made := v.must(201, "operator", http.MethodPost, "/admin/v1/users", `{"username":"second","password":"`+password+`","broker":"venue","scopes":["operator","trade","read"]}`)
	v.tokens["second"] = v.login("second", password, made)
	v.must(200, "second", http.MethodPatch, "/admin/v1/users/operator", `{"is_active":false,"scopes":["read"]}`)
	again := func() {
		v.stop()
		if err := os.Remove(filepath.Join(v.dir, "users.json")); err != nil {
			t.Fatal(err)
		}
		v.start()
	}
	again()
	login := url.Values{"username": {"operator"}, "password": {v.password("operator")}}.Encode()
	v.must(400, "", http.MethodPost, "/auth/jwt/login", login, "Content-Type", "application/x-www-form-urlencoded")
	v.tokens["second"] = v.login("second", password)
	v.must(200, "second", http.MethodPatch, "/admin/v1/users/second", `{"is_active":false}`)
	again()
	v.must(200, "operator", http.MethodPatch, "/admin/v1/users/second", `{"is_active":true}`)
	v.tokens["second"] = v.login("second", password)
	v.must(201, "second", http.MethodPost, "/v1/customers", `{"customer_code":"V-1"}`)
	v.must(200, "second", http.MethodGet, "/v1/customers/V-1/account-summary", nil) // waits until the node has the customer
	for _, user := range []string{"operator", "second"} {
		v.must(200, "second", http.MethodPatch, "/admin/v1/users/"+user, `{"customer_code":"V-1"}`)
	}
	again()
	v.must(200, "operator", http.MethodPatch, "/admin/v1/users/second", `{"customer_code":null}`)
}

// TestCommandLine checks exit codes, and that secrets are not shown.
func TestCommandLine(t *testing.T) {
	v := newVenue(t)
	none := []string{"KAFKA_BROKERS=", "PERPETUA_KAFKA_BROKERS=", "DATABASE_URL=", "PERPETUA_DATABASE_URL="}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{nil, exitUsage, "usage"}, {[]string{"frobnicate"}, exitUsage, "frobnicate"}, {[]string{"help"}, exitDone, "run"}, {[]string{"run", "-h"}, exitDone, "-listen"},
		{[]string{"run", "--frobnicate"}, exitUsage, "frobnicate"}, {[]string{"run", "extra"}, exitUsage, "extra"}, {[]string{"run", "--demo=maybe"}, exitUsage, "demo"},
		{[]string{"run", "--log-level", "loud"}, exitUsage, "loud"},
		{[]string{"serve"}, exitUsage, "kafka-brokers"}, {[]string{"serve", "--kafka-brokers", "127.0.0.1:1"}, exitUsage, "database-url"},
		{[]string{"serve", "--kafka-brokers", "127.0.0.1:1", "--database-url", "postgres://127.0.0.1:1/x", "--role", "king", "--key-url", "file:///nowhere"}, exitUsage, "king"},
		{[]string{"serve", "--kafka-brokers", "127.0.0.1:1", "--database-url", "postgres://127.0.0.1:1/x"}, exitUsage, "key-url"},
		{[]string{"log", "--journal", "weather"}, exitUsage, "weather"}, {[]string{"log"}, exitFailed, "no log"}, {[]string{"run", "--listen", "nowhere"}, exitUsage, "nowhere"}, {[]string{"run", "--compression", "brotli"}, exitUsage, "brotli"}, {[]string{"admin"}, exitUsage, "bootstrap"}, {[]string{"admin", "x"}, exitUsage, "x"}, {[]string{"admin", "bootstrap"}, exitUsage, "kafka-brokers"},
	} {
		code, said := v.outcome(none, c.args...)
		if code != c.code || !strings.Contains(said, c.says) {
			t.Errorf("perpetua %s exits with %d, want %d, and says (want %q):\n%s", strings.Join(c.args, " "), code, c.code, c.says, said)
		}
	}
	secrets := []string{"DATABASE_URL=postgres://u:hunter2@127.0.0.1/x", "PERPETUA_KAFKA_PASSWORD=hunter3", "PERPETUA_MASTER_KEY=aHVudGVyNA==", "PERPETUA_KMS_URL=base64key://hunter4", "KAFKA_BROKERS=a:1,b:2", "PERPETUA_KAFKA_BROKERS="}
	code, said := v.outcome(secrets, "config", "--node-id", "seven")
	if code != exitDone || strings.Contains(said, "hunter") || strings.Contains(said, "aHVudGVyNA") || !strings.Contains(said, "a:1,b:2") || !strings.Contains(said, "seven") {
		t.Errorf("perpetua config exits with %d and says:\n%s", code, said)
	}
	for _, setting := range []string{"data", "listen", "demo", "sync", "accept-clock", "node-id", "role", "advertise", "kafka-brokers", "database-url", "key-url", "kms-url"} {
		if !strings.Contains(said, setting) {
			t.Errorf("perpetua config does not say %s", setting)
		}
	}
}
