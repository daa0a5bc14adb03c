// Package e2e tests perpetua from the outside: end-to-end and conformance tests, the walks through the READMEs, and tests that
// kill processes. The processes run a program that the tests build, with the race detector if the tests have it.
package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/e2e/altered"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/local"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
	"github.com/perpetua-exchange/perpetua/schemas"
	"github.com/perpetua-exchange/perpetua/schemas/conform"
	"github.com/perpetua-exchange/perpetua/streams/blob"
)

// Exit codes of perpetua, as its help lists them.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

func TestMain(m *testing.M) {
	if os.Getenv(asLoader) != "" {
		os.Exit(loaderMain(os.Stdin, os.Stdout))
	}
	if os.Getenv(asDriver) != "" {
		os.Exit(driverMain(os.Args[1], os.Args[2], os.Stdin, os.Stdout))
	}
	for _, name := range []string{"GOGC", "GOMEMLIMIT"} {
		os.Unsetenv(name) // or the nodes that tests start would not pace the collector
	}
	flag.Parse()
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue {
		_ = parallel.Value.Set(strconv.Itoa(3 * runtime.GOMAXPROCS(0))) // the tests mostly wait, and some for most of a minute
	}
	code := projectiontest.Main(m)
	endBrowsers()
	removePerpetua()
	os.Exit(code)
}

// patience bounds every wait for something that must happen.
const patience = 3 * time.Minute

// venue is a `perpetua run` of its own process on a folder of its own, or on the Kafka that KAFKA_BROKERS names under
// a topic prefix of its own.
type venue struct {
	t      testing.TB
	dir    string
	verb   string // run, or serve for a node of a cluster
	args   []string
	env    []string
	binary string // of another build; "" for this one
	prefix string
	// postgres is the URL of a database of its own on the server that all tests share, which spares each start one of Postgres, and
	// has the tables already, which spares it making them; "" for the embedded Postgres, in the tests that are about it or about the whole.
	postgres string
	// costlyPasswords makes the process hash passwords as in production: 64 MiB of memory, and with the race detector
	// three quarters of a second of processor time for each.
	costlyPasswords bool
	front           *venue // nil unless putFront was called

	local.RunFile
	cmd    *exec.Cmd
	exited chan struct{}
	output *output
	tokens map[string]string
	client *http.Client // holds every answer against the OpenAPI file
	// refusals counts the requests that were sent again since the venue was busy.
	refusals *atomic.Int64
	written  *written
}

// openAPI is what every answer is held against. It is read once for all venues: that takes longer than to start one.
var openAPI = sync.OnceValues(func() (*conform.OpenAPI, error) { return conform.NewOpenAPI(schemas.OpenAPI) })

// newVenue prepares a venue that is not running. What it holds is removed with the test.
func newVenue(t testing.TB, args ...string) *venue {
	t.Helper()
	v := newWholeVenue(t, args...)
	v.postgres = projectiontest.VenueURL(t)
	return v
}

// newWholeVenue is newVenue with an embedded Postgres.
func newWholeVenue(t testing.TB, args ...string) *venue {
	t.Helper()
	awaitHour(t)
	dir, err := projectiontest.Folder("perpetua-test-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	api, err := openAPI()
	if err != nil {
		t.Fatal(err)
	}
	v := &venue{t: t, dir: dir, verb: "run", args: args, exited: make(chan struct{}), refusals: new(atomic.Int64)}
	pool := http.DefaultTransport.(*http.Transport).Clone()
	pool.MaxIdleConnsPerHost = 64
	t.Cleanup(pool.CloseIdleConnections)
	v.client = &http.Client{Transport: api.Transport(pool, func(err error) { t.Error(err) })}
	if os.Getenv("KAFKA_BROKERS") != "" {
		v.prefix = fmt.Sprintf("test-%d-%d-", os.Getpid(), time.Now().UnixNano())
	}
	return v
}

// withVenues has the names of the tests that have a venue.
var withVenues sync.Map

// awaitHour calls withinTheHour before the first venue of a test and of its subtests. A wait before a later venue would let the hour
// pass for the first one.
func awaitHour(t testing.TB) {
	for name := t.Name(); name != ""; name = name[:max(strings.LastIndexByte(name, '/'), 0)] {
		if _, has := withVenues.Load(name); has {
			return
		}
	}
	withinTheHour(3 * time.Minute)
	withVenues.Store(t.Name(), true)
	t.Cleanup(func() { withVenues.Delete(t.Name()) })
}

// withinTheHour waits for the next hour, if that begins before a test is over which lasts so long on a busy machine. At the hour
// funding is fixed, and the records which that makes are none that a test reckons with.
func withinTheHour(lasts time.Duration) { within(time.Hour, lasts) }

// within waits for the next multiple of an interval if it comes before a test is over that lasts so long.
func within(interval, lasts time.Duration) {
	now := time.Now()
	if next := now.Truncate(interval).Add(interval); next.Sub(now) <= lasts {
		<-time.After(next.Sub(now))
	}
}

// fundDaily has the venue fix funding once a day, for a test that may last longer than withinTheHour can wait for. It waits for the
// next day if that begins within 10 minutes.
func (v *venue) fundDaily() {
	v.t.Helper()
	within(24*time.Hour, 10*time.Minute)
	v.must(200, "operator", http.MethodPatch, "/admin/v1/instruments/"+bitcoin, map[string]int{"funding_interval_seconds": 24 * 60 * 60})
}

// startVenue starts a venue and stops it with the test.
func startVenue(t testing.TB, args ...string) *venue {
	t.Helper()
	v := newVenue(t, args...)
	v.start()
	t.Cleanup(v.stop)
	return v
}

// keepLog gives a venue that has not started an embedded broker, also if KAFKA_BROKERS names others.
func (v *venue) keepLog() {
	v.prefix, v.env = "", append(v.env, "KAFKA_BROKERS=")
}

// command returns the process of a perpetua command, not started.
func (v *venue) command(args ...string) *exec.Cmd {
	v.t.Helper()
	binary := v.binary
	if binary == "" {
		binary = perpetuaPath(v.t)
	}
	cmd := exec.Command(binary, args...)
	cmd.Env = append(os.Environ(), "PERPETUA_DATA="+v.dir, "PERPETUA_TOPIC_PREFIX="+v.prefix, "PERPETUA_LISTEN=127.0.0.1:0",
		"GORACE=atexit_sleep_ms=10 "+os.Getenv("GORACE")) // the race detector otherwise sleeps a second before each exit
	if v.postgres != "" {
		cmd.Env = append(cmd.Env, "PERPETUA_DATABASE_URL="+v.postgres)
	}
	if !v.costlyPasswords {
		cmd.Env = append(cmd.Env, altered.CheapPasswords+"=1")
	}
	cmd.Env = append(cmd.Env, v.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// launch starts the process without waiting for it to be ready.
func (v *venue) launch() {
	v.t.Helper()
	v.cmd = v.command(append([]string{v.verb, "--log-level", "warn", "--demo=false"}, v.args...)...) // args may turn it on again
	said := new(output)
	v.output = said
	v.written = newWritten() // a start reads all that is there
	v.t.Cleanup(func() {
		if v.t.Failed() {
			v.t.Logf("the process said:\n%s", said)
		}
	})
	v.cmd.Stdout, v.cmd.Stderr = v.output, v.output
	if err := v.cmd.Start(); err != nil {
		v.t.Fatal(err)
	}
	exited := make(chan struct{})
	v.exited = exited
	go func(cmd *exec.Cmd) { cmd.Wait(); close(exited) }(v.cmd)
}

// start starts the process, and its front if it has one, and waits until they have written run.json.
func (v *venue) start() {
	v.t.Helper()
	v.launch()
	v.await()
	if f := v.front; f != nil {
		f.env = slices.Concat(v.env, []string{"PERPETUA_KEY_URL=" + blob.URLOf(filepath.Join(v.dir, "keys")),
			"PERPETUA_BLOB_URL=" + blob.URLOf(filepath.Join(v.dir, "blob"))})
		f.start()
		v.REST, v.WebSocket = f.REST, f.WebSocket
	}
}

// putFront has clients reach the venue by way of a node that owns no journal. The venue itself serves no sockets.
func (v *venue) putFront() {
	v.t.Helper()
	v.env = append(v.env, "PERPETUA_KAFKA_BROKERS="+strings.Join(brokersIn(v.t, v.dir), ","))
	v.front = newWholeVenue(v.t, append(slices.Clone(v.args), "--role", "api,live", "--node-id", "front")...)
	v.front.verb, v.front.prefix, v.front.postgres = "serve", v.prefix, v.postgres
	v.args = append(v.args, "--role", "engine,projector,process,sender")
}

// await waits until a process that was launched has written run.json.
func (v *venue) await() {
	v.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		r, ok, err := local.ReadRunFile(filepath.Join(v.dir, "run.json"))
		if err != nil {
			v.t.Fatal(err)
		}
		if ok && r.PID == v.cmd.Process.Pid {
			v.RunFile, v.tokens = r, make(map[string]string)
			return
		}
		select {
		case <-v.exited:
			v.t.Fatalf("perpetua ended before it was ready:\n%s", v.output)
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			v.kill()
			v.t.Fatalf("perpetua was not ready after %v:\n%s", patience, v.output)
		}
	}
}

// kill ends the process as kill -9 does and waits until it is gone.
func (v *venue) kill() {
	v.cmd.Process.Signal(syscall.SIGKILL)
	<-v.exited
}

// stop ends the process, and its front before it, as Ctrl-C does; it must drain and exit 0.
func (v *venue) stop() {
	v.t.Helper()
	if v.front != nil {
		v.front.stop()
	}
	select {
	case <-v.exited:
		return // killed by the test
	default:
	}
	v.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-v.exited:
	case <-time.After(patience):
		v.kill()
		v.t.Errorf("perpetua did not stop within %v:\n%s", patience, v.output)
		return
	}
	if code := v.cmd.ProcessState.ExitCode(); code != 0 {
		v.t.Errorf("perpetua exited with %d:\n%s", code, v.output)
	}
}

// token returns an access token of a preset user.
func (v *venue) token(user string) string {
	v.t.Helper()
	if v.tokens[user] == "" {
		v.tokens[user] = v.login(user, v.password(user))
	}
	return v.tokens[user]
}

func (v *venue) password(user string) string {
	for _, u := range v.Users {
		if u.Username == user {
			return u.Password
		}
	}
	v.t.Fatalf("there is no user %s", user)
	return ""
}

// login returns an access token, by way of the login route. Of a user that the test made, after is the answer to that: this
// node may not know the user yet, even if the command was sent by way of it.
func (v *venue) login(user, password string, after ...answer) string {
	v.t.Helper()
	headers := []string{"Content-Type", "application/x-www-form-urlencoded"}
	for _, a := range after {
		headers = append(headers, "X-Min-Log-Position", a.Header.Get("X-Log-Position"))
	}
	form := url.Values{"username": {user}, "password": {password}}.Encode()
	return v.must(http.StatusOK, "", http.MethodPost, "/auth/jwt/login", form, headers...).get("access_token")
}

// answer is what a request came back with.
type answer struct {
	Status int
	Header http.Header
	Body   []byte
	method string // of the request
}

// get reads a member of a JSON object answer as text.
func (a answer) get(member string) string {
	var object map[string]any
	if json.Unmarshal(a.Body, &object) != nil || object[member] == nil {
		return ""
	}
	return fmt.Sprint(object[member])
}

// do sends a request as a user ("" for none) and holds the answer against the OpenAPI file. A body that is not a
// string is sent as JSON. Headers come in pairs. A read that names no position is sent again if its answer lacks a write and may lack
// it: rows may be late on a busy machine.
func (v *venue) do(user, method, path string, body any, headers ...string) answer {
	v.t.Helper()
	for deadline := time.Now().Add(patience); ; <-time.After(5 * time.Millisecond) {
		began, before := time.Now(), v.written.returnedTo(user)
		a, err := v.try(user, method, path, body, headers...)
		if err != nil {
			v.t.Fatalf("%s %s: %v", method, path, err)
		}
		if method != http.MethodGet {
			v.written.wrote(user, a)
			return a
		}
		if strings.Contains(path, "as_of=") {
			return a
		}
		v.written.looked(user, a)
		if slices.Contains(headers, "X-Min-Log-Position") || !v.written.lacks(before, a, time.Since(began)) {
			return a
		}
		if time.Now().After(deadline) {
			v.t.Fatalf("%s %s still lacks what was written: %v", method, path, a.Header)
		}
	}
}

// must is do for a request that has to be answered with the status. What a busy machine makes the venue refuse for the
// time being is sent again, as a client would: a position that is not reached, an object that the rows lack while they are behind, and
// what was not accepted because a decision or an acknowledgement took longer than the venue allows.
func (v *venue) must(status int, user, method, path string, body any, headers ...string) answer {
	v.t.Helper()
	a := v.insist(status, func() answer { return v.do(user, method, path, body, headers...) })
	if a.Status != status {
		v.t.Fatalf("%s %s as %s: %d, want %d: %s\n%s", method, path, user, a.Status, status, a.Body, v.output)
	}
	return a
}

// insist sends a request again as long as the venue refuses it for the time being, unless that is what is wanted.
func (v *venue) insist(status int, send func() answer) answer {
	v.t.Helper()
	var refused answer
	deadline := time.Now().Add(patience)
	for again := 0; ; again++ {
		a := send()
		if a.Status == status || !a.busy() && !a.behind() || time.Now().After(deadline) {
			if again > 0 {
				v.t.Logf("%d %s, sent again %d times", refused.Status, refused.Body, again)
			}
			return a
		}
		refused = a
		v.refusals.Add(1)
		<-time.After(50 * time.Millisecond) // or the requests would be what it is busy with
	}
}

// busy reports whether the venue refused a request for the time being only.
func (a answer) busy() bool {
	code := a.code()
	return code == "LOG_POSITION_NOT_REACHED" || code == "NOT_ACCEPTED" || code == "LOGIN_BUSY"
}

// behind reports whether the rows do not contain yet what a read asks for. The answer to a write may say so after the decision.
func (a answer) behind() bool { return a.method == http.MethodGet && a.code() == "SOURCE_UNAVAILABLE" }

// code is what an error is called.
func (a answer) code() string {
	if code := a.get("code"); code != "" {
		return code
	}
	return a.get("detail") // of the login and the onboarding interface, whose errors have another shape
}

// try is do for requests that may fail, because the process may be gone.
func (v *venue) try(user, method, path string, body any, headers ...string) (answer, error) {
	var content io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		content = strings.NewReader(b)
	default:
		text, err := json.Marshal(b)
		if err != nil {
			return answer{}, err
		}
		content = bytes.NewReader(text)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, v.REST+path, content)
	if err != nil {
		return answer{}, err
	}
	if content != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if user != "" {
		r.Header.Set("Authorization", "Bearer "+v.token(user))
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := v.client.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{}, err
	}
	return answer{response.StatusCode, response.Header, text, method}, nil
}

// records returns the valid records of a journal as `perpetua log` prints them.
func (v *venue) records(journal string, args ...string) []string {
	v.t.Helper()
	cmd := v.command(append([]string{"log", "--journal", journal}, args...)...)
	var errors bytes.Buffer
	cmd.Stderr = &errors
	out, err := cmd.Output()
	if err != nil {
		v.t.Fatalf("perpetua log: %v\n%s", err, errors.String())
	}
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
}

// database returns a connection to the read models.
func (v *venue) database() *pgx.Conn {
	v.t.Helper()
	db, err := pgx.Connect(context.Background(), v.DatabaseURL)
	if err != nil {
		v.t.Fatal(err)
	}
	return db
}

// waitFor waits until a condition holds.
func waitFor(t testing.TB, what string, holds func() bool) {
	t.Helper()
	waitForWord(t, what, func() string {
		if holds() {
			return ""
		}
		return "not yet"
	})
}

// waitForWord waits until nothing is missing any more, and otherwise says what was in the end.
func waitForWord(t testing.TB, what string, missing func() string) {
	t.Helper()
	for began := time.Now(); ; {
		lack := missing()
		if lack == "" {
			return
		}
		waited := time.Since(began)
		if waited > patience {
			t.Fatalf("waited %v for %s: %s", patience, what, lack)
		}
		<-time.After(pause(waited))
	}
}

// pause is the time between two looks at something that has been awaited for so long: a twentieth of it, from 5 to 50 milliseconds.
// What a look asks of a venue costs more processor time than many things that are awaited.
func pause(waited time.Duration) time.Duration {
	return min(max(waited/20, 5*time.Millisecond), 50*time.Millisecond)
}
