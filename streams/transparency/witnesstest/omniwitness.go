package witnesstest

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/streams/transparency"
)

// The programs that NewOmniwitness builds, and their version.
const (
	omniwitness        = "github.com/transparency-dev/witness/cmd/omniwitness@"
	omniwitnessKeys    = "github.com/transparency-dev/witness/cmd/generate_keys@"
	omniwitnessVersion = "v0.0.0-20260720115447-2e1c6971d19e"
)

// Omniwitness is the witness of transparency-dev, which shares no code with this project. It runs as a process.
type Omniwitness struct {
	Key transparency.WitnessKey
	URL string
	dir string
}

// NewOmniwitness builds the witness from the module proxy and creates its key. It skips the test unless PERPETUA_TEST_OMNIWITNESS is
// set.
func NewOmniwitness(t testing.TB, name string) *Omniwitness {
	t.Helper()
	if os.Getenv("PERPETUA_TEST_OMNIWITNESS") == "" {
		t.Skip("it takes a witness from the module proxy: make witness")
	}
	w := &Omniwitness{dir: t.TempDir()}
	install := exec.CommandContext(t.Context(), "go", "install", omniwitness+omniwitnessVersion, omniwitnessKeys+omniwitnessVersion)
	install.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "GOBIN="+w.dir)
	generate := exec.CommandContext(t.Context(), w.file("generate_keys"), "--origin", name, "--out_priv", w.file("secret"), "--out_pub", w.file("key"))
	for _, cmd := range []*exec.Cmd{install, generate} {
		if output, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", cmd, err, output)
		}
	}
	text, err := os.ReadFile(w.file("key"))
	if err != nil {
		t.Fatal(err)
	}
	if w.Key, err = transparency.ParseWitnessKey(string(text)); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	w.URL = "http://" + freeAddress(t)
	return w
}

// freeAddress returns an address on loopback at which nothing listens.
func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// file returns the path of a file in the folder of the witness.
func (w *Omniwitness) file(name string) string { return filepath.Join(w.dir, name) }

// Policy returns a policy (c2sp.org/tlog-policy) that demands a cosignature from the witness, and names it omni.
func (w *Omniwitness) Policy() string {
	return "witness omni " + w.Key.String() + " " + w.URL + "\nquorum omni\n"
}

// Start runs the witness until the end of the test, or until stop is called, and registers the log of a key with it. Started again, it
// remembers what it cosigned.
func (w *Omniwitness) Start(t testing.TB, key string) (stop func()) {
	t.Helper()
	origin, _, _ := strings.Cut(key, "+")
	logs := fmt.Sprintf("Logs:\n  - Origin: %s\n    PublicKey: %s\n", origin, key)
	if err := os.WriteFile(w.file("logs.yaml"), []byte(logs), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, w.file("omniwitness"), "--listen", strings.TrimPrefix(w.URL, "http://"), "--metrics_listen", "",
		"--additional_logs", w.file("logs.yaml"), "--private_key_path", w.file("secret"), "--db_file", w.file("witness.db"))
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	stop = func() { cancel(); <-ended }
	t.Cleanup(func() {
		stop()
		if t.Failed() {
			t.Logf("the witness said:\n%s", &output)
		}
	})
	for !w.answers(t) {
		select {
		case <-ended:
			t.Fatal("the witness ended before it answered")
		case <-time.After(10 * time.Millisecond):
		}
	}
	return stop
}

// Replace replaces the key of a log in the database of the witness, which MUST be stopped. The witness keeps the key that it first
// read for an origin: the file with the logs does not change it.
func (w *Omniwitness) Replace(t testing.TB, key string) {
	t.Helper()
	const program = `import sqlite3, sys
with sqlite3.connect(sys.argv[1]) as db:
    assert db.execute("UPDATE logs SET vkey = ? WHERE origin = ?", (sys.argv[2], sys.argv[2].split("+")[0])).rowcount == 1`
	if output, err := exec.CommandContext(t.Context(), "python3", "-c", program, w.file("witness.db"), key).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
}

// answers reports whether the witness answers requests.
func (w *Omniwitness) answers(t testing.TB) bool {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		return false
	}
	a.Body.Close()
	return true
}
